"""The Python that jobs of a rehearsal are forked from."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pieline.core.interpreter import spawn, write_command
from support import ROOT

SAYS = """
import os, sys
import json as imported_before
print(sys.argv, os.environ["SAID"], os.getcwd(), __name__)
print("to stderr", file=sys.stderr)
sys.exit(int(sys.argv[1]))
"""


SERVER = (
    *(sys.executable, "-c"),
    f"import sys; sys.path.insert(0, {str(ROOT / 'src')!r});"
    " from pieline.core import interpreter; exec(sys.argv.pop(1))",
)


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("interpreter")
    address = folder / "socket"
    write_command(folder, address)
    server = spawn([*SERVER, "interpreter.serve(int(sys.argv[1]), ['json', 'numpy'])"], address)
    yield folder / "python"
    server.kill()
    server.wait()


def run(command: Path, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [command, *arguments],
        cwd=folder,
        env=os.environ | {"SAID": "something"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize("served", [True, False])
def test_runs_a_script_as_python_does(command: Path, tmp_path: Path, served: bool) -> None:
    if not served:
        write_command(tmp_path, tmp_path / "nobody")
        command = tmp_path / "python"
    (tmp_path / "says.py").write_text(SAYS)
    result = run(command, "says.py", "3", "a b", folder=tmp_path)
    assert (result.returncode, result.stderr) == (3, "to stderr\n")
    assert result.stdout == f"['says.py', '3', 'a b'] something {tmp_path} __main__\n"


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_sums_are_made_by_as_many_threads_as_the_job_has(
    command: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", str(threads))
    (tmp_path / "tells.py").write_text(
        "import numpy, threadpoolctl\n"
        "print([each['num_threads'] for each in threadpoolctl.threadpool_info()])"
    )
    assert run(command, "tells.py", folder=tmp_path).stdout == f"[{threads}]\n"


def test_tells_an_error_and_a_text_to_end_with(command: Path, tmp_path: Path) -> None:
    (tmp_path / "fails.py").write_text("raise ValueError('told')")
    result = run(command, "fails.py", folder=tmp_path)
    assert result.returncode == 1
    assert result.stderr.endswith("ValueError: told\n")
    (tmp_path / "ends.py").write_text("raise SystemExit('one line')")
    result = run(command, "ends.py", folder=tmp_path)
    assert (result.returncode, result.stderr) == (1, "one line\n")


def test_a_job_killed_by_its_own_limits_tells_the_signal(command: Path, tmp_path: Path) -> None:
    (tmp_path / "dies.py").write_text("import os; os.kill(os.getpid(), 9)")
    assert run(command, "dies.py", folder=tmp_path).returncode == 128 + signal.SIGKILL


def test_a_child_does_not_outlive_its_command(command: Path, tmp_path: Path) -> None:
    (tmp_path / "waits.py").write_text(
        "import os, time; from pathlib import Path\n"
        "Path('name').write_text(str(os.getpid())); Path('name').rename('child'); time.sleep(600)"
    )
    asked = subprocess.Popen([command, "waits.py"], cwd=tmp_path)
    told = tmp_path / "child"
    while not told.exists():
        time.sleep(0.02)
    asked.kill()
    asked.wait()
    child = Path("/proc", told.read_text())
    end = time.monotonic() + 30
    while child.exists() and time.monotonic() < end:
        time.sleep(0.02)
    assert not child.exists()


def test_what_a_command_leaves_to_its_end_is_done(command: Path, tmp_path: Path) -> None:
    (tmp_path / "leaves.py").write_text(
        "import atexit, concurrent.futures, threading, time\n"
        "atexit.register(print, 'at its end', flush=True)\n"
        "pool = concurrent.futures.ThreadPoolExecutor(); pool.submit(print, 'in a pool')\n"
        "threading.Thread(target=lambda: (time.sleep(0.2), print('in a thread'))).start()"
    )
    result = run(command, "leaves.py", folder=tmp_path)
    assert result.stdout.splitlines() == ["in a pool", "in a thread", "at its end"]


def test_few_scripts_are_forked_where_models_can_be_loaded(tmp_path: Path) -> None:
    address = tmp_path / "socket"
    write_command(tmp_path, address, models=["embeds.py"])
    for name in ("embeds.py", "counts.py"):
        told = "import sys; print([name for name in ('csv', 'wave') if name in sys.modules])"
        (tmp_path / name).write_text(told)
    code = (
        "interpreter.IMPORTED, interpreter.IMPORTED_FOR_MODELS = ['csv'], ['wave'];"
        " interpreter.serve_both(*map(int, sys.argv[1:]))"
    )
    server = spawn([*SERVER, code], address, address.with_suffix(".models"))
    own = tmp_path / "python"
    assert run(own, "embeds.py", folder=tmp_path).stdout == "['csv', 'wave']\n"
    assert run(own, "counts.py", folder=tmp_path).stdout == "['csv']\n"
    server.kill()
    server.wait()
    # The other ends with it.
    waited = time.monotonic() + 10
    while run(own, "embeds.py", folder=tmp_path).stdout != "[]\n":
        assert time.monotonic() < waited


def test_a_command_waits_for_a_server_that_is_importing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("slow.py").write_text(
        "import time; from pathlib import Path\nwhile not Path('asked').exists(): time.sleep(0.02)"
    )
    Path("tells.py").write_text("import sys; print('slow' in sys.modules)")
    write_command(tmp_path, tmp_path / "socket")
    server = spawn([*SERVER, "interpreter.serve(int(sys.argv[1]), ['slow'])"], tmp_path / "socket")
    asked = subprocess.Popen(["./python", "tells.py"], stdout=subprocess.PIPE, text=True)
    time.sleep(0.2)
    assert asked.poll() is None
    Path("asked").touch()
    assert asked.communicate(timeout=60)[0] == "True\n"
    server.kill()
    server.wait()


def test_commands_run_by_themselves_where_the_server_cannot_import(tmp_path: Path) -> None:
    (tmp_path / "says.py").write_text(SAYS)
    write_command(tmp_path, tmp_path / "socket")
    server = spawn(
        [*SERVER, "interpreter.serve(int(sys.argv[1]), ['no_such_module'])"], tmp_path / "socket"
    )
    # While it tries, and when it has ended.
    for _ in range(2):
        result = run(tmp_path / "python", "says.py", "3", folder=tmp_path)
        assert (result.returncode, result.stderr) == (3, "to stderr\n")
        server.wait(60)


def test_a_script_that_is_to_be_measured_is_run_by_a_python_of_its_own(
    command: Path, tmp_path: Path
) -> None:
    address = command.with_name("socket")
    write_command(tmp_path, address, alone=["tells.py"])
    (tmp_path / "tells.py").write_text(
        "import sys; print('pieline.core.interpreter' in sys.modules)"
    )
    (tmp_path / "others.py").write_text((tmp_path / "tells.py").read_text())
    own = tmp_path / "python"
    assert [run(own, name, folder=tmp_path).stdout for name in ("tells.py", "others.py")] == [
        "False\n",
        "True\n",
    ]
