"""A complete rehearsal of the small size."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support import ROOT

from pieline.core.files import read_text


@pytest.mark.skipif(
    "PIELINE_REHEARSE" not in os.environ, reason="5 minutes: set PIELINE_REHEARSE=1 to run it"
)
def test_the_small_size_completes(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "rehearsal", "--size", "small", "--directory", str(tmp_path)]
    result = subprocess.run(
        [*command, "--", "--cores", "2"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, (result.stdout + result.stderr)[-4000:]
    assert "Plumbing complete" in result.stdout
    assert "Plumbing complete." in read_text(tmp_path / "rehearsal.html")
    tables = [*tmp_path.glob("paper_tables/html/*.html"), *tmp_path.glob("paper_tables/*.tex")]
    assert len(tables) > 50
    assert [path.name for path in tables if "Own data: rehearsal" not in read_text(path)] == []
