"""Estimate the jobs, GPU hours, downloads and disk space that a run still needs.

All values are estimated from the sizes of models and files, not measured.
"""

import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from pieline.core.errors import UserError
from pieline.core.files import read_text, write_text
from pieline.llm.costs import BYTES_PER_TOKEN
from pieline.llm.estimates import TaskEstimate
from pieline.models.fetching import estimated_bytes
from pieline.models.hub import hub_checkpoint
from pieline.models.registry import AnyEntry, Registry
from pieline.models.sizing import estimated_parameters, gpu_seconds, vector_length
from pieline.studies.idiolink.records import QUERY_MODES

_RULE = re.compile(r"^ *(?:local)?rule (\w+):$")
_FIELDS = ("input", "output", "wildcards", "resources")
_FIELD = re.compile(rf"^ +({'|'.join(_FIELDS)}): (.*)$")
_RERANKED = 100
"""Number of documents per query that a first-stage run keeps by default (idiolink.top_k)."""
_TEXTS = re.compile(r"^(?!.*/tuples/).*\.(jsonl|tsv)$")


class PlannedJob(NamedTuple):
    """A job listed by a dry run.

    Attributes:
        rule: Rule name.
        model: Name of the model, or of the base of a fine-tuned model; empty for jobs without one.
        gpus: Number of GPUs that the job requests.
        inputs: Input files.
        outputs: Output files.
    """

    rule: str
    model: str
    gpus: int
    inputs: Sequence[str]
    outputs: Sequence[str]


class ModelResources(NamedTuple):
    """Resources needed by all jobs of one model, or by all jobs without a model.

    Attributes:
        model: Name of the model; empty for jobs without one.
        jobs: Number of jobs.
        gpu_hours: Hours on one GPU (`sizing.GPU`); None if input texts do not exist yet.
        download: Bytes of weights to download from the Hub; None if the entry states no size.
        disk: Bytes of trained weights and vectors; None if `gpu_hours` is None.
    """

    model: str
    jobs: int
    gpu_hours: float | None = 0.0
    download: int | None = 0
    disk: int | None = 0


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
        command += ["--configfile", str(file), "--directory", ".", "--dry-run", "all"]
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
            _pairs(job["wildcards"]).get("model", "").partition("+")[0],
            int(_pairs(job["resources"]).get("gpu", "0")),
            job["input"].split(", "),
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


def resources(
    plan: Sequence[PlannedJob],
    registry: Registry,
    questions: Iterable[TaskEstimate],
    epochs: Mapping[str, int],
) -> list[ModelResources]:
    """Estimate the resources of a plan per model; the entry for jobs without a model is last.

    Args:
        plan: Jobs of the dry run.
        registry: All known models.
        questions: Estimates of the remaining language model tasks.
        epochs: Training epochs by rule name.
    """
    by_model: defaultdict[str, list[PlannedJob]] = defaultdict(list)
    for job in plan:
        by_model[job.model].append(job)
    estimates_of: defaultdict[str, list[TaskEstimate]] = defaultdict(list)
    for item in questions:
        estimates_of[item.model].append(item)
    without_model = by_model.pop("", [])
    unknown = remade(plan)
    rows = [
        _model_resources(model, jobs, registry[model], estimates_of[model], epochs, unknown=unknown)
        for model, jobs in sorted(by_model.items())
    ]
    return [*rows, ModelResources("", len(without_model))]


def _model_resources(
    model: str,
    jobs: Sequence[PlannedJob],
    entry: AnyEntry,
    estimates: Iterable[TaskEstimate],
    epochs: Mapping[str, int],
    *,
    unknown: Collection[str],
) -> ModelResources:
    weights, seconds, disk = hub_checkpoint(entry), 0.0, 0
    download = estimated_bytes(entry) if weights and not weights.cached() else 0
    if serving := [job for job in jobs if job.rule == "serve" and job.gpus]:
        if any(each.unknown for each in estimates):
            return ModelResources(model, len(jobs), None, download, None)
        read, written = (
            sum(getattr(each.estimate, name) for each in estimates)
            for name in ("input_tokens", "likely_output_tokens")
        )
        seconds += serving[0].gpus * gpu_seconds(entry, len(serving), read, written=written)
    for job in jobs:
        if job.gpus and job not in serving:
            paths = [path for path in job.inputs if _TEXTS.search(path)]
            if any(path in unknown or not Path(path).exists() for path in paths):
                return ModelResources(model, len(jobs), None, download, None)
            sizes = [_size(path) for path in paths]
            texts, tokens = (sum(each) for each in zip(*sizes, strict=True))
            if job.rule == "rerank":
                # One pair of texts per document that the first stage keeps, in one query mode.
                (documents, of_documents), (queries, of_queries) = sizes
                pairs = of_queries + queries * of_documents / documents
                tokens = _RERANKED * pairs / len(QUERY_MODES)
            passes = epochs.get(job.rule, 0)
            seconds += gpu_seconds(entry, 1, tokens * (not passes), tokens * passes)
            if passes:
                disk += 4 * estimated_parameters(entry)
            elif job.rule == "embed":
                disk += 4 * texts * vector_length(entry)
    return ModelResources(model, len(jobs), seconds / 3600, download, disk)


@cache
def _size(path: str) -> tuple[int, float]:
    """Return the number of texts and the estimated number of tokens in a file.

    Queries count once per query mode.
    """
    lines = read_text(path).splitlines()
    texts = (
        [json.loads(line)["sentence"] for line in lines]
        if path.endswith(".jsonl")
        else [line.partition("\t")[0] for line in lines]
    )
    times = len(QUERY_MODES) if path.endswith("queries.jsonl") else 1
    return times * len(texts), times * sum(map(len, texts)) / BYTES_PER_TOKEN
