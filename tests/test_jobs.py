"""The setup of rule scripts: log files and one-line user errors."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import pytest
from support import ROOT
from threadpoolctl import threadpool_info, threadpool_limits

from pieline.core.errors import UserError
from pieline.core.files import write_text
from pieline.core.jobs import job, pin_threads
from pieline.core.sidecars import load_sidecar, sidecar_of, write_sidecar

WAITS = "import time; print('waiting', file=sys.stderr); time.sleep(600)"


def start_job(folder: Path, code: str, **environment: str) -> "subprocess.Popen[str]":
    """Start Python code as a job that logs to `folder/log`."""
    begin = (
        "import os, subprocess, sys\nfrom pieline.core.jobs import start_log\nstart_log('log')\n"
    )
    return subprocess.Popen(
        [sys.executable, "-c", begin + code],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")} | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run_job(folder: Path, code: str) -> tuple[int, str]:
    """Return the exit code of a job and its log, which equals its stderr."""
    job = start_job(folder, code)
    _, stderr = job.communicate(timeout=120)
    log = (folder / "log").read_text(encoding="utf-8")
    assert log == stderr
    return job.returncode, log


def test_the_log_contains_stderr_of_the_job_and_its_children(tmp_path: Path) -> None:
    code = """
print("on stdout")
print("first", file=sys.stderr)
subprocess.run(["sh", "-c", "echo of a child >&2"], check=True)
os.write(2, b"a line\\n")
print("last, ünd no end", end="", file=sys.stderr)
"""
    assert run_job(tmp_path, code) == (0, "first\nof a child\na line\nlast, ünd no end")


@pytest.mark.parametrize(
    ("code", "line"),
    [
        (
            "from pieline.core.errors import UserError\n"
            "raise UserError('not JSON', where='a.json', hint='repair it')",
            "error: a.json: not JSON; repair it\n",
        ),
        ("open('nowhere')", "error: nowhere: No such file or directory; check path, "),
        ("raise KeyboardInterrupt", "interrupted\n"),
    ],
)
def test_a_user_error_is_one_line(tmp_path: Path, code: str, line: str) -> None:
    status, log = run_job(tmp_path, code)
    assert status != 0
    assert log.startswith(line)
    assert log.count("\n") == 1


@pytest.mark.parametrize("error", ["ValueError('unexpected')", "BrokenPipeError()"])
def test_any_other_error_keeps_its_traceback(tmp_path: Path, error: str) -> None:
    status, log = run_job(tmp_path, f"raise {error}")
    assert status == 1
    assert log.startswith("Traceback (most recent call last):\n")
    assert log.splitlines()[-1].startswith(error.partition("(")[0])


def test_the_exit_code_of_a_job_is_kept_and_its_log_complete(tmp_path: Path) -> None:
    long = "for _ in range(20_000): sys.stderr.write('x' * 99 + '\\n')\nsys.exit(3)"
    code, log = run_job(tmp_path, long)
    assert (code, len(log)) == (3, 2_000_000)
    assert run_job(tmp_path, "sys.exit('one line')") == (1, "one line\n")


def test_output_at_exit_is_logged(tmp_path: Path) -> None:
    code = """
import atexit, threading, time
atexit.register(print, "at its end", file=sys.stderr)
say = lambda: (time.sleep(0.2), print("in a thread", file=sys.stderr))
threading.Thread(target=say).start()
"""
    assert run_job(tmp_path, code) == (0, "in a thread\nat its end\n")


def test_an_interrupted_job_logs_why_it_ended(tmp_path: Path) -> None:
    """Ctrl-C reaches all processes of a terminal, including the one that writes the log."""
    job = start_job(tmp_path, WAITS)
    assert job.stderr
    assert job.stderr.readline() == "waiting\n"
    for pid in (job.pid, *children(job.pid)):
        os.kill(pid, signal.SIGINT)
    assert job.communicate(timeout=120)[1] == "interrupted\n"
    assert job.returncode != 0
    assert (tmp_path / "log").read_text() == "waiting\ninterrupted\n"


def children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(word) for word in text.split()]


def test_a_process_that_outlives_a_job_does_not_block_it(tmp_path: Path) -> None:
    """An example is a server that a child process has started and that keeps stderr open."""
    code = """
print("began", file=sys.stderr)
subprocess.run(["sh", "-c", "sleep 60 & echo $!"], check=True)
"""
    began = time.monotonic()
    job = start_job(tmp_path, code)
    assert job.stdout
    sleeping = int(job.stdout.readline())
    try:
        assert job.wait(timeout=120) == 0
        assert time.monotonic() - began < 50
        assert (tmp_path / "log").read_text() == "began\n"
    finally:
        os.kill(sleeping, signal.SIGKILL)


def test_a_killed_job_leaves_no_process(tmp_path: Path) -> None:
    job = start_job(tmp_path, WAITS)
    assert job.stderr
    assert job.stderr.readline() == "waiting\n"
    (tee,) = children(job.pid)
    job.kill()
    assert job.communicate(timeout=120)[1] == ""
    end = time.monotonic() + 120
    while Path(f"/proc/{tee}").exists() and time.monotonic() < end:
        time.sleep(0.02)
    assert not Path(f"/proc/{tee}").exists()
    assert (tmp_path / "log").read_text() == "waiting\n"


def test_a_job_runs_even_if_its_log_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    job = start_job(tmp_path, "print('done', file=sys.stderr)")
    _, stderr = job.communicate(timeout=120)
    assert job.returncode == 0
    assert "log: Is a directory" in stderr
    assert stderr.endswith("done\n")


def test_every_library_uses_the_threads_of_the_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    import numpy as np
    import torch

    monkeypatch.setattr(os, "environ", os.environ.copy())
    with threadpool_limits():
        threads = torch.get_num_threads()
        for number in (2, 1):
            pin_threads(number)
            assert np.ones((2, 2)).sum() == 4
            assert {pool["num_threads"] for pool in threadpool_info()} == {number}
            assert (os.environ["OMP_NUM_THREADS"], torch.get_num_threads()) == (str(number), number)
        torch.set_num_threads(threads)


def test_a_job_ends_when_its_snakemake_is_killed(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as snakemake:
        job = start_job(tmp_path, WAITS, PIELINE_SNAKEMAKE=str(snakemake.pid))
        with pytest.raises(subprocess.TimeoutExpired):
            job.wait(timeout=4)
        snakemake.kill()
    job.communicate(timeout=120)
    assert job.returncode == -signal.SIGTERM


def test_a_job_writes_sidecars_only_if_it_succeeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "environ", os.environ.copy())
    source, output, outside = "results/in.txt", "results/out.txt", "outside.json"
    write_text(source, "input")
    write_sidecar(source, made_from={})
    write_text("mine.csv", "of the user")
    rule_job = SimpleNamespace(
        input=[source, "mine.csv"],
        output=[output, outside],
        params={},
        log=["log"],
        threads=1,
        rule="a",
    )
    with patch("pieline.core.jobs.start_log") as start_log:
        with job(rule_job) as running:
            running.facts = {"source": "a test"}
            for path in rule_job.output:
                write_text(path, "output")
        start_log.assert_called_once_with("log")
        sidecar = load_sidecar(output)
        assert sidecar.made_from.keys() == {source, "mine.csv"}
        assert (sidecar.outputs, sidecar.source) == ([output], "a test")
        assert not Path(sidecar_of(outside)).exists()
        with pytest.raises(ZeroDivisionError), job(rule_job):
            write_text(output, f"{1 / 0}")
        assert not Path(sidecar_of(output)).exists()
        write_text(source, "edited")
        with pytest.raises(UserError, match=r"in\.txt: was changed"), job(rule_job):
            write_text(output, "not written")
        assert (Path(output).read_text(), Path(sidecar_of(output)).exists()) == ("output", False)
