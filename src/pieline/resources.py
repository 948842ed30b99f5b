"""What a run still takes besides money: jobs, GPU-hours, downloads and disk.

Everything here is an estimate from sizes; nothing is measured.
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
from pieline.core.files import read_text, write_json
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
"""Documents that a first-stage run keeps for each query, if idiolink.top_k is the default."""
_TEXTS = re.compile(r"^(?!.*/tuples/).*\.(jsonl|tsv)$")


class PlannedJob(NamedTuple):
    """A job of a dry run.

    Attributes:
        rule: its name.
        model: name in models.yaml, of a fine-tuned model that of its base; empty without a model.
        gpus: how many it asks for.
        inputs: its input files.
        outputs: its output files.
    """

    rule: str
    model: str
    gpus: int
    inputs: Sequence[str]
    outputs: Sequence[str]


class ModelResources(NamedTuple):
    """What the jobs of one model take.

    Attributes:
        model: name in models.yaml; empty for the jobs without a model.
        jobs: their number.
        gpu_hours: on one GPU of the assumed kind; null if texts that they read are not made.
        download: bytes of weights that the hub's cache lacks; null if the entry states no size.
        disk: bytes of trained weights and vectors; null as `gpu_hours`.
    """

    model: str
    jobs: int
    gpu_hours: float | None = 0.0
    download: int | None = 0
    disk: int | None = 0


def dry_run(config: str, root: Path) -> str:
    """What `snakemake -n` prints for a configuration (JSON) in the working directory.

    Raises:
        UserError: it fails; its last line says why.
    """
    with TemporaryDirectory() as folder:
        # A rehearsal has made its stand-ins already.
        file = Path(folder, "config.json")
        write_json(file, json.loads(config) | {"rehearsal": None})
        command = [sys.executable, "-m", "snakemake", "--snakefile", str(root / "Snakefile")]
        command += ["--configfile", str(file), "--directory", ".", "--dry-run", "all"]
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
    if done.returncode:
        lines = [line for line in done.stdout.splitlines() if not line.startswith("left out of ")]
        raise UserError(
            f"the dry run fails: {lines[-1] if lines else ''}", where=root / "Snakefile"
        )
    return done.stdout


def read_plan(text: str) -> list[PlannedJob]:
    """The jobs of a dry run."""
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
    """The files that a plan makes, or makes anew."""
    return {path for job in plan for path in job.outputs}


def _pairs(text: str) -> dict[str, str]:
    return dict(part.split("=", maxsplit=1) for part in text.split(", ") if "=" in part)


def resources(
    plan: Sequence[PlannedJob],
    registry: Registry,
    questions: Iterable[TaskEstimate],
    epochs: Mapping[str, int],
) -> list[ModelResources]:
    """What a plan takes, by model; the jobs without a model come last.

    Args:
        plan: the jobs.
        registry: the models.
        questions: what is left to ask language models.
        epochs: of a training, by its rule.
    """
    by_model: defaultdict[str, list[PlannedJob]] = defaultdict(list)
    for job in plan:
        by_model[job.model].append(job)
    asked: defaultdict[str, list[TaskEstimate]] = defaultdict(list)
    for item in questions:
        asked[item.model].append(item)
    others = by_model.pop("", [])
    unknown = remade(plan)
    found = [
        _of_model(model, jobs, registry[model], asked[model], epochs, unknown=unknown)
        for model, jobs in sorted(by_model.items())
    ]
    return [*found, ModelResources("", len(others))]


def _of_model(
    model: str,
    jobs: Sequence[PlannedJob],
    entry: AnyEntry,
    asked: Iterable[TaskEstimate],
    epochs: Mapping[str, int],
    *,
    unknown: Collection[str],
) -> ModelResources:
    weights, seconds, disk = hub_checkpoint(entry), 0.0, 0
    download = estimated_bytes(entry) if weights and not weights.cached() else 0
    if serving := [job for job in jobs if job.rule == "serve" and job.gpus]:
        if any(each.unknown for each in asked):
            return ModelResources(model, len(jobs), None, download, None)
        read, written = (
            sum(getattr(each.estimate, name) for each in asked)
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
                # A pair of texts for each document that the first stage keeps, in one query mode.
                (documents, of_documents), (asked_for, of_queries) = sizes
                pairs = of_queries + asked_for * of_documents / documents
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
    """Texts and tokens that are read of a file: a query in each of its modes."""
    lines = read_text(path).splitlines()
    texts = (
        [json.loads(line)["sentence"] for line in lines]
        if path.endswith(".jsonl")
        else [line.partition("\t")[0] for line in lines]
    )
    times = len(QUERY_MODES) if path.endswith("queries.jsonl") else 1
    return times * len(texts), times * sum(map(len, texts)) / BYTES_PER_TOKEN
