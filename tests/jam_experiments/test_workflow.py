"""Test that weights are outputs of their own rule, and that results are reproducible."""

import json
import subprocess
from pathlib import Path

import pytest
import yaml
from jam_experiments.tiny import save_tiny_bert
from support import copy_project, run_snakemake

METRICS = "results/metrics/jam/english/tiny/fine_tuned/seed-5.json"
CONFIG = {
    "studies": ["jam"],
    "jam": {
        "languages": ["english"],
        "models": ["tiny"],
        "fine_tuning": {"epochs": 1, "seeds": [5]},
        "neutral": None,
        "attention": None,
    },
}


def snakemake(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    result = run_snakemake(
        project, "--configfile", "tiny.yaml", "--cores", "2", *arguments, "--", METRICS
    )
    assert result.returncode == 0, result.stderr[-3000:]
    return result


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a project in which a tiny encoder was trained and scored on the sample."""
    folder = copy_project(tmp_path_factory.mktemp("jam") / "project")
    entry = save_tiny_bert(folder / "tiny-bert")
    fields = json.loads(entry.execution_spec()) | {"path": "tiny-bert", "languages": ["english"]}
    described = {"label": "Tiny", "licence": "CC0-1.0"}
    (folder / "models.yaml").write_text(
        (folder / "models.yaml").read_text() + yaml.safe_dump({"tiny": described | fields})
    )
    (folder / "tiny.yaml").write_text(yaml.safe_dump(CONFIG))
    snakemake(folder)
    return folder


def planned(project: Path) -> set[str]:
    """Return the rules in the plan of a dry run."""
    out = snakemake(project, "--dry-run", "--quiet", "rules").stdout
    rows = out.partition("Job stats:")[2].splitlines()
    return {row.split()[0] for row in rows if row.split()[1:] and row.split()[1].isdigit()}


def test_scores_are_there(project: Path) -> None:
    scores = json.loads((project / METRICS).read_text())
    assert (scores["overall"]["originals"], scores["overall"]["variants"]) == (41, 123)
    assert scores["confusion"]["all_confused"] + scores["confusion"]["none_confused"] <= 41
    assert len(scores["judged"]) == 41
    assert not (project / "results/training/jam/english/tiny/seed-5/checkpoint.pt").exists()
    assert planned(project) == set()


def test_another_hyperparameter_trains_anew(project: Path) -> None:
    other = CONFIG | {"jam": {**CONFIG["jam"], "fine_tuning": {"epochs": 2, "seeds": [5]}}}  # type: ignore[dict-item]
    (project / "tiny.yaml").write_text(yaml.safe_dump(other))
    try:
        assert planned(project) >= {"fine_tune_tagger", "tag_idioms", "jam_metrics"}
    finally:
        (project / "tiny.yaml").write_text(yaml.safe_dump(CONFIG))


def test_a_label_trains_nothing(project: Path) -> None:
    models = project / "models.yaml"
    before = models.read_text()
    models.write_text(before.replace("label: Tiny", "label: Tiny BERT"))
    try:
        assert planned(project) == set()
    finally:
        models.write_text(before)
