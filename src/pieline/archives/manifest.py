"""Manifests of archives of runs; reading a manifest does not unpack the archive."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from pieline.core.conditions import Conditions
from pieline.core.errors import UserError
from pieline.core.files import canonical_json, sha256_of
from pieline.core.packing import REFUSED, first_member, is_plain
from pieline.core.records import Record, validated

MANIFEST = "manifest.json"
ENDING = ".tar.zst"
SIDECAR = ".evidence.json"
"""Ending of the names of sidecars in archives."""
PREDICTIONS = "results/predictions/"
METRICS = "results/metrics/"
DATASETS = "results/datasets/idiolink/"
_FOLDERS = (PREDICTIONS, DATASETS, "recordings/", "results/training/")
"""Folders of all files in an archive except the manifest."""


def is_sidecar(name: str) -> bool:
    """Return whether a member of an archive is the sidecar of another member."""
    return name.endswith(SIDECAR)


def member_sidecar(name: str) -> str:
    """Return the name of a member's sidecar; for a sidecar, return its own name.

    The name of the sidecar is the name of the member with `SIDECAR` instead of the extension.
    """
    if is_sidecar(name):
        return name
    without_extension = re.sub(r"(\.run\.gz|\.[a-z]+)$", "", name)
    return without_extension + SIDECAR


def below_project(path: str) -> str:
    """Return the path of a project file relative to the project instead of the working directory.

    For example, `../../pieline/data/upstream.yaml` becomes `data/upstream.yaml`.
    """
    # Remove the steps up, and a path before data/ or prompts/ that follows them.
    return re.sub(r"^(\.\./)+((.*/)?(?=(data|prompts)/))?", "", path)


class ArchivedRun(Record):
    """Manifest entry for the predictions of one model with one setting and seed.

    Fields of other versions of the project are ignored.

    Attributes:
        metrics: Metric file of the predictions, which also identifies the run.
        conditions: Conditions stated in the metric file.
        raw: SHA-256 of each input that no job made (corpora, prompts, human labels), by path.
        files: Members with the predictions (first) and other files that scoring needs, followed by
            the sidecars of these members. The name of a member is its path in the run.
        recordings: Member with the recorded answers behind the predictions; empty if no model was
            asked.
        training: Members with the logs of the training runs behind the predictions.
        packages: Versions of the packages that computed the predictions and their inputs.
    """

    model_config = ConfigDict(extra="ignore")

    metrics: str
    conditions: Conditions
    raw: Mapping[str, str]
    files: Annotated[tuple[str, ...], Field(min_length=1)]
    recordings: str = ""
    training: tuple[str, ...] = ()
    packages: Mapping[str, str] = {}

    @property
    def predictions(self) -> str:
        """Path of the predictions, which is the same in the archive and in the folder of a run."""
        return self.files[0]

    @property
    def members_to_extract(self) -> list[str]:
        """Names of the members to extract: the predictions and, for BM25, the tuned parameters.

        Other members in `files` are ignored: earlier versions listed the rankings in other query
        modes.
        """
        tuned_parameters = [name for name in self.files[1:] if name.endswith("/tuning.json")]
        return [self.predictions, *tuned_parameters]


class ArchivedDataset(Record):
    """Manifest entry for a dataset.

    Attributes:
        raw: SHA-256 of each input that no job made, by path.
        files: Members that scoring needs.
    """

    raw: Mapping[str, str]
    files: tuple[str, ...]


class Manifest(Record):
    """Table of contents of an archive, which is the first member of the archive.

    Attributes:
        code: Commit at the time of export; None if the project was not a git clone.
        machine: Hardware that computed the runs.
        runs: Runs sorted by metric file.
        datasets: Datasets by folder.
        files: SHA-256 of every member except the manifest, by path.
        digest: SHA-256 of the rest of the manifest as canonical JSON.
    """

    format: Literal[1] = 1
    code: str | None
    machine: str
    runs: tuple[ArchivedRun, ...]
    datasets: Mapping[str, ArchivedDataset] = {}
    files: Mapping[str, str]
    digest: str = ""

    def required(self) -> list[str]:
        """Return the names of the members that must exist because they may be extracted."""
        names: list[str] = []
        for run in self.runs:
            names += run.members_to_extract
            names += [member_sidecar(name) for name in run.members_to_extract]
            if run.recordings:
                names.append(run.recordings)
        for dataset in self.datasets.values():
            names += dataset.files
        return names


def manifest_digest(fields: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the fields of a manifest, except `digest`, as canonical JSON."""
    hashed = {name: value for name, value in fields.items() if name != "digest"}
    return sha256_of(canonical_json(hashed).encode())


@dataclass(frozen=True)
class Archive:
    """An archive and its manifest."""

    path: str
    manifest: Manifest

    @property
    def name(self) -> str:
        """Name of the archive in tables: the file name without the extension."""
        return Path(self.path).name.removesuffix(ENDING)

    @cached_property
    def runs(self) -> dict[str, ArchivedRun]:
        """Archived runs by metric file."""
        return {run.metrics: run for run in self.manifest.runs}


def read_archive(path: str | Path) -> Archive:
    """Read the manifest of an archive; other members are neither read nor checked.

    Raises:
        UserError: The file is missing or not an archive of runs, or the manifest was changed, lists
            a file outside the folders of an archive, or lacks a file of a run.
    """
    if not Path(path).is_file():
        raise UserError(
            "no such archive", where=path, hint="check the path, or the setting archives"
        )
    content = first_member(path, MANIFEST)
    manifest = validated(Manifest, content, where=f"{path}: {MANIFEST}", hint=REFUSED, is_json=True)
    if manifest_digest(json.loads(content)) != manifest.digest:
        raise UserError("was changed after the export", where=f"{path}: {MANIFEST}", hint=REFUSED)
    for name in manifest.files:
        # Before it runs a job, Snakemake deletes the outputs, so other paths would be dangerous.
        if not (is_plain(name) and name.startswith(_FOLDERS)):
            raise UserError(f"contains {name!r}, which is not allowed", where=path, hint=REFUSED)
    for name in manifest.required():
        if name not in manifest.files:
            raise UserError(f"{name} is missing", where=path, hint=REFUSED)
    return Archive(str(path), manifest)
