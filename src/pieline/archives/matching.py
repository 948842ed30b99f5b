"""Match archived runs with the runs of a configuration."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from pydantic import Field

from pieline.archives.manifest import Archive, ArchivedRun, is_sidecar, read_archive
from pieline.core.errors import UserError
from pieline.core.packing import is_plain
from pieline.core.records import validated
from pieline.core.settings import Settings
from pieline.core.upstream import UpstreamFile, download

_OF_METRICS = ("bootstrap_resamples", "permutations", "scoring")
"""Settings that affect scoring but not predictions."""
_CORRECT = "set the URL of a file and its SHA-256 in lowercase"
_NO_DOWNLOAD = "correct the setting archives, or download the file and set its path there"
_SHOWN = 60
"""Maximum number of characters shown per differing value."""


class RemoteArchive(Settings):
    """URL and SHA-256 of an archive to download once into results/archives."""

    url: str = Field(description="Address of the archive.")
    sha256: str = Field(description="SHA-256 of the archive; another file is refused.")


@dataclass(frozen=True)
class Offer:
    """An archived run and its differences from the configuration."""

    archive: Archive
    run: ArchivedRun
    differences: tuple[str, ...]


@dataclass(frozen=True)
class Extraction:
    """Job that extracts files from an archive.

    Attributes:
        rule: Rule name of the job.
        archive: Path of the archive.
        files: SHA-256 of the members to extract, by path.
        recordings: Path of the recordings file into which to merge a member, by member.
    """

    rule: str
    archive: str
    files: Mapping[str, str]
    recordings: Mapping[str, str]

    @property
    def outputs(self) -> list[str]:
        """Paths of the extracted files without sidecars, which the job writes."""
        return [name for name in self.files if not is_sidecar(name)]


def load_archives(sources: Iterable[str | RemoteArchive], root: Path) -> tuple[Archive, ...]:
    """Read the manifests of the configured archives; remote archives are downloaded first.

    Args:
        sources: Paths or URLs; a path is looked up in the working directory, then in `root`.
        root: Project folder.

    Raises:
        UserError: An archive is missing, invalid or cannot be downloaded, its path contains `<` or
            `>`, or two archives have the same name.
    """
    archives: dict[str, Archive] = {}
    for source in sources:
        place = _place(source, root)
        if {*str(place)} & {*"<>"}:
            # Snakemake's report would parse these characters as HTML.
            raise UserError("path contains < or >", where=place, hint="rename it")
        archive = read_archive(place)
        if archive.name in archives:
            raise UserError("another archive has this name", where=archive.path, hint="rename one")
        archives[archive.name] = archive
    return tuple(archives.values())


def _place(source: str | RemoteArchive, root: Path) -> Path:
    if isinstance(source, str):
        return Path(source) if Path(source).exists() else root / source
    fields = {"url": source.url, "sha256": source.sha256}
    file = validated(UpstreamFile, fields, where="config.yaml: archives", hint=_CORRECT)
    name = unquote(re.sub(r"[?#].*", "", source.url)).rpartition("/")[2]
    if not is_plain(name) or re.search(r"[\s\[\]]", source.url):
        raise UserError(
            f"not the URL of a file: {source.url}", where="config.yaml: archives", hint=_CORRECT
        )
    place = Path("results/archives", name)
    if not place.exists():
        try:
            download(file, place, name=place.name)
        except UserError as error:
            raise UserError(error.what, where=error.where, hint=_NO_DOWNLOAD) from None
    elif problem := file.mismatch(place):
        raise UserError(problem, where=place, hint="delete it, or correct the setting archives")
    return place


def offer(
    metrics: str,
    conditions: str,
    archives: Iterable[Archive],
    digest: Callable[[str], str | None],
    file_usage: Mapping[str, bool] = {},
) -> Offer | None:
    """Return the archived run of a metric file that differs least from the configured run.

    Args:
        metrics: Metric file of the run.
        conditions: Conditions of the configured run, as canonical JSON.
        archives: Archives to search.
        digest: Function that returns the SHA-256 of a file in this configuration: None if there is
            no such file, and empty if not known yet (the sidecar is checked once the file exists).
        file_usage: Whether the configured run uses certain files, by path.

    Returns:
        The run and its differences; None if no archive has a run of this metric file.
    """
    offers = [
        Offer(archive, run, tuple(_differences_of(run, conditions, digest, file_usage)))
        for archive in archives
        if (run := archive.runs.get(metrics))
    ]
    return min(offers, key=lambda candidate: len(candidate.differences), default=None)


def _differences_of(
    run: ArchivedRun,
    conditions: str,
    digest: Callable[[str], str | None],
    file_usage: Mapping[str, bool],
) -> Iterator[str]:
    wanted, theirs = json.loads(conditions), run.conditions.model_dump(mode="json")
    for part in ("settings", "weights"):
        for difference in _differences(wanted[part], theirs[part]):
            yield f"{part.removesuffix('s')} {difference}"
    behind = {*run.raw, *run.files}
    for name in sorted(name for name, is_read in file_usage.items() if is_read != (name in behind)):
        yield f"{name}: used {'here' if file_usage[name] else 'in the archive'} only"
    for name, stated in run.raw.items():
        known = digest(name)
        if known is None:
            yield f"{name}: no such file here"
        elif known and known != stated:
            yield f"{name}: SHA-256 {known[:12]}, archive {stated[:12]}"


def _differences(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Iterator[str]:
    for name in sorted(ours.keys() | theirs.keys()):
        here, there = ours.get(name), theirs.get(name)
        if name in _OF_METRICS or here == there:
            continue
        if isinstance(here, dict) and isinstance(there, dict):
            yield from (f"{name} {difference}" for difference in _differences(here, there))
        else:
            yield f"{name} {_shorten(here)}, archive {_shorten(there)}"


def _shorten(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
