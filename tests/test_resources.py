"""Resource estimates: parsing of a dry run, and formulas against manually computed cases."""

import json
from pathlib import Path

import pytest
from support import ROOT

from pieline.core.errors import UserError
from pieline.llm.costs import Estimate
from pieline.llm.estimates import TaskEstimate
from pieline.models import sizing
from pieline.models.llm import LLMEntry
from pieline.models.registry import Registry, load_registry
from pieline.resources import ModelResources, PlannedJob, dry_run, read_plan, resources

DRY_RUN = """\
Building DAG of jobs...
[Sun Nov 22 12:29:30 2026]
localrule raw_file:
    output: results/raw/texts.json
    jobid: 7
    wildcards: name=texts.json
    resources: tmpdir=/tmp, mem_mb=8000
[Sun Nov 22 12:29:30 2026] Group job data (jobs in lexicogr. order):

    [Sun Nov 22 12:29:30 2026]
    rule idiolink_dataset:
        input: results/raw/texts.json
        output: results/datasets/a.jsonl, results/datasets/b.jsonl
        jobid: 3
        wildcards: split=test
        resources: mem_mb=8000
[Sun Nov 22 12:29:31 2026]
rule embed:
    input: results/datasets/a.jsonl, results/datasets/b.jsonl
    output: vectors.npy
    jobid: 1
    wildcards: split=test, model=e5-mistral+span+paper, seed=0
    resources: mem_mb=8000, gpu=2, gpu_mem_mb=3000
[Sun Nov 22 12:29:31 2026]
rule all:
    input: vectors.npy
    jobid: 0
"""
EPOCHS = {"fine_tune": 10, "fine_tune_tagger": 20}


@pytest.fixture(scope="module")
def registry() -> Registry:
    return load_registry(ROOT / "models.yaml")


@pytest.fixture
def texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Write ten documents and two queries of 36 bytes (ten tokens) each, and two tagged words."""
    monkeypatch.setattr(sizing, "FLOPS", {"float32": 1e12, "bfloat16": 1e13, "float16": 1e13})
    monkeypatch.setattr(sizing, "MEMORY_BYTES_PER_S", 1e12)
    monkeypatch.setattr(sizing, "EFFICIENCY", 0.5)
    monkeypatch.setattr(sizing, "START_S", 0)
    monkeypatch.setattr(sizing, "LOADED_BYTES_PER_S", 1e30)
    for name, count in {"documents": 10, "queries": 2}.items():
        line = json.dumps({"id": "an id", "sentence": "a" * 36}) + "\n"
        (tmp_path / f"{name}.jsonl").write_text(line * count)
    (tmp_path / "train.tsv").write_text("a" * 3 + "\tO\n" + "a" * 33 + "\tO\n")
    return {path.stem: str(path) for path in tmp_path.iterdir()}


BOTH = ["results/datasets/a.jsonl", "results/datasets/b.jsonl"]


def test_the_jobs_of_a_dry_run() -> None:
    assert read_plan(DRY_RUN) == [
        PlannedJob("raw_file", "", 0, [""], ["results/raw/texts.json"]),
        PlannedJob("idiolink_dataset", "", 0, ["results/raw/texts.json"], BOTH),
        PlannedJob("embed", "e5-mistral", 2, BOTH, ["vectors.npy"]),
    ]


def test_embedding_and_training(registry: Registry, texts: dict[str, str]) -> None:
    both = [texts["documents"], texts["queries"], "results/raw/weights/e5", "manifest.json"]
    plan = [
        PlannedJob("embed", "e5-base-v2", 1, both, ["vectors.npy"]),
        PlannedJob("rank_by_embedding", "e5-base-v2", 0, ["vectors.npy"], []),
        PlannedJob("table", "", 0, ["published.csv"], []),
        PlannedJob("fine_tune", "bge-m3", 1, [*both, "datasets/train/tuples/released.jsonl"], []),
        PlannedJob("fine_tune_tagger", "bert", 1, [texts["train"]], []),
    ]
    bert, bge, e5, none = resources(plan, registry, [], EPOCHS)
    # Queries are encoded in four modes.
    assert e5.gpu_hours == pytest.approx(2 * 109e6 * (100 + 4 * 20) / 0.5e12 / 3600)
    assert (e5.jobs, e5.disk) == (2, 4 * (10 + 4 * 2) * 768)
    assert bge.gpu_hours == pytest.approx(6 * 568e6 * 10 * 180 / 0.5e12 / 3600)
    assert (bge.download, bge.disk) == (4 * 568_000_000, 4 * 568_000_000)
    assert bert.gpu_hours == pytest.approx(6 * 110e6 * 20 * 10 / 0.5e12 / 3600)
    assert none == ModelResources("", 1)


def test_missing_texts_leave_hours_and_disk_unknown(
    registry: Registry, texts: dict[str, str]
) -> None:
    unknown = ModelResources("bge-m3", 1, None, 4 * 568_000_000, None)
    missing = f"{texts['documents']}.jsonl"
    plan = [PlannedJob("embed", "bge-m3", 1, [missing], [])]
    assert resources(plan, registry, [], EPOCHS)[0] == unknown
    # Texts of another configuration do not count.
    plan = [
        PlannedJob("idiolink_dataset", "", 0, [], [texts["documents"]]),
        PlannedJob("embed", "bge-m3", 1, [texts["documents"]], []),
    ]
    assert resources(plan, registry, [], EPOCHS)[0] == unknown


def test_a_served_model_reads_its_weights_per_token(
    registry: Registry, texts: dict[str, str]
) -> None:
    entry = registry["llama-2-7b-chat"]
    assert isinstance(entry, LLMEntry)
    counts = {"input_tokens": 1000, "output_tokens": 9000, "likely_output_tokens": 4800}
    asked = TaskEstimate("Detection", "llama-2-7b-chat", entry, Estimate(entry, **counts), (), ())
    plan = [
        PlannedJob("serve", "llama-2-7b-chat", 1, [texts["documents"]], []),
        PlannedJob("idiots_detect", "llama-2-7b-chat", 0, [], []),
    ]
    served, _ = resources(plan, registry, [asked], EPOCHS)
    more = asked._replace(unknown=("sentences.jsonl",))
    assert resources(plan, registry, [more], EPOCHS)[0].gpu_hours is None
    # 14 GB are read per token of sixteen concurrent answers.
    expected = 2 * 7e9 * 1000 / 0.5e13 + 14e9 * 4800 / 0.5e12 / 16
    assert served.jobs == 2
    assert served.gpu_hours == pytest.approx(expected / 3600)


def test_loading_time_is_included(registry: Registry) -> None:
    assert sizing.gpu_seconds(registry["bert"], 2, 0) == 2 * (60 + 4 * 110e6 / 1e9)


def test_vector_length_is_estimated_from_model_size(registry: Registry) -> None:
    names = ["sbert", "e5-base-v2", "bge-m3", "qwen3-embedding-4b", "e5-mistral"]
    lengths = [sizing.vector_length(registry[name]) for name in names]
    assert lengths == [384, 768, 1024, 2560, 4096]


def test_a_failing_dry_run_is_an_error_with_its_output(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"dry run failed: .*Snakefile"):
        dry_run("{}", tmp_path)
