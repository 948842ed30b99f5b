"""Runs on the first originals, sentences and queries (`limit` in config.yaml)."""

import json
from pathlib import Path

from support import run_snakemake

CONFIGURATION = """
studies: [jam, idiots, idiolink]
jam:
  languages: [english]
  models: [smollm2-135m-instruct]
  settings: [zero_shot]
  seeds: [42]
  neutral: null
  attention: null
idiots: {models: [smollm2-135m-instruct], settings: [zero_shot]}
idiolink:
  models: [bm25]
  finetuning: {models: []}
  construction: {enabled: false}
"""
METRICS = (
    "results/metrics/jam/english/smollm2-135m-instruct/zero_shot/seed-42.json",
    "results/metrics/idiots/smollm2-135m-instruct/zero_shot/seed-0.json",
    "results/metrics/idiolink/test/bm25/sentence/seed-0.json",
)


def lines(path: Path) -> int:
    return path.read_text("utf-8").count("\n")


def test_a_limited_run(project: Path) -> None:
    """It uses the first items, says so in its numbers, and shares no metric file with others."""
    (project / "mine.yaml").write_text(CONFIGURATION)
    arguments = ("--cores", "2", "--configfile", "mine.yaml", "--config", "limit=4", "--")
    done = run_snakemake(project, *arguments, *METRICS)
    assert done.returncode == 0, done.stderr
    datasets = project / "results" / "datasets"
    # Three variants per original; the index and the training split stay whole.
    assert lines(datasets / "jam" / "english.jsonl") == 4 * 4
    assert lines(datasets / "idiots" / "sentences.jsonl") == 4
    assert lines(datasets / "idiolink" / "test" / "queries.jsonl") == 4
    assert lines(datasets / "idiolink" / "test" / "documents.jsonl") > 100
    for path in METRICS:
        conditions = json.loads((project / path).read_text("utf-8"))["conditions"]
        assert conditions["settings"]["limit"] == 4
        assert "only the first 4, the paper all" in conditions["deviations"]
    # Without the limit, the same metric files are computed again.
    plan = run_snakemake(project, "-n", "--cores", "2", "--configfile", "mine.yaml", "--", *METRICS)
    assert plan.returncode == 0, plan.stderr
    for rule in ("jam_metrics", "idiots_metrics", "idiolink_metrics"):
        assert rule in plan.stdout + plan.stderr
