"""Run a rule's script as Snakemake does, without starting Snakemake.

In a new process: `python tests/run_script.py NAME JSON`.
"""

import json
import os
import runpy
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar
from unittest.mock import patch

from snakemake.iocontainers import InputFiles, OutputFiles, Params, Wildcards
from support import Forks

ROOT = Path(__file__).parents[1]


T = TypeVar("T", InputFiles, OutputFiles)


def _by_name(files: Any) -> dict[str, Any]:
    if isinstance(files, Mapping):
        return dict(files)
    return {f"file_{number}": path for number, path in enumerate(files)}


def run_script(
    name: str,
    *,
    input: Any = (),
    output: Any = (),
    params: Mapping[str, Any] | None = None,
    wildcards: Mapping[str, Any] | None = None,
    threads: int = 1,
    rule: str = "",
    log: str = "",
) -> None:
    """Run a script with `input` and `output` files, given by name or as a list.

    Sidecars are only written and checked for files below results/ and paper_tables/. Without a log,
    errors are raised.
    """

    def files(kind: type[T], paths: Mapping[str, Any]) -> T:
        """Create the list of files that Snakemake passes to a script, by position and name."""
        result = kind()
        for name, value in paths.items():
            several = isinstance(value, list)
            start = len(result)
            result.extend(map(str, value) if several else [str(value)])
            result._set_name(name, start, len(result) if several else None)
        return result

    inputs, outputs = map(_by_name, (input, output))
    job = SimpleNamespace(
        input=files(InputFiles, inputs),
        output=files(OutputFiles, outputs),
        params=Params(fromdict=dict(params or {})),
        wildcards=Wildcards(fromdict={key: str(value) for key, value in (wildcards or {}).items()}),
        threads=threads,
        rule=rule or name,
        log=[log],
    )
    # Snakemake creates the folders of output files.
    for path in job.output:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
    script = str(ROOT / "scripts" / f"{name}.py")
    if log:
        runpy.run_path(script, init_globals={"snakemake": job}, run_name="__main__")
        return
    with patch("pieline.core.jobs.start_log"):
        runpy.run_path(script, init_globals={"snakemake": job}, run_name="__main__")


def start_script(
    name: str,
    *,
    before: str = "",
    environment: Mapping[str, str] | None = None,
    trains: bool = False,
    **job: Any,
) -> subprocess.CompletedProcess[str]:
    """Run a script in a new process and wait for it.

    Args:
        name: Script name.
        before: Python code to run first.
        environment: Environment variables to add.
        trains: Whether to fork from a process that has already imported torch.
        job: Arguments of `run_script`; must include a log.
    """
    code = f"{before}\nrunpy.run_path({__file__!r}, run_name='__main__')"
    folders = os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests")])
    added = {"PYTHONPATH": folders, "OMP_NUM_THREADS": "1", **(environment or {})}
    arguments = (name, json.dumps(job, default=str))
    if trains:
        return _with_torch().run(code, *arguments, environment=os.environ | added)
    return subprocess.run(
        [sys.executable, "-c", f"import runpy\n{code}", *arguments],
        env=os.environ | added,
        capture_output=True,
        text=True,
        check=False,
    )


@cache
def _with_torch() -> Forks:
    """Start a process with the imports of training scripts, which take seconds."""
    return Forks(
        f"sys.path[:0] = [{str(ROOT / 'src')!r}, {str(ROOT / 'tests')!r}]\n"
        "import runpy, sentence_transformers, sklearn.metrics\n"
        "import transformers.models.bert.modeling_bert"
    )


if __name__ == "__main__":
    run_script(sys.argv[1], **json.loads(sys.argv[2]))
