"""Count the jobs and downloads that a run still needs, from the output of a dry run."""

import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from pieline.core.errors import UserError
from pieline.core.files import write_text
from pieline.models.fetching import estimated_bytes
from pieline.models.hub import hub_checkpoint
from pieline.models.registry import Registry
from pieline.plan import LEFT_OUT
from pieline.studies.idiolink.paths import base_of

_RULE = re.compile(r"^ *(?:local)?rule (\w+):$")
"""First line of a job in the output of a dry run."""
_FIELDS = ("output", "wildcards", "resources")
_FIELD = re.compile(rf"^ +({'|'.join(_FIELDS)}): (.*)$")
"""Further line of a job, with the name and the value of a field."""


class PlannedJob(NamedTuple):
    """A job listed by a dry run.

    Attributes:
        rule: Name of the rule.
        model: Name of the model; for a fine-tuned model, the name of the base model; empty for jobs
            without a model.
        gpus: Number of GPUs that the job requests.
        outputs: Output files.
    """

    rule: str
    model: str
    gpus: int
    outputs: Sequence[str]


class ModelJobs(NamedTuple):
    """Number of jobs of one model, or of all jobs without a model.

    Attributes:
        model: Name of the model; empty for jobs without a model.
        jobs: Number of jobs.
        on_gpus: Number of jobs that request a GPU.
        download: Bytes of weights to download from the Hub; None if the model's entry does not
            state the size of the weights.
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
        UserError: The dry run fails; the message contains Snakemake's last message.
    """
    with TemporaryDirectory() as folder:
        config_file = Path(folder, "config.json")
        write_text(config_file, config)
        command = [sys.executable, "-m", "snakemake", "--snakefile", str(root / "Snakefile")]
        command += ["--configfile", str(config_file), "--directory", ".", "-n", "-p", "all"]
        result = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
    if result.returncode:
        lines = [line for line in result.stdout.splitlines() if not line.startswith(LEFT_OUT)]
        last_message = lines[-1] if lines else ""
        raise UserError(f"dry run failed: {last_message}", where=root / "Snakefile")
    return result.stdout


def read_plan(dry_run_output: str) -> list[PlannedJob]:
    """Parse the jobs of all rules except `all` from the output of a dry run."""
    fields_of_jobs: list[dict[str, str]] = []
    for line in dry_run_output.splitlines():
        rule = _RULE.match(line)
        field = _FIELD.match(line)
        if rule:
            fields_of_jobs.append({"rule": rule[1], **dict.fromkeys(_FIELDS, "")})
        elif field and fields_of_jobs:
            name, value = field.groups()
            fields_of_jobs[-1][name] = value
    return [_planned_job(fields) for fields in fields_of_jobs if fields["rule"] != "all"]


def _planned_job(fields: Mapping[str, str]) -> PlannedJob:
    """Return a planned job, given the text of each field in the output of a dry run."""
    wildcards = _parse_assignments(fields["wildcards"])
    resources = _parse_assignments(fields["resources"])
    return PlannedJob(
        rule=fields["rule"],
        model=base_of(wildcards.get("model", "")),
        gpus=int(resources.get("gpu", "0")),
        outputs=fields["output"].split(", "),
    )


def _parse_assignments(text: str) -> dict[str, str]:
    """Parse text such as `model=sbert, seed=1`; return the values by name."""
    return dict(part.split("=", maxsplit=1) for part in text.split(", ") if "=" in part)


def remade(plan: Iterable[PlannedJob]) -> set[str]:
    """Return all output files of the planned jobs."""
    return {path for job in plan for path in job.outputs}


def jobs_by_model(plan: Iterable[PlannedJob], registry: Registry) -> list[ModelJobs]:
    """Count the jobs of each model, sorted by the model's name; jobs without a model come last."""
    jobs_of_model: defaultdict[str, list[PlannedJob]] = defaultdict(list)
    for job in plan:
        jobs_of_model[job.model].append(job)
    models = sorted(model for model in jobs_of_model if model)
    if "" in jobs_of_model:
        models.append("")
    return [
        ModelJobs(
            model=model,
            jobs=len(jobs_of_model[model]),
            on_gpus=len([job for job in jobs_of_model[model] if job.gpus]),
            download=_bytes_to_download(model, registry) if model else 0,
        )
        for model in models
    ]


def _bytes_to_download(model: str, registry: Registry) -> int | None:
    """Return the number of bytes of a model's weights to download from the Hub; None if unknown."""
    weights = hub_checkpoint(registry[model])
    if not weights or weights.cached():
        return 0
    return estimated_bytes(registry[model])
