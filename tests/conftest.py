"""Fixtures that several test folders share."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import copy_project, run_snakemake


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
