"""Runs of the workflow on the test cluster, and their configuration."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from llm.serving_cases import served
from slurm_cluster import PACKAGES, SlurmCluster, missing_programs

needs_slurm = pytest.mark.skipif(
    bool(missing_programs()),
    reason=f"no {', '.join(missing_programs())}: install {PACKAGES}",
)

CONFIGURATION = {
    "studies": ["idiolink"],
    "idiolink": {
        "models": ["sbert"],
        "query_modes": ["sentence"],
        "compositions": ["full"],
        "finetuning": {"models": [], "train_modes": ["sentence"], "seeds": [42]},
    },
}
"""IdioLink's part of the default run, with few jobs per rule."""

TABLES = ("paper_tables/idiolink_zero_shot.tex",)

VECTORS = "results/predictions/idiolink/test/sbert/documents/seed-0.npy"

TRAINING = "results/training/idiolink/sbert/sentence/paper/seed-42"
TRAINED = f"{TRAINING}/training.json"

READABLE = json.dumps({"hasIdiom": False, "idiom": "", "meaning": "", "explanation": ""})

SNAKEMAKE = (sys.executable, "-m", "snakemake", "--profile=profiles/slurm")
IMPATIENT = (
    "--slurm-status-command=sacct",
    # The test cluster has no slow file system.
    "--slurm-init-seconds-before-status-checks=2",
    "--seconds-between-status-checks=2",
    "--latency-wait=5",
    # The nodes declare more CPUs than the machine has.
    "--max-threads=1",
)


def contents(folder: Path, *names: str) -> dict[str, bytes]:
    """Return the contents of all files in some folders, by path."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for name in names
        for path in sorted((folder / name).rglob("*"))
        if path.is_file()
    }


def slow_node(folder: Path) -> None:
    """Make the first training in a project freeze after it has written a checkpoint."""
    (folder / "slow_node").touch()
    (folder / "src" / "sitecustomize.py").write_text(
        f"""
import os, pathlib, signal, sys, threading, time

MARK = pathlib.Path({str(folder / "slow_node")!r})
CHECKPOINT = pathlib.Path({str(folder / TRAINING / "checkpoint.pt")!r})

def freeze():
    while not CHECKPOINT.exists():
        time.sleep(0.02)
    MARK.unlink()
    while True:  # SLURM wakes what it is about to end
        os.kill(os.getpid(), signal.SIGSTOP)

# A snakemake names the script as well, among the files that its job waits for.
if MARK.exists() and sys.orig_argv[1:] and sys.orig_argv[1].endswith("fine_tune.py"):
    threading.Thread(target=freeze, daemon=True).start()
""",
        encoding="utf-8",
    )


def serve_stand_in(folder: Path) -> None:
    """Make a project run IdioTS with a served model whose first server process stalls."""
    spec = served(folder, "stalls", parameters="7B")
    entry = spec.model_dump(mode="json", exclude_unset=True)
    sentences = json.loads((folder / "data/sample/idiots/idiots.json").read_text(encoding="utf-8"))
    answers = {each["en"]: READABLE for each in sentences}
    (folder / "notes.answers").write_text(json.dumps(answers), encoding="utf-8")
    with (folder / "models.yaml").open("a", encoding="utf-8") as stream:
        yaml.safe_dump({"stand-in": entry}, stream)
    asked = {"models": ["stand-in"], "settings": ["zero_shot"]}
    text = yaml.safe_dump({"studies": ["idiots"], "idiots": asked})
    (folder / "config.yaml").write_text(text, encoding="utf-8")


class ClusterRun:
    """Run with profiles/slurm in a separate copy of the project."""

    def __init__(self, cluster: SlurmCluster, folder: Path, *arguments: str) -> None:
        self.cluster, self.folder = cluster, folder
        self.output = folder / "snakemake.out"
        with self.output.open("w") as stream:
            self.process = subprocess.Popen(
                [*SNAKEMAKE, *IMPATIENT, *arguments],
                cwd=folder,
                env=cluster.environment | {"PYTHONPATH": str(folder / "src")},
                stdout=stream,
                stderr=subprocess.STDOUT,
            )

    def wait(self, seconds: int = 1200) -> None:
        """Wait until the run succeeds."""
        code = self.process.wait(timeout=seconds)
        assert code == 0, self.output.read_text(encoding="utf-8")[-6000:] + self.cluster.logs()

    def end(self) -> None:
        """Kill the run."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def is_running(self, rule: str, *, attempt: int) -> bool:
        """Return whether an attempt of a rule's only job runs."""
        jobs = self.jobs().get(rule, [])
        return len(jobs) == attempt and jobs[-1]["JobState"] == "RUNNING"

    def jobs(self) -> dict[str, list[dict[str, str]]]:
        """Return SLURM's records of the run's jobs by rule or group, oldest first."""
        jobs: dict[str, list[dict[str, str]]] = {}
        for job in self.cluster.jobs():
            if job["WorkDir"] == str(self.folder):
                name = job["Comment"].removeprefix("rule_").split("_wildcards_")[0]
                jobs.setdefault(name, []).append(job)
        return {
            name: sorted(jobs_of_name, key=lambda job: int(job["JobId"]))
            for name, jobs_of_name in jobs.items()
        }
