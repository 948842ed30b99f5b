"""Verify untrusted archives of runs, and extract files from archives."""

import shutil
import tempfile
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from pydantic import ConfigDict

from pieline.archives.export import compared
from pieline.archives.manifest import (
    MANIFEST,
    PREDICTIONS,
    Archive,
    ArchivedRun,
    is_sidecar,
    member_sidecar,
    read_archive,
)
from pieline.core.errors import UserError, pluralize
from pieline.core.files import atomic_path, sha256
from pieline.core.packing import REFUSED, unpack
from pieline.core.records import Id, Record, load_jsonl, load_record
from pieline.core.sidecars import Sidecar
from pieline.core.upstream import UpstreamFile
from pieline.llm.archive import merge
from pieline.llm.archive import verify as faulty_answers
from pieline.llm.recordings import read_answers
from pieline.studies.idiolink.datasets.dataset import Meanings
from pieline.studies.idiolink.predictions.runs import check_run, read_run

_MADE = ("results/datasets/", "results/variants/")
"""Folders of the data from which predictions are made."""
_FOLDERS = (PREDICTIONS, "results/datasets/idiolink/", "recordings/", "results/training/")


class _Row(Record):
    """Line of a predictions file, of which only the id is checked."""

    model_config = ConfigDict(extra="ignore")

    id: Id


def defects(path: str | Path) -> list[str]:
    """Return a line for each defect of an archive; empty if the archive is valid.

    Raises:
        UserError: The file is not a readable archive of runs.
    """
    with tempfile.TemporaryDirectory() as folder:
        return list(_defects(read_archive(path), Path(folder), None))


def extract(
    path: str | Path,
    files: Mapping[str, str],
    recordings: Mapping[str, str],
    upstream: Mapping[str, UpstreamFile],
) -> dict[str, Sidecar]:
    """Verify an archive, and extract runs or a dataset from it.

    Of other runs than the extracted ones, only digests are checked.

    Args:
        path: Path of the archive.
        files: SHA-256 of the members to copy to their paths, by path; sidecars are not copied.
        recordings: Path of the recordings file into which to merge a member, by member.
        upstream: Public files by name.

    Returns:
        The sidecars of the copied files by path, which state what the files were made from. A
        dataset has none.

    Raises:
        UserError: The archive is invalid (the message states the first defect and the number of
            other defects), a member has another digest, a dataset is marked as released but its
            raw files are not the public ones or vice versa, or the local recordings have different
            answers to the same questions.
    """
    archive = read_archive(path)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if problems := list(_defects(archive, folder, files)):
            more = f" ({len(problems) - 1} more: pieline runs verify)" if problems[1:] else ""
            raise UserError(f"{problems[0]}{more}", where=path, hint=REFUSED)
        stated = archive.manifest.files
        changed = [member for member in recordings if member not in stated]
        changed += [member for member, digest in files.items() if stated.get(member) != digest]
        if changed:
            what = f"{changed[0]} was changed during the run"
            raise UserError(what, where=path, hint="run again")
        for where, dataset in archive.manifest.datasets.items():
            if not files.keys().isdisjoint(dataset.files):
                _check_released(archive, where, folder, upstream)
        _merge_recordings(archive, folder, recordings)
        targets = [member for member in files if not is_sidecar(member)]
        for target in targets:
            with atomic_path(target) as temporary:
                shutil.copyfile(folder / target, temporary)
        return {
            target: load_record(folder / member_sidecar(target), Sidecar).model_copy(
                update={"path": target, "outputs": targets, "source": Path(path).name}
            )
            for target in targets
            if member_sidecar(target) in files
        }


def _check_released(
    archive: Archive, where: str, folder: Path, upstream: Mapping[str, UpstreamFile]
) -> None:
    """Raise a `UserError` unless a dataset is marked as released if its raw files are public."""
    dataset = Meanings.load_meanings(folder / where)
    raw = archive.manifest.datasets[where].raw
    names = [f"results/raw/idiolink/{dataset.split}/{name}.json" for name in ("indexes", "queries")]
    equal = all(
        name in raw and raw[name] == upstream[name.removeprefix("results/raw/")].sha256
        for name in names
    )
    if dataset.released != equal:
        raise UserError(
            f"{where} states released: {dataset.released}, but its raw files' digests disagree",
            where=archive.path,
            hint=REFUSED,
        )


def _merge_recordings(archive: Archive, folder: Path, recordings: Mapping[str, str]) -> None:
    for member, target in recordings.items():
        ours, theirs = read_answers(target), read_answers(folder / member)
        conflicts = [
            key for key in ours.keys() & theirs.keys() if ours[key].digest != theirs[key].digest
        ]
        if conflicts:
            raise UserError(
                f"{archive.path} has other answers to {pluralize(len(conflicts), 'question')}",
                where=target,
                hint="move this file, or remove the archive from the setting archives",
            )
    for member, target in recordings.items():
        merge(target, [folder / member])


def _defects(archive: Archive, folder: Path, only: Collection[str] | None) -> Iterator[str]:
    stated = archive.manifest.files
    members = [name for name in stated if name.startswith(_FOLDERS)]
    unpacked = unpack(
        archive.path,
        folder,
        allowed=lambda name: name in (MANIFEST, *members),
    )
    invalid = [
        name for name in stated if name not in unpacked or sha256(folder / name) != stated[name]
    ]
    for name in invalid:
        yield f"{name} {'was changed' if name in unpacked else 'is missing'}"
    if invalid:
        return
    used: set[str] = set()
    for run in archive.manifest.runs:
        used |= {*run.files, *run.training, *filter(None, [run.recordings])}
        if only is not None and run.predictions not in only:
            continue
        yield from (f"{run.metrics}: {what}" for what in _defects_of_run(run, folder))
    for where, dataset in archive.manifest.datasets.items():
        used |= {*dataset.files}
        yield from (f"{where}: {what}" for what in _defects_of_dataset(where, folder))
    yield from (f"{name} belongs to no run" for name in sorted(stated.keys() - used))


def _defects_of_run(run: ArchivedRun, folder: Path) -> Iterator[str]:
    data = [path for path in run.files if not is_sidecar(path)]
    try:
        for path in data:
            _check_sidecar(path, folder)
        _check_origin(run, folder)
        _check_content(run, folder)
    except UserError as error:
        yield str(error).replace(f"{folder}/", "")


def _check_sidecar(path: str, folder: Path) -> None:
    sidecar = load_record(folder / member_sidecar(path), Sidecar)
    if sidecar.path != member_sidecar(path) or sidecar.files.get(path) != sha256(folder / path):
        raise UserError("does not match its sidecar", where=path)


def _check_origin(run: ArchivedRun, folder: Path) -> None:
    """Raise a `UserError` if the sidecar of a run contradicts the manifest or is incomplete."""
    sidecar = load_record(folder / member_sidecar(run.predictions), Sidecar)
    if not any(path.startswith(_MADE) for path in sidecar.made_from):
        raise UserError("lists no dataset among the inputs", where=sidecar.path)
    tuned = {name: sha256(folder / name) for name in run.files if name.endswith("/tuning.json")}
    for expected, actual in ((compared(sidecar.made_from), run.raw), (tuned, sidecar.made_from)):
        for path, digest in expected.items():
            if actual.get(path) != digest:
                raise UserError(f"{path} differs from the one in the manifest", where=sidecar.path)
    if run.conditions.weights.get("kind") == "llm" and not sidecar.answers:
        raise UserError("lists no recorded answers", where=sidecar.path)


def _check_content(run: ArchivedRun, folder: Path) -> None:
    """Raise a `UserError` if predictions are invalid or do not fit their dataset or answers."""
    path = folder / run.predictions
    if path.suffix == ".gz":
        ranked = read_run(path)
        *_, index, _, _, _ = Path(run.metrics).parts
        if (data := folder / "results/datasets/idiolink" / index).is_dir():
            meanings = Meanings.load_meanings(data)
            queries = [query.id for query in meanings.queries]
            check_run(path, ranked, queries, [document.id for document in meanings.documents])
    else:
        ids = [row.id for row in load_jsonl(path, _Row)]
        if len(set(ids)) < len(ids) or not ids:
            raise UserError("no predictions, or duplicate ids", where=run.predictions)
    sidecar = load_record(folder / member_sidecar(run.predictions), Sidecar)
    answers = {}
    if run.recordings:
        if problems := faulty_answers(folder / run.recordings):
            raise UserError(problems[0])
        answers = read_answers(folder / run.recordings)
    if {key: answer.digest for key, answer in answers.items()} != dict(sidecar.answers):
        raise UserError(
            f"{pluralize(len(answers), 'recorded answer')}, which do not match the sidecar",
            where=run.recordings or run.predictions,
        )


def _defects_of_dataset(where: str, folder: Path) -> Iterator[str]:
    try:
        data = Meanings.load_meanings(folder / where)
        index = data.split if data.composition == "full" else f"{data.split}-{data.composition}"
        if where != f"results/datasets/idiolink/{index}":
            yield f"contains the dataset {index}"
    except UserError as error:
        yield str(error).replace(f"{folder}/", "")
