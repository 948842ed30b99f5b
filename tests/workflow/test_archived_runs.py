"""An archive of runs exported by one clone, and imported by another that computes nothing."""

import os
from pathlib import Path

import pytest
from support import copy_project, succeed

from pieline.archives.export import export_runs
from pieline.core.files import read_json

METRICS = "results/metrics/idiolink/test/sbert+sentence+paper/sentence/seed-42.json"
HEAVY = ("embed", "fine_tune", "fine_tune_tagger", "prompt_idioms", "tag_idioms", "idiots_detect")


def planned(output: str) -> set[str]:
    """Return the rules in a dry run's job table."""
    table = output.partition("Job stats:")[2].partition("\ntotal")[0]
    return {line.split()[0] for line in table.splitlines() if line.strip()}


@pytest.mark.full
def test_another_clone_scores_the_runs_of_an_archive(default_run: Path, tmp_path: Path) -> None:
    here = Path.cwd()
    os.chdir(default_run)
    try:
        export_runs(tmp_path / "sample.tar.zst")
    finally:
        os.chdir(here)
    project = copy_project(tmp_path / "project")
    archives = f"archives=[{tmp_path / 'sample.tar.zst'}]"

    plan = succeed(project, "-n", "--config", archives, "--", "all")
    assert "take_idiolink_sbert_sentence_paper_from_sample" in planned(plan.stdout)
    assert not planned(plan.stdout) & set(HEAVY)
    assert "taken from archive sample: 22 runs of idiolink" in plan.stderr

    succeed(project, "--cores", "2", "--config", archives, "--", METRICS)
    assert (project / METRICS).read_bytes() == (default_run / METRICS).read_bytes()

    # What an archive states otherwise than the configuration is a deviation of its run.
    other = "idiolink={finetuning: {seeds: [42], max_epochs: 3}}"
    succeed(project, "--cores", "2", "--config", archives, other, "--", METRICS)
    stated = read_json(project / METRICS)["conditions"]
    assert stated["settings"]["max_epochs"] == 1
    assert "max epochs 1, this configuration 3" in stated["deviations"]
