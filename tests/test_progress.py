"""Progress is seen on a terminal also where stderr is a pipe, and elsewhere told in lines."""

import os
import re
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from support import ROOT, copy_project

JOB = """
import sys, time
from pieline.core import progress
progress.FIRST_S, progress.EVERY_S = 0.2, 0.3
with progress.Progress(total=4, desc="Test model", unit="answers") as bar:
    for number in range(4):
        time.sleep(0.4)
        bar.set_postfix_str("1 failed, $0.0100", refresh=False)
        bar.update()
print("done", file=sys.stderr)
"""


def run_through_tee(log: Path, **environment: str) -> str:
    """Run the job as the rules do; what it printed on stderr, which is also in the log."""
    done = subprocess.run(
        ["bash", "-c", '"$0" -c "$1" 2> >(tee "$2" >&2)', sys.executable, JOB, str(log)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), **environment},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert log.read_text() == done.stderr
    return done.stderr


@pytest.fixture
def terminal() -> tuple[int, str]:
    master, slave = os.openpty()
    termios.tcsetwinsize(slave, (24, 100))
    name = os.ttyname(slave)
    os.set_blocking(master, False)
    return master, name


def test_a_bar_is_drawn_on_the_terminal_behind_tee(
    tmp_path: Path, terminal: tuple[int, str]
) -> None:
    master, name = terminal
    assert run_through_tee(tmp_path / "log", PIELINE_TERMINAL=name) == "done\n"
    drawn = os.read(master, 1 << 16).decode()
    assert re.search(r"\rTest model:  50%\|█+.* 2/4 .*1 failed, \$0\.0100", drawn)
    assert drawn.endswith("\r"), "the bar is gone at the end"


def test_a_job_of_the_workflow_draws_on_the_terminal_of_the_run(
    tmp_path: Path, terminal: tuple[int, str]
) -> None:
    master, name = terminal
    project = copy_project(tmp_path / "project")
    module = project / "src/pieline/core/progress.py"
    module.write_text(module.read_text().replace("FIRST_S = 5.0", "FIRST_S = 0.0"))
    run = "idiolink/test/bm25/sentence/seed-0"
    arguments = ["--quiet", "all", "--cores", "1", f"results/predictions/{run}.run.gz"]
    with Path(name).open("wb", buffering=0) as stderr:
        subprocess.run(
            [sys.executable, "-m", "snakemake", *arguments],
            cwd=project,
            stderr=stderr,
            check=True,
            timeout=300,
        )
    assert re.search(r"\rsearch: +0%\|", os.read(master, 1 << 16).decode())
    assert (project / f"logs/predictions/{run}.log").read_text() == ""


@pytest.mark.parametrize("name", ["", "/nowhere/pts/9", os.devnull, "without a size"])
def test_without_a_terminal_there_are_lines(tmp_path: Path, name: str) -> None:
    if name == "without a size":
        name = os.ttyname(os.openpty()[1])
    *lines, last, done = run_through_tee(tmp_path / "log", PIELINE_TERMINAL=name).splitlines()
    assert done == "done"
    assert len(lines) >= 3
    assert lines[0].startswith("Test model: 0 of 4 answers, ")
    pattern = (
        r"Test model: 4 of 4 answers, 1 failed, \$0\.0100, .* answers/s, 00:01 gone, 00:00 left"
    )
    assert re.fullmatch(pattern, last)


def test_what_is_quick_or_not_shown_tells_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    from pieline.core.progress import Progress

    assert list(Progress(range(3), desc="quick", unit="queries")) == [0, 1, 2]
    assert list(Progress(range(3), desc="hidden", unit="queries", shown=False)) == [0, 1, 2]
    assert capsys.readouterr() == ("", "")
