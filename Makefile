# The two commands of the README, and what they are made of. `make help` lists them.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
PYTHON ?= python3
# Folder with the papers' public files; without one they are downloaded.
MIRROR ?= $(wildcard ../shared/mirror)
VENV := .venv
BIN := $(VENV)/bin
LOCK := envs/requirements.lock envs/requirements-no-deps.lock
CPU := envs/requirements-cpu.lock
CUDA := envs/requirements-cuda.lock
READY := $(VENV)/.ready
SUPPORTED := $(shell sed -n 's/^requires-python = "\(.*\)"/\1/p' pyproject.toml)
# uv installs faster where it is there (UV= for pip); it does not read pip's settings.
UV ?= $(shell command -v uv)
ifneq ($(UV),)
CREATE := $(UV) venv --quiet --allow-existing --python $(PYTHON)
INSTALL := $(UV) pip install --quiet --python $(BIN)/python
else
CREATE := $(PYTHON) -m venv
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
endif

.PHONY: help reproduce report test explore check audit verify rehearse environment lock clean

help:  ## List the targets.
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "%-14s%s\n", $$1, $$2}' $(MAKEFILE_LIST)

reproduce: $(READY)  ## Every table and figure on the sample data, and the papers' scores of shipped rankings.
	$(BIN)/snakemake --cores all --directory runs/shipped --configfile config/shipped.yaml -- all
	$(BIN)/snakemake --cores all all
	@echo "Tables (LaTeX, CSV) are in paper_tables/, figures in paper_tables/figures/; start with paper_tables/index.html."

report: $(READY)  ## Snakemake's own report of the finished run: results, statistics, workflow.
	$(BIN)/snakemake --report paper_tables/report.html

test: $(READY)  ## The whole test suite.
	@# One worker more than cores, because some tests wait for servers, clusters and each other.
	$(BIN)/python -m pytest --numprocesses $$(($$(nproc 2>/dev/null || echo 2) + 1)) --maxprocesses 4 \
	    --dist loadfile --no-loadscope-reorder --durations 25

explore: $(READY)  ## Only the property tests, on a thousand fresh examples each.
	HYPOTHESIS_PROFILE=explore $(BIN)/python -m pytest -m hypothesis --numprocesses auto

check: $(READY)  ## Format, lint, types, and Snakemake's own lint.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/snakefmt --check --compact-diff Snakefile rules rehearsal examples
	$(BIN)/mypy
	$(BIN)/snakemake --lint
	@# Told, not failed: what a pinned version lacks becomes known later, and not every network reaches the list.
	-@$(MAKE) --no-print-directory audit

audit: $(READY)  ## Known vulnerabilities of the locked packages, as osv.dev lists them.
	@if $(BIN)/python -c 'import requests; requests.get("https://api.osv.dev", timeout=5)' 2>/dev/null; then \
	    $(BIN)/pip-audit --vulnerability-service osv --disable-pip --require-hashes --progress-spinner off \
	        $(LOCK:%=--requirement %); \
	else echo "audit: api.osv.dev cannot be reached; no vulnerability was looked for"; fi

verify: $(READY)  ## The numbers that a laptop can check, on the papers' real data: from MIRROR, or downloaded.
	$(BIN)/snakemake --cores all --directory runs/released \
	    --configfile config/released.yaml $(if $(MIRROR),--config mirror=$(abspath $(MIRROR))) -- all
	@# Four cannot be: the printed numbers of different PIEs and of gold texts do not follow from the released data.
	$(BIN)/python tools/report_comparison.py runs/released/paper_tables/printed_numbers.csv --at-least 44

SIZE ?= full

rehearse: $(READY)  ## The papers' full grid on stand-ins, in runs/rehearsal; SIZE=small: a tenth.
	$(BIN)/snakemake --cores all --configfile config/rehearsal.yaml \
	    --config 'rehearsal={size: $(SIZE)}' -- all
	@echo "What it showed: runs/rehearsal/paper_tables/rehearsal.html"

environment: $(READY)  ## Only create the environment in .venv.

$(READY): $(LOCK) $(CPU) $(CUDA) pyproject.toml
	@$(PYTHON) tools/check_python.py '$(SUPPORTED)' $(if $(UV),,ensurepip)
	$(CREATE) $(VENV)
	@# The locks hold all that each package needs, so nothing is resolved. Of those in no-deps only the
	@# weights or the script are used. Without its CPU build torch is the index's, which brings gigabytes
	@# on Linux.
	$(INSTALL) --require-hashes --no-deps --requirement $(CPU) 2>/dev/null \
	    || echo "no CPU-only torch was found: the index's build is installed"
	$(INSTALL) --require-hashes --no-deps $(LOCK:%=--requirement %)
ifeq ($(shell uname -s),Linux)
	if grep -q '^Requires-Dist: nvidia' $(VENV)/lib/python3*/site-packages/torch-*.dist-info/METADATA; \
	    then $(INSTALL) --require-hashes --no-deps --requirement $(CUDA); fi
endif
	$(INSTALL) --no-deps --no-build-isolation --editable .
	@# On all cores, where pip takes one; some packages hold files for other versions of Python.
	-$(BIN)/python -m compileall -q -j 0 -x '/tests/' $(VENV)/lib >/dev/null 2>&1
	touch $(READY)

lock:  ## Pin anew what envs/requirements.in asks for (needs uv); versions that are pinned stay.
	cat envs/requirements.lock $(CUDA) >envs/all.lock
	$(UV) pip compile --quiet envs/requirements.in --output-file envs/all.lock --generate-hashes \
	    --python-version 3.11 --python-platform x86_64-manylinux_2_28 --no-annotate --no-header
	for part in '0 envs/requirements.lock' '1 $(CUDA)'; do set -- $$part; \
	    { grep '^#' $$2; awk '/^[^ ]/ {cuda = /^(cuda|nvidia|triton)/} cuda == '$$1 envs/all.lock; } >$$2.new; \
	    mv $$2.new $$2; done
	rm envs/all.lock

clean:  ## Delete all outputs; recordings stay.
	rm -rf .snakemake logs runs ro-crate-metadata.json
	find results paper_tables -mindepth 1 -not -name README.md -delete
