"""Check archives of runs, which may come from untrusted sources, and extract files from them."""

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pieline.archives.manifest import (
    MANIFEST,
    is_sidecar,
    member_sidecar,
    read_archive,
)
from pieline.core.errors import UserError, pluralize
from pieline.core.files import atomic_path, sha256
from pieline.core.packing import REFUSED, unpack
from pieline.core.records import load_record
from pieline.core.sidecars import Sidecar
from pieline.llm.archive import merge
from pieline.llm.recordings import read_answers


@dataclass(frozen=True)
class Extraction:
    """Job that extracts files from an archive.

    Attributes:
        rule: Rule name of the job.
        archive: Path of the archive.
        files: SHA-256 of the files to extract and of their sidecars, by path.
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


def check_archive(path: str | Path) -> int:
    """Check the digest of every file in an archive, and return the number of runs.

    Raises:
        UserError: The file is no archive of runs, or a file in it is missing or was changed.
    """
    with tempfile.TemporaryDirectory() as folder:
        _unpack(path, Path(folder))
    return len(read_archive(path).manifest.runs)


def _unpack(path: str | Path, folder: Path) -> Mapping[str, str]:
    """Unpack the files that a manifest lists, and return their digests."""
    stated = read_archive(path).manifest.files
    unpacked = unpack(path, folder, allowed={MANIFEST, *stated}.__contains__)
    for name, digest in stated.items():
        if name not in unpacked:
            raise UserError(f"{name} is missing", where=path, hint=REFUSED)
        if sha256(folder / name) != digest:
            raise UserError(f"{name} was changed", where=path, hint=REFUSED)
    return stated


def extract(
    path: str | Path, files: Mapping[str, str], recordings: Mapping[str, str]
) -> dict[str, Sidecar]:
    """Check an archive, and extract predictions or a dataset from it.

    Args:
        path: Path of the archive.
        files: SHA-256 of the files to copy to their paths, by path; sidecars are not copied.
        recordings: Path of the recordings file into which to merge a member, by member.

    Returns:
        The sidecars of the copied files by path, which state what the files were made from. A
        dataset has none.

    Raises:
        UserError: The archive is invalid, a file has another digest, or the local recordings have
            different answers to the same questions.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        stated = _unpack(path, folder)
        if changed := [each for each, digest in files.items() if stated.get(each) != digest]:
            what = f"{changed[0]} was changed during the run"
            raise UserError(what, where=path, hint="run again")
        for member, target in recordings.items():
            _check_answers(path, folder / member, target)
        for member, target in recordings.items():
            merge(target, [folder / member])
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


def _check_answers(path: str | Path, member: Path, target: str) -> None:
    """Raise a `UserError` if local and archived recordings have different answers."""
    ours, theirs = read_answers(target), read_answers(member)
    conflicts = [
        key for key in ours.keys() & theirs.keys() if ours[key].digest != theirs[key].digest
    ]
    if conflicts:
        raise UserError(
            f"{path} has other answers to {pluralize(len(conflicts), 'question')}",
            where=target,
            hint="move this file, or remove the archive from the setting archives",
        )
