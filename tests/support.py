"""What tests of several folders share."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MIRROR = Path(os.environ.get("PIELINE_MIRROR") or ROOT.parent / "shared" / "mirror")
NOT_COPIED = {".git", ".venv", ".snakemake", "results", "paper_tables", "runs", "logs"}

needs_mirror = pytest.mark.skipif(
    not MIRROR.is_dir(), reason=f"the papers' real data is not here: {MIRROR} (PIELINE_MIRROR)"
)


def run_snakemake(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run snakemake in a folder that holds the project."""
    return subprocess.run(
        [sys.executable, "-m", "snakemake", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(folder / "src")},
        check=False,
        timeout=1200,
    )


def copy_project(target: Path) -> Path:
    """Copy what git would track, without outputs."""
    shutil.copytree(
        ROOT,
        target,
        ignore=lambda folder, names: (
            NOT_COPIED & set(names) if Path(folder) == ROOT else {"__pycache__"} & set(names)
        ),
    )
    return target


def output_digests(folder: Path) -> dict[str, str]:
    """Digest of each table, figure and metric file by its path."""
    files = [*(folder / "paper_tables").rglob("*"), *(folder / "results/metrics").rglob("*.json")]
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(files)
        if path.is_file()
    }
