"""Helpers shared by several test folders."""

import atexit
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from pieline.studies.jam.bio import TAG_IDS
from pieline.studies.jam.records import Original

ROOT = Path(__file__).parents[1]
MIRROR = Path(os.environ.get("PIELINE_MIRROR") or ROOT.parent / "shared" / "mirror")
OUTPUTS = {"results", "paper_tables", "runs", "logs"}
OF_THE_USER = {"models.local.yaml", "weights"}
"""Ignored files in the root that users create; tests must not depend on them."""

needs_mirror = pytest.mark.skipif(
    not MIRROR.is_dir(), reason=f"the papers' real data is not here: {MIRROR} (PIELINE_MIRROR)"
)


class Forks:
    """Factory of processes that are forked from one that has already done the imports.

    The imports of Snakemake take longer than most tests.

    Args:
        imports: Python code to run once at the start.
    """

    SERVER = """
import gc, json, os, sys
exec(sys.argv[1])
# Garbage collection in a child would touch, and thus copy, all objects.
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
        """Run Python code with arguments in `sys.argv`."""
        assert self._server.stdin
        assert self._server.stdout
        limit = threading.Timer(3600, self._server.kill)
        limit.start()
        with tempfile.TemporaryDirectory() as folder:
            request = json.dumps([folder, environment, code, arguments])
            print(request, file=self._server.stdin, flush=True)
            exit_code = int(self._server.stdout.readline())
            limit.cancel()
            outputs = (Path(folder, name).read_text("utf-8") for name in ("stdout", "stderr"))
            return subprocess.CompletedProcess(arguments, exit_code, *outputs)


@cache
def _snakemake() -> Forks:
    # The second line contains imports that happen while rules are read. Modules that read the
    # environment on import (tqdm, huggingface_hub) and the library itself must not be included.
    return Forks(
        "import snakemake.cli, snakemake.storage, smart_open, snakemake.executors.dryrun, nbformat;"
        "import grimp, httpx2, filelock, zstandard, click, rapidfuzz, difflib, statistics;"
        "snakemake.cli.get_argument_parser();"
        # Runs are too short to benefit from garbage collection.
        "gc.disable()"
    )


def run_snakemake(
    folder: Path,
    *arguments: str,
    as_users_do: bool = False,
    environment: Mapping[str, str] | None = None,
    first: str = "pass",
) -> subprocess.CompletedProcess[str]:
    """Run snakemake in a folder that contains the project.

    Args:
        folder: Working directory with the project.
        arguments: Arguments of snakemake.
        as_users_do: Whether to unset OMP_NUM_THREADS, so that jobs choose their number of threads.
        environment: Environment variables to add.
        first: Python statement to run first, after which the library can be imported.
    """
    library = str(folder / "src")
    variables = os.environ | {"PYTHONPATH": library} | (environment or {})
    if as_users_do:
        variables.pop("OMP_NUM_THREADS", None)
    return _snakemake().run(
        f"os.chdir({str(folder)!r}); sys.path.insert(0, {library!r}); {first}\n"
        "snakemake.cli.main()",
        *arguments,
        environment=variables,
    )


def succeed(folder: Path, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run snakemake as `run_snakemake` does, and fail if it fails."""
    result = run_snakemake(folder, *arguments, **options)
    assert result.returncode == 0, result.stderr[-4000:]
    return result


def wait_for(condition: Callable[[], object], seconds: float = 180.0) -> None:
    """Wait until a condition holds; fail if it does not hold in time."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.005)


def copy_project(target: Path) -> Path:
    """Copy the project without outputs and hidden files, but with the compiled library."""

    def not_copied(folder: str, names: list[str]) -> set[str]:
        hidden = {name for name in names if name.startswith(".")}
        if not Path(folder).is_relative_to(ROOT / "src"):
            hidden.add("__pycache__")
        if Path(folder) == ROOT / "recordings":
            hidden |= {name for name in names if name == "ask" or name.startswith("spending.")}
        return hidden | OUTPUTS | OF_THE_USER if Path(folder) == ROOT else hidden

    shutil.copytree(ROOT, target, ignore=not_copied)
    return target


def copy_run(run: Path, target: Path) -> Path:
    """Copy a project with its outputs; weights are linked, since no test changes them."""

    def copy(source: str, place: str) -> None:
        (os.link if source.endswith(".safetensors") else shutil.copy2)(source, place)

    return Path(shutil.copytree(run, target, symlinks=True, copy_function=copy))


def output_digests(folder: Path) -> dict[str, str]:
    """Return the digest of each table, figure and metric file by path."""
    files = [*(folder / "paper_tables").rglob("*"), *(folder / "results/metrics").rglob("*.json")]
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(files)
        if path.is_file()
    }


def released_row(item: Original) -> dict[str, Any]:
    """Convert an original to the format of the released `id10m_fixed/<language>.json`."""
    return {
        "sentence": item.sentence,
        "PIE": list(item.pies),
        "true_idioms": list(item.true_idioms),
        "is_figurative": item.is_figurative,
        "tokens": list(item.tokens),
        "tags": list(item.tags),
        "tag_ids": [TAG_IDS[tag] for tag in item.tags],
        "was_fixed": item.was_fixed,
    }
