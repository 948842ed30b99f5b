# Common commands; `make help` lists them.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
PYTHON ?= python3
# Folder with the papers' public files; if empty, they are downloaded.
MIRROR ?= $(wildcard ../shared/mirror)
VENV := .venv
BIN := $(VENV)/bin
LOCK := envs/requirements.lock envs/requirements-no-deps.lock
CPU := envs/requirements-cpu.lock
CUDA := envs/requirements-cuda.lock
DEV := envs/requirements-dev.lock
READY := $(VENV)/.ready
READY_DEV := $(VENV)/.ready-dev
SUPPORTED := $(shell sed -n 's/^requires-python = "\(.*\)"/\1/p' pyproject.toml)
# uv is faster and is used if installed; `make UV=` uses pip instead. uv does not read pip's settings.
UV ?= $(shell command -v uv)
ifneq ($(UV),)
CREATE := $(UV) venv --quiet --allow-existing --python $(PYTHON)
INSTALL := $(UV) pip install --quiet --python $(BIN)/python
else
CREATE := $(PYTHON) -m venv
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
endif

# Snakemake needs a user name and a writable home, which some containers lack.
export USER ?= $(shell id -un 2>/dev/null || true)
ifneq ($(shell test -w "$${HOME:-}" && echo yes),yes)
export HOME := /tmp
endif

# Profiles and packages of the user must not change what the targets do.
unexport SNAKEMAKE_PROFILE PYTHONPATH PYTHONHOME PYTHONSTARTUP PYTHONOPTIMIZE

.PHONY: help reproduce report test test-all explore check audit verify rehearse environment lock clean

help:  ## List the targets.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "%-14s%s\n", $$1, $$2}' $(MAKEFILE_LIST)

reproduce: $(READY)  ## Make all tables and figures on the sample data, and score the rankings in this repository.
	$(BIN)/snakemake --cores all --directory runs/shipped --configfile config/shipped.yaml -- all
	$(BIN)/snakemake --cores all all
	@echo "On the paper's data, by the shipped rankings alone:"
	@$(BIN)/python tools/report_comparison.py runs/shipped/paper_tables/numbers.csv --at-least 14 --brief
	@echo "Open runs/shipped/paper_tables/index.html for these numbers, then paper_tables/index.html for all tables and figures"
	@echo "on sample data. 'make verify' reproduces more numbers from the papers' public data."

report: $(READY)  ## Make Snakemake's report of the finished run: results, statistics, workflow.
	$(BIN)/snakemake --report paper_tables/report.html

# One more worker than cores, because some tests wait for servers, clusters and each other.
PYTEST = $(BIN)/python -m pytest --numprocesses $$(($$(nproc 2>/dev/null || echo 2) + 1)) --maxprocesses 4 \
    --dist loadfile --no-loadscope-reorder --durations 15

test: $(READY_DEV)  ## Test the library, the rules and one default run.
	$(PYTEST) -m "not full"

test-all: $(READY_DEV)  ## Run the same tests and those that need SLURM, a browser, LaTeX or more time.
	$(PYTEST)

explore: $(READY_DEV)  ## Run only the property tests, with a thousand new examples each.
	HYPOTHESIS_PROFILE=explore $(BIN)/python -m pytest -m hypothesis --numprocesses auto

check: $(READY_DEV)  ## Check formatting, lint and types, and lint the workflow.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/snakefmt --check --compact-diff Snakefile rules examples
	$(BIN)/mypy
	$(BIN)/snakemake --lint
	@# Does not fail: new vulnerabilities of pinned versions may appear at any time, and some networks cannot reach osv.dev.
	-@$(MAKE) --no-print-directory audit

audit: $(READY_DEV)  ## List known vulnerabilities of the locked packages, according to osv.dev.
	@if $(BIN)/python -c 'import requests; requests.get("https://api.osv.dev", timeout=5)' 2>/dev/null; then \
	    $(BIN)/pip-audit --vulnerability-service osv --disable-pip --require-hashes --progress-spinner off \
	        $(LOCK:%=--requirement %) --requirement $(DEV); \
	else echo "audit: skipped, because api.osv.dev cannot be reached"; fi

verify: $(READY)  ## Check the numbers that a laptop can compute from the real data (downloaded, or from MIRROR).
	@# Files that are neither in MIRROR nor reachable are left out.
	$(BIN)/python tools/fetch_public.py runs/public $(if $(MIRROR),--mirror '$(MIRROR)')
	$(BIN)/snakemake --cores all --directory runs/released --configfile config/released.yaml runs/public.yaml -- all
	@# Four others cannot be reproduced: the public data has other counts of distinct PIEs and gold texts.
	$(BIN)/python tools/report_comparison.py runs/released/paper_tables/numbers.csv --at-least 58
	@echo "Open runs/released/paper_tables/index.html."

SIZE ?= full

rehearse: $(READY)  ## Run all jobs of the papers' full grid on stand-ins, in runs/rehearsal (SIZE=small: fewer seeds and modes).
	$(BIN)/python -m rehearsal --size $(SIZE)

environment: $(READY)  ## Create the environment in .venv.

$(READY): $(LOCK) $(CPU) $(CUDA) pyproject.toml
	@$(PYTHON) tools/check_python.py '$(SUPPORTED)' $(if $(UV),,ensurepip)
	$(CREATE) $(VENV)
	@# The locks are complete, so nothing is resolved. Of the packages in no-deps, only the weights or the
	@# script are used. Without its CPU build, torch comes from the index, with gigabytes of dependencies on Linux.
	$(INSTALL) --require-hashes --no-deps --requirement $(CPU) 2>/dev/null \
	    || echo "no CPU-only build of torch found; installing the index's build"
	$(INSTALL) --require-hashes --no-deps $(LOCK:%=--requirement %)
ifeq ($(shell uname -s),Linux)
	if grep -q '^Requires-Dist: nvidia' $(VENV)/lib/python3*/site-packages/torch-*.dist-info/METADATA; \
	    then $(INSTALL) --require-hashes --no-deps --requirement $(CUDA); fi
endif
	$(INSTALL) --no-deps --no-build-isolation --editable .
	@# pip would compile on one core. Errors are ignored: some packages contain files for other versions of Python.
	$(BIN)/python -m compileall -q -j 0 -x '/tests/' $(VENV)/lib >/dev/null 2>&1 || true
	touch $(READY)

$(READY_DEV): $(READY) $(DEV)
	$(INSTALL) --require-hashes --no-deps --requirement $(DEV)
	touch $(READY_DEV)

COMPILE := $(UV) pip compile --quiet --generate-hashes --no-annotate --no-header \
    --python-version 3.11 --python-platform x86_64-manylinux_2_28

lock:  ## Update the pins for pyproject.toml (needs uv); existing pins are kept if possible.
	cat envs/requirements.lock $(CUDA) >envs/all.lock
	$(COMPILE) pyproject.toml --output-file envs/all.lock
	cp $(DEV) envs/dev.lock
	$(COMPILE) --group dev --constraint envs/all.lock --output-file envs/dev.lock
	for part in '0 envs/requirements.lock all' '1 $(CUDA) all' '0 $(DEV) dev'; do set -- $$part; \
	    { grep '^#' $$2; awk '/^[^ ]/ {cuda = /^(cuda|nvidia|triton)/} cuda == '$$1 envs/$$3.lock; } >$$2.new; \
	    mv $$2.new $$2; done
	rm envs/all.lock envs/dev.lock

clean:  ## Delete all outputs except recordings.
	rm -rf .snakemake logs runs
	find results paper_tables -mindepth 1 -not -name README.md -delete
