"""The default run with profiles/slurm is byte-identical to a local run."""

import os
from pathlib import Path

import pytest
from cluster_run import ClusterRun, contents, needs_slurm
from slurm_cluster import slurm_cluster
from support import copy_project

pytestmark = [
    pytest.mark.full,
    needs_slurm,
    pytest.mark.skipif(
        not os.environ.get("PIELINE_SLURM_DEFAULT_RUN"),
        reason="runs everything a second time; set PIELINE_SLURM_DEFAULT_RUN=1",
    ),
]


def test_the_default_run_is_byte_identical_to_a_local_one(
    default_run: Path, tmp_path: Path
) -> None:
    folder = copy_project(tmp_path / "project")
    with slurm_cluster(tmp_path / "cluster") as cluster:
        run = ClusterRun(cluster, folder, "all")
        try:
            run.wait(seconds=3000)
            jobs = run.jobs()
        finally:
            run.end()
    print(f"{sum(map(len, jobs.values()))} submissions")

    assert {job["JobState"] for of_rule in jobs.values() for job in of_rule} == {"COMPLETED"}
    with_gpu = {name for name, of_rule in jobs.items() for job in of_rule if "TresPerJob" in job}
    # Contrastive training, and attention of the larger model.
    assert with_gpu == {"fine_tune", "jam_attention"}
    on_gpu = [job for name in with_gpu for job in jobs[name] if "TresPerJob" in job]
    assert {(job["Partition"], job["TresPerJob"]) for job in on_gpu} == {("gpu", "gres:gpu:1")}

    stages = ("paper_tables", "results/datasets", "results/predictions", "results/metrics")
    expected, outputs = contents(default_run, *stages), contents(folder, *stages)
    assert any(name.endswith(".tex") for name in expected)
    assert sorted(outputs) == sorted(expected)
    assert [name for name in expected if outputs[name] != expected[name]] == []
