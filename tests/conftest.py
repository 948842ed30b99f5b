"""Fixtures that several test folders share."""

import gc
import os
from pathlib import Path

import hypothesis
import pytest
from filelock import FileLock
from support import copy_project, copy_run, run_snakemake

# Collecting imports a million objects that stay: looking through them for garbage takes seconds.
gc.disable()

# The same examples in every run, so that a test fails for whoever broke it; without deadlines,
# because workers share the cores and a language's dictionary loads within some example; a quarter
# of the usual number, because `make explore` draws a thousand.
hypothesis.settings.register_profile(
    "repeatable", derandomize=True, database=None, deadline=None, max_examples=25
)
hypothesis.settings.register_profile("explore", max_examples=1000, deadline=None)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))

IS_WORKER = "PYTEST_XDIST_WORKER" in os.environ

if IS_WORKER:
    # Workers share the cores, and torch's threads wait for each other busily.
    os.environ.setdefault("OMP_NUM_THREADS", "1")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long work comes first."""
    items.sort(key=_start)
    gc.freeze()
    gc.enable()


def _start(item: pytest.Item) -> int:
    """When a test's turn comes: by then what it waits for has been made, by others."""
    if item.path.stem == "test_default_run":
        return 0
    if item.path.parent.name == "slurm":
        return 1
    if not {"default_run", "finished"} & set(getattr(item, "fixturenames", ())):
        return 2
    # Whoever takes up a long file last has the others wait.
    long = ("test_caching", "test_evidence", "test_rerunning", "test_idiots_workflow")
    return 3 if item.path.stem in long else 4


@pytest.fixture(autouse=True)
def _no_mirror_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests name their data themselves, whatever the user's environment says."""
    monkeypatch.delenv("PIELINE_MIRROR", raising=False)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A fresh copy of the project without outputs."""
    return copy_project(tmp_path / "project")


@pytest.fixture(scope="session")
def default_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project in which the whole default configuration has run; do not change it.

    One run serves all workers of pytest-xdist, whose own folders lie side by side.
    """
    own = tmp_path_factory.getbasetemp()
    shared = own.parent if IS_WORKER else own
    folder, told = shared / "default" / "project", shared / "default" / "stderr.txt"
    with FileLock(shared / "default.lock"):
        if not told.exists():
            copy_project(folder)
            result = run_snakemake(folder, "--cores", "2", "all", as_users_do=True)
            told.write_text(f"{result.returncode}\n{result.stderr}", encoding="utf-8")
    code, _, errors = told.read_text(encoding="utf-8").partition("\n")
    assert code == "0", errors
    return folder


@pytest.fixture
def finished(default_run: Path, tmp_path: Path) -> Path:
    """A copy of the finished default run, that a test may change."""
    return copy_run(default_run, tmp_path / "finished")
