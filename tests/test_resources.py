"""Jobs of a dry run, and their number and downloads by model."""

from pathlib import Path

import pytest
from support import ROOT

from pieline.core.errors import UserError
from pieline.models.registry import load_registry
from pieline.resources import ModelJobs, PlannedJob, dry_run, jobs_by_model, read_plan

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


def test_the_jobs_of_a_dry_run() -> None:
    assert read_plan(DRY_RUN) == [
        PlannedJob("raw_file", "", 0, ["results/raw/texts.json"]),
        PlannedJob(
            "idiolink_dataset", "", 0, ["results/datasets/a.jsonl", "results/datasets/b.jsonl"]
        ),
        PlannedJob("embed", "e5-mistral", 2, ["vectors.npy"]),
    ]


def test_jobs_and_downloads_by_model() -> None:
    plan = [
        PlannedJob("table", "", 0, []),
        PlannedJob("fine_tune", "bge-m3", 1, []),
        PlannedJob("rank_by_embedding", "bge-m3", 0, []),
        PlannedJob("unpack_weights", "smollm2-135m", 0, []),
    ]
    assert jobs_by_model(plan, load_registry(ROOT / "models.yaml")) == [
        ModelJobs("bge-m3", 2, 1, 4 * 568_000_000),
        ModelJobs("smollm2-135m", 1, 0, 0),
        ModelJobs("", 1, 0, 0),
    ]


def test_a_failing_dry_run_is_an_error_with_its_output(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"dry run failed: .*Snakefile"):
        dry_run("{}", tmp_path)
