"""Fixtures of the rehearsal's tests."""

from pathlib import Path

import pytest
from small_runs import write_datasets


@pytest.fixture(autouse=True)
def _no_mirror_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ignore the mirror in the user's environment."""
    monkeypatch.delenv("PIELINE_MIRROR", raising=False)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create the working directory of the tasks, with a tenth of the sentences."""
    write_datasets(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path
