"""What an archive of runs contains, and reading that without unpacking it."""

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from pieline.core.conditions import Conditions
from pieline.core.errors import UserError
from pieline.core.evidence import evidence_of
from pieline.core.files import canonical_json
from pieline.core.packing import REFUSED, first_member
from pieline.core.records import Record, validated

MANIFEST = "manifest.json"
ENDING = ".tar.zst"
PREDICTIONS = "results/predictions/"
METRICS = "results/metrics/"


def below_project(path: str) -> str:
    """The path of a file as manifests state it, whatever the working directory."""
    return re.sub(r"^(\.\./)+", "", path)


class ArchivedRun(Record):
    """The predictions of one model in one setting with one seed.

    Attributes:
        metrics: the metric file computed from them, which also names them.
        conditions: those that the metric file states.
        raw: SHA-256 of the files that no job made, by path: corpora, prompts, people's labels.
        files: members of the archive to put back at their paths, the predictions first.
        recordings: the member with the recorded answers behind them, if there are any.
        training: members with the logs of the trainings behind them.
        packages: versions of the packages that computed them.
        seconds: what jobs took, by their file in logs/benchmarks.
    """

    metrics: str
    conditions: Conditions
    raw: Mapping[str, str]
    files: tuple[str, ...]
    recordings: str = ""
    training: tuple[str, ...] = ()
    packages: Mapping[str, str] = {}
    seconds: Mapping[str, float] = {}

    @property
    def predictions(self) -> str:
        """The predictions, by their path in a run's folder and in the archive."""
        return self.files[0]


class ArchivedDataset(Record):
    """What scoring reads of a data set: members of the archive, and the raw files behind it."""

    raw: Mapping[str, str]
    files: tuple[str, ...]


class Manifest(Record):
    """The table of contents of an archive, its first member.

    Attributes:
        code: commit that the archive was exported with, if it was a git clone.
        machine: where the archive was exported.
        runs: sorted by metric file.
        datasets: by folder.
        files: SHA-256 of every other member.
        digest: SHA-256 of all the rest of the manifest as canonical JSON.
    """

    format: Literal[1] = 1
    code: str | None
    machine: str
    runs: tuple[ArchivedRun, ...]
    datasets: Mapping[str, ArchivedDataset] = {}
    files: Mapping[str, str]
    digest: str = ""

    def computed_digest(self) -> str:
        """The digest that it should state."""
        content = canonical_json(self.model_dump(mode="json", exclude={"digest"}))
        return hashlib.sha256(content.encode()).hexdigest()


@dataclass(frozen=True)
class Archive:
    """An archive and its table of contents."""

    path: str
    manifest: Manifest

    @property
    def name(self) -> str:
        """What it is called in tables."""
        return Path(self.path).name.removesuffix(ENDING)

    @cached_property
    def runs(self) -> dict[str, ArchivedRun]:
        """Its runs by metric file."""
        return {run.metrics: run for run in self.manifest.runs}


def read_archive(path: str | Path) -> Archive:
    """Read an archive's table of contents; its other members are neither read nor checked.

    Raises:
        UserError: there is no such file, it is no archive of runs, or its table of contents
            contradicts itself.
    """
    if not Path(path).is_file():
        raise UserError("no such archive", where=path, hint="correct archives, or fetch the file")
    content = first_member(path, MANIFEST)
    manifest = validated(Manifest, content, where=f"{path}: {MANIFEST}", hint=REFUSED, is_json=True)
    if manifest.computed_digest() != manifest.digest:
        raise UserError("was changed after the export", where=f"{path}: {MANIFEST}", hint=REFUSED)
    for problem in _contradictions(manifest):
        raise UserError(problem, where=path, hint=REFUSED)
    return Archive(str(path), manifest)


def _contradictions(manifest: Manifest) -> Iterator[str]:
    """What a plan relies on before the members are checked."""
    seen: set[str] = set()
    for run in manifest.runs:
        if run.metrics in seen:
            yield f"contains {run.metrics} twice"
        seen.add(run.metrics)
        stem = run.metrics.replace(METRICS, PREDICTIONS, 1).removesuffix(".json")
        its = run.metrics.startswith(METRICS) and run.files
        if not its or evidence_of(run.predictions) != f"{stem}.evidence.json":
            yield f"{run.metrics}: its predictions are another run's"
            return
        data = [name for name in run.files if not name.endswith(".evidence.json")]
        belong = [name for name in data if _is_of(name, run.predictions)]
        for name in run.files:
            if name not in (*belong, *map(evidence_of, belong)):
                yield f"{run.metrics}: {name} does not belong to it"
        for name in (*run.files, *run.training, *filter(None, [run.recordings])):
            if name not in manifest.files:
                yield f"{run.metrics}: {name} is not in the archive"
    for where, dataset in manifest.datasets.items():
        if dataset.files != (f"{where}/meanings.jsonl", f"{where}/manifest.json"):
            yield f"{where}: names other files than its own"
        elif not {*dataset.files} <= manifest.files.keys():
            yield f"{where}: {dataset.files[0]} or its manifest is not in the archive"


def _is_of(name: str, predictions: str) -> bool:
    """Whether a file is a run's: its predictions, in another query mode, or what tuned them."""
    path, own = Path(evidence_of(name)), Path(evidence_of(predictions))
    if path == own:
        return True
    if not own.match("results/predictions/idiolink/*/*/*/*") or len(path.parts) != len(own.parts):
        return False
    index, model, mode, file = path.parts[3:]
    if (path.parts[:3], model) != (own.parts[:3], own.parts[4]) or {"..", "."} & {index, mode}:
        return False
    return file == "tuning.evidence.json" or (index, file) == (own.parts[3], own.name)
