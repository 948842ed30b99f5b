"""Count the jobs and the downloads that a run still needs, according to a dry run."""

import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from pieline.core.errors import UserError
from pieline.core.files import write_text
from pieline.models.fetching import estimated_bytes
from pieline.models.hub import hub_checkpoint
from pieline.models.registry import Registry
from pieline.studies.idiolink.paths import base_of

_RULE = re.compile(r"^ *(?:local)?rule (\w+):$")
_FIELDS = ("output", "wildcards", "resources")
_FIELD = re.compile(rf"^ +({'|'.join(_FIELDS)}): (.*)$")


class PlannedJob(NamedTuple):
    """A job listed by a dry run.

    Attributes:
        rule: Rule name.
        model: Name of the model, or of the base of a fine-tuned model; empty for jobs without one.
        gpus: Number of GPUs that the job requests.
        outputs: Output files.
    """

    rule: str
    model: str
    gpus: int
    outputs: Sequence[str]


class ModelJobs(NamedTuple):
    """Jobs of one model, or all jobs without a model.

    Attributes:
        model: Name of the model; empty for jobs without one.
        jobs: Number of jobs.
        on_gpus: Number of jobs that request a GPU.
        download: Bytes of weights to download from the Hub; None if the entry states no size.
    """

    model: str
    jobs: int
    on_gpus: int
    download: int | None


def dry_run(config: str, root: Path) -> str:
    """Return the output of a Snakemake dry run in the working directory.

    Args:
        config: Configuration as JSON.
        root: Project folder.

    Raises:
        UserError: The dry run fails; the message contains the last line of its output.
    """
    with TemporaryDirectory() as folder:
        file = Path(folder, "config.json")
        write_text(file, config)
        command = [sys.executable, "-m", "snakemake", "--snakefile", str(root / "Snakefile")]
        command += ["--configfile", str(file), "--directory", ".", "-n", "-p", "all"]
        result = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
    if result.returncode:
        lines = [line for line in result.stdout.splitlines() if not line.startswith("left out of ")]
        raise UserError(f"dry run failed: {lines[-1] if lines else ''}", where=root / "Snakefile")
    return result.stdout


def read_plan(text: str) -> list[PlannedJob]:
    """Parse the jobs, except that of rule `all`, from the output of a dry run."""
    jobs: list[dict[str, str]] = []
    for line in text.splitlines():
        if rule := _RULE.match(line):
            jobs.append({"rule": rule[1]} | dict.fromkeys(_FIELDS, ""))
        elif jobs and (field := _FIELD.match(line)):
            jobs[-1][field[1]] = field[2]
    return [
        PlannedJob(
            job["rule"],
            base_of(_pairs(job["wildcards"]).get("model", "")),
            int(_pairs(job["resources"]).get("gpu", "0")),
            job["output"].split(", "),
        )
        for job in jobs
        if job["rule"] != "all"
    ]


def remade(plan: Iterable[PlannedJob]) -> set[str]:
    """Return all output files of the planned jobs."""
    return {path for job in plan for path in job.outputs}


def _pairs(text: str) -> dict[str, str]:
    return dict(part.split("=", maxsplit=1) for part in text.split(", ") if "=" in part)


def jobs_by_model(plan: Iterable[PlannedJob], registry: Registry) -> list[ModelJobs]:
    """Count the jobs of a plan by model, sorted by name; the jobs without a model come last."""
    by_model: defaultdict[str, list[PlannedJob]] = defaultdict(list)
    for job in plan:
        by_model[job.model].append(job)
    return [
        ModelJobs(model, len(jobs), sum(job.gpus > 0 for job in jobs), _download(model, registry))
        for model, jobs in sorted(by_model.items(), key=lambda item: (not item[0], item[0]))
    ]


def _download(model: str, registry: Registry) -> int | None:
    weights = hub_checkpoint(registry[model]) if model else None
    return estimated_bytes(registry[model]) if weights and not weights.cached() else 0
