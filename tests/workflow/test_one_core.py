"""A run of its own on one core: the bytes of the default run on two."""

from pathlib import Path

import pytest
from support import output_digests, run_snakemake

TABLES = [
    "idiolink_zero_shot.tex",
    "idiolink_bm25.tex",
    "idiolink_dataset.tex",
    "idiots_detection.tex",
    "jam_statistics.tex",
    "figures/idiolink_modes.pdf",
]
"""Everything but training, whose repeatability has tests of its own with small models."""


def test_run_from_scratch_with_one_core_gives_the_same_bytes(
    project: Path, request: pytest.FixtureRequest
) -> None:
    asked = [f"paper_tables/{name}" for name in TABLES]
    result = run_snakemake(project, "--cores", "1", *asked)
    assert result.returncode == 0, result.stderr[-4000:]
    again = output_digests(project)
    assert set(asked) <= set(again)
    assert len(again) > 20
    # Only now, so that both runs can be under way at the same time.
    before = output_digests(request.getfixturevalue("default_run"))
    assert again == {name: before[name] for name in again}
