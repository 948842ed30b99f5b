"""What tests of several folders share."""

import atexit
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from pieline.core.interpreter import IMPORTED, spawn, write_command

ROOT = Path(__file__).parents[1]
MIRROR = Path(os.environ.get("PIELINE_MIRROR") or ROOT.parent / "shared" / "mirror")
OUTPUTS = {"results", "paper_tables", "runs", "logs", "models.local.yaml"}

needs_mirror = pytest.mark.skipif(
    not MIRROR.is_dir(), reason=f"the papers' real data is not here: {MIRROR} (PIELINE_MIRROR)"
)


class Forks:
    """Runs of a program, each in a process forked from one that has its imports.

    Those of Snakemake and of torch take longer than most of what tests run with them.

    Args:
        imports: Python code to begin with.
    """

    SERVER = """
import gc, json, os, sys
exec(sys.argv[1])
# Or each child would look through all of it, and so copy it.
gc.freeze()
for line in sys.stdin:
    folder, environment, code, arguments = json.loads(line)
    child = os.fork()
    if not child:
        for number, name in enumerate((os.devnull, f"{folder}/stdout", f"{folder}/stderr")):
            os.dup2(os.open(name, os.O_RDWR | os.O_CREAT), number)
        os.environ.clear()
        os.environ.update(environment)
        sys.argv[1:] = arguments
        exec(code)
        sys.exit()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""

    def __init__(self, imports: str) -> None:
        self._server = subprocess.Popen(
            [sys.executable, "-c", self.SERVER, imports],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        atexit.register(self._server.communicate)

    def run(
        self, code: str, *arguments: str, environment: dict[str, str]
    ) -> subprocess.CompletedProcess[str]:
        """Execute Python code, which finds the arguments in `sys.argv`."""
        assert self._server.stdin
        assert self._server.stdout
        limit = threading.Timer(1200, self._server.kill)
        limit.start()
        with tempfile.TemporaryDirectory() as folder:
            given = json.dumps([folder, environment, code, arguments])
            print(given, file=self._server.stdin, flush=True)
            told = int(self._server.stdout.readline())
            limit.cancel()
            said = (Path(folder, name).read_text("utf-8") for name in ("stdout", "stderr"))
            return subprocess.CompletedProcess(arguments, told, *said)


@cache
def _snakemake() -> Forks:
    # The last is what Snakemake imports when it reads its first file.
    return Forks(
        "import snakemake.cli, snakemake.storage, smart_open; snakemake.cli.get_argument_parser()"
    )


JOBS = """
import os, select, sys
sys.path.insert(0, sys.argv[1])
# Or litellm looks for prices in the network, thrice, and nothing is served meanwhile.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
from pieline.core import interpreter

run = interpreter._run

def run_with_its_own_library(arguments):
    for name in [name for name in sys.modules if name.partition(".")[0] == "pieline"]:
        del sys.modules[name]
    sys.path[:0] = os.environ["PYTHONPATH"].split(os.pathsep)
    run(arguments)

interpreter._run = run_with_its_own_library
listener = int(sys.argv[3])
# Of models, whose libraries take longest to import, not every worker is in need.
select.select([listener], [], [])
imported = sys.argv[2].split(",")
interpreter.serve(listener, [name for name in imported if not name.startswith("pieline.")])
"""


@cache
def _shared_python() -> Path:
    """A folder with the command `python` of interpreters that serve all runs of this process.

    The jobs of a small run import longer than they work, and no run has another's library.
    """
    folder = Path(tempfile.mkdtemp(prefix="python-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    rules = [
        part for path in ROOT.glob("rules/*.smk") for part in path.read_text().split("\nrule ")
    ]
    loads_models = [
        f"{name}.py"
        for rule in rules
        if "envs/gpu.yaml" in rule
        for name in re.findall(r"script\(\"(\w+)\"\)", rule)
    ]
    write_command(folder, folder / "socket", models=loads_models)
    for address, imported in (
        ("socket", (*IMPORTED, "litellm", "agno.models.litellm")),
        ("socket.models", ("torch", "transformers", "sentence_transformers")),
    ):
        command = [sys.executable, "-P", "-c", JOBS, str(ROOT / "src"), ",".join(imported)]
        spawn(command, folder / address)
    return folder


def run_snakemake(
    folder: Path, *arguments: str, as_users_do: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run snakemake in a folder that holds the project.

    Its jobs are forked from an interpreter that other runs share, unless it is to be run as users
    run it.
    """
    library, share = str(folder / "src"), ""
    environment = os.environ | {"PYTHONPATH": library}
    if as_users_do:
        # The workers' own setting would hide what a job leaves to the machine.
        environment.pop("OMP_NUM_THREADS", None)
    else:
        share = (
            "from pieline.core import interpreter; interpreter.WORTH_FORKING = 1;"
            " interpreter.start = lambda **_: os.environ.update("
            f"PATH={str(_shared_python())!r} + os.pathsep + os.environ['PATH']);"
        )
    return _snakemake().run(
        f"os.chdir({str(folder)!r}); sys.path.insert(0, {library!r}); {share} snakemake.cli.main()",
        *arguments,
        environment=environment,
    )


def training_script(name: str) -> Callable[..., int]:
    """A function that trains a small BERT by a script and gives the exit code.

    It takes the script's arguments, and as `before` Python code that runs first.
    """
    script = str(ROOT / "scripts" / f"{name}.py")
    forks = Forks(
        f"sys.path.insert(0, {str(ROOT / 'src')!r})\n"
        f"import runpy; runpy.run_path({script!r})\n"
        # What it loads only when it trains.
        "import seqeval.metrics, transformers.models.bert.modeling_bert"
    )

    def run(*arguments: str, before: str = "") -> int:
        code = f"{before}\nrunpy.run_path({script!r}, run_name='__main__')"
        result = forks.run(code, *arguments, environment=os.environ | {"OMP_NUM_THREADS": "1"})
        assert result.returncode <= 0, result.stderr
        return result.returncode

    return run


def copy_project(target: Path) -> Path:
    """Copy what a run needs of the project: no outputs, no caches, nothing hidden."""

    def not_copied(folder: str, names: list[str]) -> set[str]:
        hidden = {name for name in names if name.startswith((".", "__pycache__"))}
        return hidden | OUTPUTS if Path(folder) == ROOT else hidden

    shutil.copytree(ROOT, target, ignore=not_copied)
    return target


def copy_run(run: Path, target: Path) -> Path:
    """Copy a project in which something has run; weights, which no test changes, are shared."""

    def copy(source: str, place: str) -> None:
        (os.link if source.endswith(".safetensors") else shutil.copy2)(source, place)

    return Path(shutil.copytree(run, target, symlinks=True, copy_function=copy))


def output_digests(folder: Path) -> dict[str, str]:
    """Digest of each table, figure and metric file by its path."""
    files = [*(folder / "paper_tables").rglob("*"), *(folder / "results/metrics").rglob("*.json")]
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(files)
        if path.is_file()
    }
