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
        rule: Name of the rule.
        archive: Path of the archive.
        files: SHA-256 of each file to extract and of the sidecars of these files, by path.
        recordings: Path of the local recordings file into which a member is merged, by member.
    """

    rule: str
    archive: str
    files: Mapping[str, str]
    recordings: Mapping[str, str]

    @property
    def outputs(self) -> list[str]:
        """Paths of the extracted files except sidecars; the job writes new sidecars."""
        return [path for path in self.files if not is_sidecar(path)]


def check_archive(path: str | Path) -> int:
    """Check the digest of every file in an archive, and return the number of runs.

    Raises:
        UserError: The file is not an archive of runs, or a file in the archive is missing or was
            changed.
    """
    with tempfile.TemporaryDirectory() as folder:
        _unpack(path, Path(folder))
    return len(read_archive(path).manifest.runs)


def _unpack(path: str | Path, folder: Path) -> Mapping[str, str]:
    """Unpack an archive, check its files, and return the SHA-256 of each file by path."""
    digests = read_archive(path).manifest.files
    unpacked = unpack(path, folder, allowed=lambda name: name == MANIFEST or name in digests)
    for name, digest in digests.items():
        if name not in unpacked:
            raise UserError(f"{name} is missing", where=path, hint=REFUSED)
        if sha256(folder / name) != digest:
            raise UserError(f"{name} was changed", where=path, hint=REFUSED)
    return digests


def extract(
    path: str | Path, files: Mapping[str, str], recordings: Mapping[str, str]
) -> dict[str, Sidecar]:
    """Check an archive, and extract predictions or a dataset from it.

    Args:
        path: Path of the archive.
        files: SHA-256 of each file to extract and of the sidecars of these files, by path.
        recordings: Path of the local recordings file into which a member is merged, by member.

    Returns:
        The sidecar of each extracted file, by path. The files of a dataset have no sidecars.

    Raises:
        UserError: The archive is invalid, a file has another digest, or the local recordings have
            different answers to the same questions.
    """
    with tempfile.TemporaryDirectory() as folder_name:
        unpacked = Path(folder_name)
        digests = _unpack(path, unpacked)
        for file, digest in files.items():
            if digests.get(file) != digest:
                problem = f"{file} was changed during the run"
                raise UserError(problem, where=path, hint="run again")
        # Check all recordings before any is changed.
        for member, target in recordings.items():
            _check_answers(path, unpacked / member, target)
        for member, target in recordings.items():
            merge(target, [unpacked / member])
        targets = [file for file in files if not is_sidecar(file)]
        for target in targets:
            with atomic_path(target) as temporary:
                shutil.copyfile(unpacked / target, temporary)
        # In the archive, sidecars contain other paths and no outputs.
        local_fields = {"outputs": targets, "source": Path(path).name}
        sidecars: dict[str, Sidecar] = {}
        for target in targets:
            if member_sidecar(target) in files:
                sidecar = load_record(unpacked / member_sidecar(target), Sidecar)
                sidecars[target] = sidecar.model_copy(update={"path": target, **local_fields})
        return sidecars


def _check_answers(path: str | Path, member: Path, target: str) -> None:
    """Raise a `UserError` if local and archived recordings have different answers to a question.

    Args:
        path: Path of the archive.
        member: Recordings file from the archive.
        target: Local recordings file.
    """
    ours, theirs = read_answers(target), read_answers(member)
    asked_in_both = ours.keys() & theirs.keys()
    conflicts = [key for key in asked_in_both if ours[key].digest != theirs[key].digest]
    if conflicts:
        raise UserError(
            f"{path} has other answers to {pluralize(len(conflicts), 'question')}",
            where=target,
            hint="move this file, or remove the archive from the setting archives",
        )
