"""Manifests of archives of runs, which can be read without unpacking the archives."""

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from pieline.core.conditions import Conditions
from pieline.core.errors import UserError
from pieline.core.files import canonical_json
from pieline.core.packing import REFUSED, first_member
from pieline.core.records import Record, validated

MANIFEST = "manifest.json"
ENDING = ".tar.zst"
SIDECAR = ".evidence.json"
"""Ending of the sidecars in archives."""
PREDICTIONS = "results/predictions/"
METRICS = "results/metrics/"
DATASETS = "results/datasets/idiolink/"


def is_sidecar(name: str) -> bool:
    """Return whether a member is the sidecar of another one."""
    return name.endswith(SIDECAR)


def member_sidecar(name: str) -> str:
    """Return the name of the sidecar of a member, or of a member that is one.

    In archives, the ending replaces that of the file.
    """
    return name if is_sidecar(name) else re.sub(r"(\.run\.gz|\.[a-z]+)$", "", name) + SIDECAR


def below_project(path: str) -> str:
    """Return the path of a project file relative to the project, whatever the working directory.

    A working directory outside the project sees `../../pieline/data/upstream.yaml`.
    """
    return re.sub(r"^(\.\./)+((.*/)?(?=(data|prompts)/))?", "", path)


class ArchivedRun(Record):
    """Manifest entry for the predictions of one model with one setting and seed.

    Attributes:
        metrics: Metric file of the predictions, which also identifies the run.
        conditions: Conditions stated in the metric file.
        raw: SHA-256 of inputs that no job made (corpora, prompts, human labels), by path.
        files: Members to extract to their paths, the predictions first, and their sidecars.
        recordings: Member with the recorded answers behind the predictions; empty if there is none.
        training: Members with the logs of the training runs behind the predictions.
        packages: Versions of the packages that computed the predictions and their inputs.
        seconds: Run times of jobs, by benchmark file in logs/benchmarks.
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
        """Path of the predictions, the same in the archive and in the folder of a run."""
        return self.files[0]

    @property
    def made(self) -> list[str]:
        """The predictions, and the tuned parameters behind a ranking by BM25.

        Earlier versions also listed the rankings in other query modes.
        """
        others = (name for name in self.files[1:] if name.endswith("/tuning.json"))
        return [self.predictions, *others]


class ArchivedDataset(Record):
    """Manifest entry for a dataset: files needed for scoring, and digests of original inputs."""

    raw: Mapping[str, str]
    files: tuple[str, ...]


class Manifest(Record):
    """Table of contents of an archive, stored as its first member.

    Attributes:
        code: Commit at the time of export; None if the project was not a git clone.
        machine: Hardware that computed the runs.
        runs: Runs sorted by metric file.
        datasets: Datasets by folder.
        files: SHA-256 of every other member, by path.
        digest: SHA-256 of the rest of the manifest as canonical JSON.
    """

    format: Literal[1] = 1
    code: str | None
    machine: str
    runs: tuple[ArchivedRun, ...]
    datasets: Mapping[str, ArchivedDataset] = {}
    files: Mapping[str, str]
    digest: str = ""

    def computed_digest(self) -> str:
        """Return the SHA-256 of the manifest without the field `digest`."""
        content = canonical_json(self.model_dump(mode="json", exclude={"digest"}))
        return hashlib.sha256(content.encode()).hexdigest()


@dataclass(frozen=True)
class Archive:
    """An archive and its manifest."""

    path: str
    manifest: Manifest

    @property
    def name(self) -> str:
        """Name of the archive in tables."""
        return Path(self.path).name.removesuffix(ENDING)

    @cached_property
    def runs(self) -> dict[str, ArchivedRun]:
        """Archived runs by metric file."""
        return {run.metrics: run for run in self.manifest.runs}


def read_archive(path: str | Path) -> Archive:
    """Read the manifest of an archive; other members are neither read nor checked.

    Raises:
        UserError: The file is missing or not an archive of runs, or its manifest is inconsistent.
    """
    if not Path(path).is_file():
        raise UserError(
            "no such archive", where=path, hint="check the path, or the setting archives"
        )
    content = first_member(path, MANIFEST)
    manifest = validated(Manifest, content, where=f"{path}: {MANIFEST}", hint=REFUSED, is_json=True)
    if manifest.computed_digest() != manifest.digest:
        raise UserError("was changed after the export", where=f"{path}: {MANIFEST}", hint=REFUSED)
    for problem in _contradictions(manifest):
        raise UserError(problem, where=path, hint=REFUSED)
    return Archive(str(path), manifest)


def _contradictions(manifest: Manifest) -> Iterator[str]:
    """Yield inconsistencies that would affect planning, without reading other members."""
    for run in manifest.runs:
        stem = run.metrics.replace(METRICS, PREDICTIONS, 1).removesuffix(".json")
        its = run.metrics.startswith(METRICS) and run.files
        if not its or member_sidecar(run.predictions) != f"{stem}{SIDECAR}":
            yield f"{run.metrics}: its predictions belong to another run"
            return
        for name in (*run.made, *map(member_sidecar, run.made), *filter(None, [run.recordings])):
            if name not in manifest.files:
                yield f"{run.metrics}: {name} is not in the archive"
            elif not name.startswith((PREDICTIONS, "recordings/")):
                yield f"{run.metrics}: {name} is no prediction"
    for where, dataset in manifest.datasets.items():
        if dataset.files != (f"{where}/meanings.jsonl", f"{where}/manifest.json"):
            yield f"{where}: lists files of another dataset"
        elif not {*dataset.files} <= manifest.files.keys():
            yield f"{where}: {dataset.files[0]} or its manifest is not in the archive"
