"""Fixtures that several test folders share."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import copy_project, run_snakemake

# Two workers share the machine: more threads than cores slow torch down many times over.
os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give each worker whole groups: tests that share a costly fixture stay together.

    The longest groups come first, so that the two workers end at about the same time.
    """
    groups = {item: _group_of(item) for item in items}
    for item, group in groups.items():
        item.add_marker(pytest.mark.xdist_group(group))
    first = ["default_run", "slurm"]
    items.sort(key=lambda item: first.index(groups[item]) if groups[item] in first else len(first))


def _group_of(item: pytest.Item) -> str:
    if {"default_run", "finished"} & set(getattr(item, "fixturenames", ())):
        return "default_run"
    return "slurm" if item.path.parent.name == "slurm" else item.path.stem


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
    """A copy of the project in which the whole default configuration has run; do not change it."""
    folder = copy_project(tmp_path_factory.mktemp("default") / "project")
    result = run_snakemake(folder, "--cores", "2", "all")
    assert result.returncode == 0, result.stderr[-4000:]
    return folder


@pytest.fixture
def finished(default_run: Path, tmp_path: Path) -> Iterator[Path]:
    """A copy of the finished default run, that a test may change."""
    folder = tmp_path / "finished"
    # Unpacked weights are large and no test changes them: share them.
    shutil.copytree(default_run, folder, symlinks=True, copy_function=_copy_or_link)
    yield folder
    shutil.rmtree(folder)


def _copy_or_link(source: str, target: str) -> None:
    if source.endswith(".safetensors"):
        os.link(source, target)
    else:
        shutil.copy2(source, target)
