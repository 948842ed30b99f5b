"""Shared helpers for tests of the user's own models and predictions."""

import shutil
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from support import ROOT

from pieline.config import layered, load_config, load_studies
from pieline.models.registry import Registry, load_registry
from pieline.results.run_report import RunReport


def registry_with(folder: Path, own: str) -> Path:
    """Copy models.yaml into a folder and write models.local.yaml next to it."""
    shutil.copy(ROOT / "models.yaml", folder)
    (folder / "models.local.yaml").write_text(own, encoding="utf-8")
    return folder / "models.yaml"


@cache
def shipped_models() -> Registry:
    """Return the project's models."""
    return load_registry(ROOT / "models.yaml")


def run_report(models: Path, **changes: Any) -> RunReport:
    """Create a run of the default configuration with some sections changed."""
    raw = yaml.safe_load((ROOT / "config.yaml").read_text(encoding="utf-8"))
    for name, section in changes.items():
        raw[name] = raw.get(name, {}) | section
    config = load_config(layered(raw, ROOT / "config" / "sample.yaml"))
    # Parsing the project's models takes longer than most tests.
    registry = shipped_models() if models.parent == ROOT else load_registry(models)
    return RunReport(load_studies(config, registry, ROOT), config)


def write(path: Path, text: str) -> Path:
    """Write a file and return its path."""
    path.write_text(text, encoding="utf-8")
    return path
