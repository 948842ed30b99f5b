"""The workflow on a real SLURM: submissions, results, and jobs killed by their time limit."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from cluster_run import TABLES, TRAINING, VECTORS, ClusterRun, contents, needs_slurm
from llm.serving_cases import notes
from slurm_cluster import SlurmCluster
from support import succeed, wait_for

from pieline.llm.recordings import read_lines

pytestmark = [pytest.mark.full, needs_slurm]


def test_numbers_equal_those_of_a_local_run(study: ClusterRun, default_run: Path) -> None:
    stages = ("results/datasets", "results/predictions", "results/metrics")
    outputs, expected = contents(study.folder, *stages), contents(default_run, *stages)
    assert any(name.endswith(".run.gz") for name in outputs)
    assert any(name.startswith("results/metrics") for name in outputs)
    assert [name for name in outputs if outputs[name] != expected[name]] == []


def test_tables_equal_those_of_a_local_run(study: ClusterRun) -> None:
    outputs = contents(study.folder, "paper_tables")
    assert set(TABLES) <= set(outputs)
    succeed(study.folder, "--cores=1", "--forcerun=table", "--", *TABLES)
    assert contents(study.folder, "paper_tables") == outputs


def test_small_jobs_share_submissions_and_take_no_gpu(study: ClusterRun) -> None:
    jobs = study.jobs()
    assert {job["JobState"] for of_rule in jobs.values() for job in of_rule} == {"COMPLETED"}
    assert {len(of_rule) for of_rule in jobs.values()} == {1}
    groups = [name.split("_")[0] for name in jobs if name != "embed"]
    assert sorted(groups) == ["data", "scores", "tables"]
    embedding = jobs["embed"][0]
    assert embedding["Partition"] == "cpu"
    assert "TresPerJob" not in embedding
    log = Path(embedding["StdOut"])
    assert log.is_relative_to(study.folder / "logs" / "slurm" / "rule_embed")


def test_a_submission_starts_no_snakemake_for_each_of_its_jobs(study: ClusterRun) -> None:
    """SLURM's executor would start them with `srun`."""
    assert study.cluster.jobs()
    assert study.cluster.steps() == []


def test_a_job_killed_by_its_time_limit_is_retried_with_more_resources(
    study: ClusterRun, training_on_a_slow_node: ClusterRun
) -> None:
    del study  # ran meanwhile
    training_on_a_slow_node.wait()
    jobs = training_on_a_slow_node.jobs()["fine_tune"]
    # On a busy machine, the second attempt can also time out; the third has four minutes.
    assert [job["JobState"] for job in jobs] == ["TIMEOUT"] * (len(jobs) - 1) + ["COMPLETED"]
    limits = ["00:01:00", "00:02:00", "00:04:00"]
    assert [job["TimeLimit"] for job in jobs] == limits[: len(jobs)]
    assert len(jobs) > 1
    memory = [int(re.search(r"mem=(\d+)M", job["TRES"])[1]) for job in jobs]  # type: ignore[index]
    assert memory == [memory[0] * 2**attempt for attempt in range(len(jobs))]
    assert {(job["Partition"], job["TresPerJob"]) for job in jobs} == {("gpu", "gres:gpu:1")}
    record = (training_on_a_slow_node.cluster.folder / "completed.txt").read_text()
    assert re.search(rf"JobId={jobs[0]['JobId']} .*JobState=TIMEOUT", record)


def test_a_preempted_job_is_started_again_with_the_same_memory(
    study: ClusterRun, training_on_a_slow_node: ClusterRun
) -> None:
    del study  # requeued it
    training_on_a_slow_node.wait()
    jobs = training_on_a_slow_node.jobs()["fine_tune"]
    assert [job["Restarts"] for job in jobs[:2]] == ["0", "1"]
    assert len({job["JobId"] for job in jobs}) == len(jobs)


def test_job_arrays_are_refused(narrowed: Path, cluster: SlurmCluster) -> None:
    run = ClusterRun(cluster, narrowed, "--slurm-array-jobs=all", "--", *TABLES)
    assert run.process.wait(timeout=300) == 2
    lines = run.output.read_text(encoding="utf-8").splitlines()
    (line,) = [line for line in lines if line.startswith("error: ")]
    assert line.startswith("error: --slurm-array-jobs is not supported; leave it out")
    assert run.jobs() == {}


@pytest.mark.parametrize(
    ("resources", "field", "value"),
    [
        (["gpu=1"], "TresPerJob", "gres:gpu:1"),
        (["gpu=1", "gpu_model='fake'"], "TresPerJob", "gres:gpu:fake:1"),
        (["gpu=0", "gres='gpu:fake:1'"], "TresPerNode", "gres:gpu:fake:1"),
        (["gpu=1", "constraint='large'"], "Features", "large"),
    ],
)
def test_gpus_are_requested_as_the_document_says(
    resources: list[str], field: str, value: str, with_inputs: Path, cluster: SlurmCluster
) -> None:
    settings = [f"embed:{each}" for each in resources]
    arguments = ("--nolock", "--set-resources", *settings, "--", VECTORS)
    run = ClusterRun(cluster, with_inputs, *arguments)

    def current() -> list[dict[str, str]]:
        """Return the job of this run, once it has started; earlier ones were canceled."""
        assert run.process.poll() is None, run.output.read_text(encoding="utf-8")[-3000:]
        jobs = run.jobs().get("embed", [])
        return [job for job in jobs if job["JobState"] == "RUNNING"]

    try:
        wait_for(current)
        (job,) = current()
        assert (job["Partition"], job[field]) == ("gpu", value)
    finally:
        run.end()
        for job in run.jobs().get("embed", []):
            cluster.run("scancel", "--full", job["JobId"])


def test_training_resumes_from_its_checkpoint(
    training_on_a_slow_node: ClusterRun, default_run: Path
) -> None:
    training_on_a_slow_node.wait()
    folder = training_on_a_slow_node.folder
    log = (folder / "logs/training/idiolink/sbert/sentence/paper/seed-42/training.log").read_text()
    assert "resuming after epoch 1\n" in log
    expected = contents(default_run, TRAINING)
    assert f"{TRAINING}/weights/model.safetensors" in expected
    outputs = contents(folder, TRAINING)
    assert sorted(outputs) == sorted(expected)
    assert [name for name in expected if outputs[name] != expected[name]] == []


def test_a_served_model_killed_by_its_time_limit_loses_no_answer(
    study: ClusterRun, served_model: ClusterRun
) -> None:
    del study  # ran meanwhile
    served_model.wait()
    jobs = served_model.jobs()["serve"]
    assert [job["JobState"] for job in jobs] == ["TIMEOUT"] * (len(jobs) - 1) + ["COMPLETED"]
    assert len(jobs) > 1
    assert {(job["Partition"], job["TresPerJob"]) for job in jobs} == {("gpu", "gres:gpu:1")}
    lives = notes(served_model.folder)
    assert len(lives) == len(jobs)
    left = [pid for life in lives for pid in life["pids"] if Path(f"/proc/{pid}").exists()]
    assert left == []
    asked = (served_model.folder / "notes.questions").read_text().splitlines()
    sentences = json.loads((served_model.folder / "data/sample/idiots/idiots.json").read_text())
    # Only the question that was running when the server was killed is asked again.
    assert len(set(asked)) == len(sentences)
    assert len(asked) == len(sentences) + 1
    (recorded,) = (served_model.folder / "recordings/idiots/stand-in").rglob("*.jsonl")
    keys = [line.key for line in read_lines(recorded)]
    assert len(keys) == len(set(keys)) == len(sentences)


def test_the_cluster_runs_a_command(tmp_path: Path) -> None:
    program = Path(__file__).with_name("slurm_cluster.py")
    result = subprocess.run(
        ["python3", str(program), "sinfo", "--noheader", "--format=%P %D %G"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.split("\n")[:2] == ["cpu* 1 (null)", "gpu 1 gpu:fake:2"]
