"""Fixtures shared by several test folders."""

import gc
import os
from collections.abc import Collection
from functools import cache
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from filelock import FileLock
from support import ROOT, copy_project, copy_run, run_snakemake

from pieline.models import registry

# Collection creates a million permanent objects, and scanning them for garbage takes seconds.
gc.disable()

# Examples are the same in every run, so that failures are reproducible. There are no deadlines,
# because workers share the cores and the first example may load a dictionary. There are few
# examples, because `make explore` runs a thousand.
hypothesis.settings.register_profile(
    "repeatable", derandomize=True, database=None, deadline=None, max_examples=25
)
hypothesis.settings.register_profile("explore", max_examples=1000, deadline=None)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))

IS_WORKER = "PYTEST_XDIST_WORKER" in os.environ

if IS_WORKER:
    # Workers share the cores, and torch's threads busy-wait for each other.
    os.environ.setdefault("OMP_NUM_THREADS", "1")


# Before collection, because some test modules load the registry.
_read_fields = registry._read_fields


@cache
def _models() -> dict[str, Any]:
    """Parse the project's models, which takes 0.1 s, only once."""
    return _read_fields(ROOT / "models.yaml")


def _read_fields_without_the_users(path: Path) -> dict[str, Any]:
    if path.absolute() == ROOT / "models.yaml":
        return dict(_models())
    return {} if path.absolute() == ROOT / "models.local.yaml" else _read_fields(path)


registry._read_fields = _read_fields_without_the_users


OWN_COPY = {"project", "finished", "example", "narrowed"}
"""Fixtures that copy the project; a test of a copy runs the workflow in it."""
_WAITS = {"default_run", "finished"}
"""Fixtures that wait for the default run."""


# Before pytest's own hook, which selects tests by their markers.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests that run the workflow in a copy as `full`, and run slow tests first."""
    for item in items:
        if OWN_COPY & set(getattr(item, "fixturenames", ())):
            item.add_marker("full")
    waiting = {item.path for item in items if _WAITS & set(getattr(item, "fixturenames", ()))}
    items.sort(key=lambda item: _start(item.path, waiting))
    gc.freeze()
    gc.enable()


def _start(path: Path, waiting: Collection[Path]) -> int:
    """Return the position of a file: those that wait for the default run start later."""
    if path.stem == "test_default_run":
        return 0
    if path.parent.name == "slurm":
        return 1
    if path not in waiting:
        return 2
    # A long file that starts last would delay the end of the run.
    long = ("test_caching", "test_evidence", "test_rerunning", "test_idiots_workflow")
    return 3 if path.stem in long else 4


@pytest.fixture(autouse=True)
def _no_mirror_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ignore the user's mirror, since tests define their own data."""
    monkeypatch.delenv("PIELINE_MIRROR", raising=False)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Copy the project without outputs."""
    return copy_project(tmp_path / "project")


@pytest.fixture(scope="session")
def default_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the project after a default run; tests must not change the copy.

    All workers of pytest-xdist share one run in the parent of their temporary folders.
    """
    own = tmp_path_factory.getbasetemp()
    shared = own.parent if IS_WORKER else own
    folder, log = shared / "default" / "project", shared / "default" / "stderr.txt"
    with FileLock(shared / "default.lock"):
        if not log.exists():
            copy_project(folder)
            result = run_snakemake(folder, "--cores", "2", "all", as_users_do=True)
            log.write_text(f"{result.returncode}\n{result.stderr}", encoding="utf-8")
    code, _, errors = log.read_text(encoding="utf-8").partition("\n")
    assert code == "0", errors
    return folder


@pytest.fixture
def finished(default_run: Path, tmp_path: Path) -> Path:
    """Copy the finished default run; a test may change the copy."""
    return copy_run(default_run, tmp_path / "finished")
