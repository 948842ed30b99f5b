"""End-to-end construction of the sample: recordings, the workflow's run, and its dataset."""

import csv
import json
import subprocess
import sys
from pathlib import Path

from support import ROOT, succeed

RECORDINGS = ROOT / "recordings/idiolink_construction"


def test_the_recordings_match_the_script(tmp_path: Path) -> None:
    """A changed prompt, entry or setting outdates the recordings; the script recreates them."""
    program = ROOT / "tools/record_scripted_answers.py"
    subprocess.run(
        [sys.executable, program, "--root", ROOT, "--output", tmp_path],
        env={"PYTHONPATH": str(ROOT / "src")},
        check=True,
        stdout=subprocess.DEVNULL,
    )
    folder = tmp_path / RECORDINGS.name
    files = sorted(path.relative_to(folder) for path in folder.rglob("*.jsonl"))
    assert files == sorted(path.relative_to(RECORDINGS) for path in RECORDINGS.rglob("*.jsonl"))
    assert len(files) == 4
    for name in files:
        assert (folder / name).read_bytes() == (RECORDINGS / name).read_bytes(), name


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def test_table_1_counts_the_constructed_dataset(default_run: Path) -> None:
    rows = rows_of(default_run / "paper_tables/idiolink_dataset.csv")
    ours = {(row["scope"], row["measure"]): row["ours"] for row in rows}
    assert [float(ours[name, "pies"]) for name in ("train", "validation", "test", "test_gold")] == [
        *(1, 1, 2, 1)
    ]
    assert (float(ours["total", "documents"]), float(ours["total", "queries"])) == (80, 16)
    assert {row["verdict"] for row in rows} <= {"not comparable", "not run"}


def test_the_constructed_dataset_passes_every_check(default_run: Path) -> None:
    report = json.loads(
        (default_run / "results/metrics/idiolink/checks/constructed.json").read_text("utf-8")
    )
    assert {name: item["count"] for name, item in report["checks"].items() if item["count"]} == {}
    assert report["gold_pies"] == ["cold feet"]
    assert report["sample"] is True


def test_every_case_of_the_construction_occurs(default_run: Path) -> None:
    metrics = json.loads(
        (default_run / "results/metrics/idiolink/construction.json").read_text("utf-8")
    )
    assert metrics["generation"]["documents"]["answers"] == {
        "ok": 8,
        "truncated": 1,
        "unusable": 1,
    }
    assert metrics["generation"]["queries"]["answers"] == {"ok": 7, "repaired": 1}
    assert metrics["votes"].keys() == {"valid", "invalid", "missing", "truncated", "unparseable"}
    assert metrics["labels"] == {"valid": 89, "invalid": 5, "undecided": 2}
    assert metrics["agreement"]["invalid_judged_valid"] == 1
    assert metrics["silver"]["confirmed"] == 2


def test_the_table_states_the_scripted_answers_and_the_pies_kept_by_each_reading(
    default_run: Path,
) -> None:
    """The default is the released filter; each number states its deviation from the paper."""
    path = default_run / "paper_tables/idiolink_construction.csv"
    text = path.with_suffix(".tex").read_text(encoding="utf-8")
    assert "answers are hand-written; no model produced them" in text
    rows = rows_of(path)
    assert {row["verdict"] for row in rows} == {"not comparable"}
    ours = {row["measure"]: float(row["ours"]) for row in rows}
    kept = {name: ours[f"kept_by_{name}"] for name in ("paper", "released")}
    assert kept == {"paper": 8, "released": 10}
    assert (ours["candidate_pies"], ours["removed_pies"]) == (11, 1)
    stated = "PIEs filtered as in the released code, unlike the paper's text"
    assert all(stated in row["reason"] for row in rows)


def test_corrections_reach_the_dataset(default_run: Path) -> None:
    folder = default_run / "results/datasets/idiolink/constructed"
    texts = {
        item["id"]: item
        for item in json.loads((folder / "test/indexes.json").read_text(encoding="utf-8"))
    }
    assert texts["002_s05_sense_01"]["span"] == "lost the courage to go through with it"
    assert texts["002_s05_lit_03"]["sentence"].endswith("went home with cold feet.")
    assert texts["002_s05_lit_01"]["is_gold"] is True
    assert texts["011_s05_lit_01"]["is_gold"] is False


def test_the_experiments_can_use_the_constructed_dataset(finished: Path) -> None:
    target = "results/datasets/idiolink/test/manifest.json"
    setting = "idiolink={dataset: constructed}"
    succeed(finished, "--cores", "1", target, "--config", setting)
    manifest = json.loads((finished / target).read_text(encoding="utf-8"))
    assert (manifest["documents"], manifest["queries"], manifest["pies"]) == (40, 8, 2)
    assert manifest["released"] is False
