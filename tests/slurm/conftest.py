"""The test cluster and its runs."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from cluster_run import (
    CONFIGURATION,
    TABLES,
    TRAINED,
    VECTORS,
    ClusterRun,
    serve_stand_in,
    slow_node,
)
from slurm_cluster import PACKAGES, SlurmCluster, missing_programs, slurm_cluster
from support import copy_project, succeed, wait_for


@pytest.fixture(scope="session")
def narrowed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the project with the configuration of these tests, before any run."""
    if missing_programs():
        pytest.skip(f"no {', '.join(missing_programs())}: install {PACKAGES}")
    folder = copy_project(tmp_path_factory.mktemp("narrowed") / "project")
    (folder / "config.yaml").write_text(yaml.safe_dump(CONFIGURATION), encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmCluster]:
    """Start a SLURM cluster for all tests of the session."""
    with slurm_cluster(tmp_path_factory.mktemp("slurm") / "cluster") as running:
        yield running


@pytest.fixture(scope="session")
def with_inputs(narrowed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the project with the inputs of its training and embedding jobs, made locally."""
    folder = tmp_path_factory.mktemp("inputs") / "project"
    shutil.copytree(narrowed, folder)
    succeed(folder, "--cores=2", "--omit-from", "fine_tune", "embed", "--", TRAINED, VECTORS)
    return folder


@pytest.fixture(scope="session")
def training_on_a_slow_node(
    with_inputs: Path, cluster: SlurmCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ClusterRun]:
    """Start a training that its time limit will kill; `study` has the second attempt requeued."""
    folder = tmp_path_factory.mktemp("training") / "project"
    shutil.copytree(with_inputs, folder)
    slow_node(folder)
    run = ClusterRun(
        *(cluster, folder, "--slurm-requeue"),
        *("--set-resources", "fine_tune:runtime=2 ** (attempt - 1)", "--", TRAINED),
    )
    yield run
    run.end()


@pytest.fixture(scope="session")
def served_model(
    cluster: SlurmCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ClusterRun]:
    """Start a run of IdioTS with a served model whose job is killed by its time limit."""
    folder = copy_project(tmp_path_factory.mktemp("served") / "project")
    serve_stand_in(folder)
    run = ClusterRun(
        cluster,
        folder,
        "--slurm-status-command=squeue",
        "--set-resources",
        "serve:runtime=2 ** (attempt - 1)",
        "--",
        "paper_tables/idiots_detection.tex",
    )
    yield run
    run.end()


@pytest.fixture(scope="session")
def study(
    cluster: SlurmCluster,
    narrowed: Path,
    training_on_a_slow_node: ClusterRun,
    served_model: ClusterRun,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[ClusterRun]:
    """Finish a run of the study while the training and the served model wait.

    Meanwhile, SLURM starts the training's second attempt again, as after a preemption.
    """
    del served_model
    folder = tmp_path_factory.mktemp("study") / "project"
    shutil.copytree(narrowed, folder)
    run = ClusterRun(cluster, folder, "--", *TABLES)
    training = training_on_a_slow_node
    wait_for(
        lambda: training.is_running("fine_tune", attempt=2) or training.process.poll(), seconds=600
    )
    cluster.run("scontrol", "requeue", training.jobs()["fine_tune"][1]["JobId"])
    run.wait()
    yield run
    run.end()
