"""Progress is a bar on a terminal and lines in a pipe, such as a job's log."""

import os
import re
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from support import ROOT

JOB = """
import sys, time
from pieline.core import progress
progress.FIRST_S, progress.EVERY_S = PAUSE / 2, PAUSE * 3 / 4
with progress.Progress(total=4, desc="Test model", unit="answers") as bar:
    for number in range(4):
        time.sleep(PAUSE)
        bar.set_postfix_str("1 failed, $0.0100", refresh=False)
        bar.update()
print("done", file=sys.stderr)
"""


def run(
    code: str, stderr: int, folder: Path | None = None, pause: float = 0.1
) -> "subprocess.CompletedProcess[str]":
    """Run a job with this file descriptor as stderr, and with pauses between the answers."""
    return subprocess.run(
        [sys.executable, "-c", f"PAUSE = {pause}\n{code}"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        stderr=stderr,
        text=True,
        check=True,
        timeout=120,
    )


@pytest.fixture
def terminal() -> tuple[int, int]:
    """Open a terminal and return both ends; output can be read from the first."""
    master, slave = os.openpty()
    termios.tcsetwinsize(slave, (24, 100))
    os.set_blocking(master, False)
    return master, slave


def check_lines(stderr: str) -> None:
    *lines, last, done = stderr.splitlines()
    assert done == "done"
    assert len(lines) >= 3
    assert lines[0].startswith("Test model: 0 of 4 answers, ")
    pattern = (
        r"Test model: 4 of 4 answers, 1 failed, \$0\.0100, .* answers/s, 00:00 elapsed, 00:00 left"
    )
    assert re.fullmatch(pattern, last)


def test_a_bar_is_drawn_on_a_terminal(terminal: tuple[int, int]) -> None:
    master, slave = terminal
    run(JOB, slave, pause=0.4)
    drawn = os.read(master, 1 << 16).decode()
    assert re.search(r"\rTest model:  50%\|█+.* 2/4 .*1 failed, \$0\.0100", drawn)
    assert drawn.endswith("\rdone\r\n"), "the bar is gone at the end"


def test_a_terminal_without_a_size_gets_lines() -> None:
    master, slave = os.openpty()
    run(JOB, slave)
    *lines, done = os.read(master, 1 << 16).decode().split("\r\n")[:-1]
    assert done == "done"
    assert all(re.match(r"Test model: \d of 4 answers, ", line) for line in lines), lines
    assert len(lines) >= 3


def test_the_log_of_a_job_and_its_terminal_get_lines(
    tmp_path: Path, terminal: tuple[int, int]
) -> None:
    master, slave = terminal
    run(f"from pieline.core.jobs import start_log\nstart_log('log')\n{JOB}", slave, tmp_path)
    log = (tmp_path / "log").read_text(encoding="utf-8")
    check_lines(log)
    assert os.read(master, 1 << 16).decode().replace("\r\n", "\n") == log


def test_quick_or_hidden_progress_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    from pieline.core.progress import Progress

    assert list(Progress(range(3), desc="quick", unit="queries")) == [0, 1, 2]
    assert list(Progress(range(3), desc="hidden", unit="queries", shown=False)) == [0, 1, 2]
    assert capsys.readouterr() == ("", "")
