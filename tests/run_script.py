"""Run the script of a rule as Snakemake does, without Snakemake's start.

In a process of its own: `python tests/run_script.py NAME JSON`.
"""

import json
import runpy
import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from snakemake.iocontainers import InputFiles, OutputFiles, Params, Wildcards

SCRIPTS = Path(__file__).parents[1] / "scripts"


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
    """Run a script; `input` and `output` are files by name, or a list of them.

    Without a log, errors reach the caller.
    """

    def files(given: Any) -> dict[str, Any]:
        if not isinstance(given, Mapping):
            return {"toclone": [*map(str, given)]}
        plain = {
            key: [*map(str, value)] if isinstance(value, list) else str(value)
            for key, value in given.items()
        }
        return {"fromdict": plain}

    job = SimpleNamespace(
        input=InputFiles(**files(input)),
        output=OutputFiles(**files(output)),
        params=Params(fromdict=dict(params or {})),
        wildcards=Wildcards(fromdict={key: str(value) for key, value in (wildcards or {}).items()}),
        threads=threads,
        rule=rule or name,
        log=[log],
    )
    script = str(SCRIPTS / f"{name}.py")
    if log:
        runpy.run_path(script, init_globals={"snakemake": job}, run_name="__main__")
        return
    with patch("pieline.core.jobs.start_log"):
        runpy.run_path(script, init_globals={"snakemake": job}, run_name="__main__")


if __name__ == "__main__":
    run_script(sys.argv[1], **json.loads(sys.argv[2]))
