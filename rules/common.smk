"""Configuration, registry and the helpers that every room uses."""

import ast
import json
import os
import re
import sys
from functools import cache
from pathlib import Path

from snakemake.utils import validate

# Every path is relative to the working directory, so that no output depends on where the clone lies.
ROOT = Path(os.path.relpath(workflow.basedir))
LIBRARY = ROOT / "src"

# Jobs find the library and this interpreter's packages, also where the environment is not activated.
sys.path.insert(0, str(LIBRARY))
os.environ.update(
    PYTHONPATH=os.path.abspath(LIBRARY),
    PATH=os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")]),
)

from pieline.core.errors import UserError, exit_with
from pieline.core.upstream import load_upstream
from pieline.languages.registry import known as known_languages
from pieline.models.registry import load_registry
from pieline.config import load_config
from pieline.models.sizing import asks_for_gpu, gpu_memory_mb, host_memory_mb

try:
    REGISTRY = load_registry(ROOT / "models.yaml")
    UPSTREAM = load_upstream(ROOT / "data" / "upstream.yaml")
    CONFIG = load_config(
        config | {"mirror": config.get("mirror") or os.environ.get("PIELINE_MIRROR")},
        REGISTRY,
    )
except UserError as error:
    exit_with(error)

validate(config, "../schemas/config.schema.yaml", set_default=False)


def here(path):
    """A file of the project, as seen from the working directory."""
    return str(ROOT / path)


def script(name):
    """The script of a rule."""
    return here(f"scripts/{name}.py")


@cache
def modules(name):
    """The library modules that a script reaches through its imports.

    They are inputs of the rule, so that Snakemake's content hashes decide what a change makes stale.
    """
    found, waiting = set(), [Path(script(name))]
    while waiting:
        for module in imported_modules(waiting.pop()):
            if module not in found:
                found.add(module)
                waiting.append(module)
    return sorted(map(str, found))


@cache
def imported_modules(path):
    """The files of the library's modules that a file imports, wherever in it the import stands."""
    names, text = set(), path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    # A module that looks for its neighbours imports them all: the languages.
    found = sorted(path.parent.glob("*.py")) if "iter_modules(" in text else []
    for name in sorted(names):
        parts = name.split(".")
        if parts[0] != "pieline":
            continue
        # Importing a module runs the __init__ of every package above it.
        for depth in range(1, len(parts) + 1):
            place = LIBRARY.joinpath(*parts[:depth])
            candidates = (place / "__init__.py", place.with_suffix(".py"))
            found += [candidate for candidate in candidates if candidate.is_file()]
    return found


def llm_settings():
    """The section `llm` of the configuration, for scripts that ask language models.

    Rules hand it over as $PIELINE_LLM_SETTINGS: it is no param, so that another timeout or mode
    reruns nothing.
    """
    folder = here(CONFIG.llm.recordings_folder)
    return CONFIG.llm.model_copy(update={"recordings_folder": folder}).model_dump_json()


os.environ.update(PIELINE_LLM_SETTINGS=llm_settings())


def alternatives(names):
    """A wildcard constraint that matches exactly these names."""
    return "|".join(map(re.escape, sorted(names))) or "(?!)"


def entries_of(kind):
    """Names of the models of a kind."""
    return [name for name, entry in REGISTRY.items() if entry.kind == kind]


def entry_of(model):
    """The entry of a model; a fine-tuned one is called model+training mode+loss."""
    return REGISTRY[model.split("+")[0]]


def execution_spec(wildcards):
    """What of a model's entry changes its predictions."""
    return entry_of(wildcards.model).execution_spec()


def document_spec(wildcards):
    """What of an embedder's entry changes its document embeddings."""
    return entry_of(wildcards.model).document_spec()


def unpacked_weights(wildcards):
    """The folder of a model's unpacked weights, if they come as GGUF."""
    if REGISTRY[wildcards.model].is_gguf:
        return [f"results/raw/weights/{wildcards.model}"]
    return []


def gpus(wildcards):
    """GPUs that a job of this model asks a cluster for."""
    return int(asks_for_gpu(entry_of(wildcards.model)))


def gpu_memory(wildcards):
    """Megabytes of GPU memory that a job of this model needs; for you to choose a partition by."""
    return gpu_memory_mb(entry_of(wildcards.model)) * gpus(wildcards)


def model_memory(wildcards):
    """Megabytes of main memory that a job of this model needs."""
    return host_memory_mb(entry_of(wildcards.model))


def growing(amount):
    """Memory or minutes of a job, doubled at each retry: a cluster kills what exceeds its limits."""

    def granted(wildcards, attempt):
        first = amount(wildcards) if callable(amount) else amount
        return first * 2 ** (attempt - 1)

    return granted


def described(names):
    """What the tables say of some models, as one canonical text."""
    fields = {"label", "parameters", "published_parameters", "published_as"}
    fields |= {"trained_with_instructions", "kind", "reasoning"}
    return json.dumps(
        [{"name": name} | REGISTRY[name].model_dump(include=fields) for name in names],
        sort_keys=True,
    )


wildcard_constraints:
    seed=r"\d+",
