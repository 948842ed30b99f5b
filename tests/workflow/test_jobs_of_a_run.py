"""Jobs started by Snakemake: working folder, number of threads, and interruption of the run."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from support import ROOT, copy_project, succeed

TARGETS = [
    "paper_tables/idiolink_bm25.tex",
    "paper_tables/idiots_dataset.tex",
    "results/datasets/jam/english.jsonl",
]


@pytest.mark.full
def test_runs_in_a_path_with_a_space_with_a_long_temporary_folder_and_without_patches(
    tmp_path: Path,
) -> None:
    """Unquoted commands and long socket paths would fail; `pieline.patches` is only for speed."""
    project = copy_project(tmp_path / "the project's folder")
    temporary = tmp_path / "/".join(["temporary" * 5] * 3)
    temporary.mkdir(parents=True)
    assert len(str(temporary)) > 108
    variables = {"TMPDIR": str(temporary), "PIELINE_NO_PATCHES": "1"}
    succeed(project, "--cores", "1", *TARGETS, environment=variables)
    assert all((project / target).exists() for target in TARGETS)
    logs = [path for path in (project / "logs").rglob("*.log") if path.is_file()]
    assert len(logs) >= 10


SNAKEFILE = """
rule job:
    output: "out.txt"
    log: "job.log"
    threads: 2
    script: "job.py"
"""


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Create a folder with a workflow of one job, whose script the test writes."""
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    return tmp_path


def script(text: str) -> str:
    return f"from pieline.core.jobs import start_log\nstart_log(snakemake.log[0])\n{text}"


def test_a_job_uses_the_threads_of_its_rule(small: Path) -> None:
    (small / "job.py").write_text(
        script(
            "import numpy, threadpoolctl\n"
            "with open(snakemake.output[0], 'w') as out:\n"
            "    print([pool['num_threads'] for pool in threadpoolctl.threadpool_info()], file=out)"
        )
    )
    variables = {"PYTHONPATH": str(ROOT / "src")}
    succeed(small, "--cores", "2", as_users_do=True, environment=variables)
    assert (small / "out.txt").read_text() == "[2]\n"


def test_an_interrupted_run_leaves_no_process_and_reports_its_jobs(small: Path) -> None:
    (small / "job.py").write_text(
        script("import sys, time; print('waiting', file=sys.stderr); time.sleep(600)")
    )
    run = subprocess.Popen(
        [sys.executable, "-m", "snakemake", "--cores", "2"],
        cwd=small,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    log, end = small / "job.log", time.monotonic() + 180
    while not (log.exists() and log.read_text()):
        assert run.poll() is None
        assert time.monotonic() < end
        time.sleep(0.05)
    started = psutil.Process(run.pid).children(recursive=True)
    assert started
    # As with Ctrl-C.
    os.killpg(run.pid, signal.SIGINT)
    assert run.wait(timeout=120) != 0
    _, alive = psutil.wait_procs(started, timeout=120)
    assert alive == []
    assert log.read_text() == "waiting\ninterrupted\n"
