"""List, verify, merge and import folders of recordings."""

import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pieline.core.errors import UserError
from pieline.core.files import canonical_json
from pieline.core.packing import MOST_UNPACKED, REFUSED, is_plain, normalize_name, unpack
from pieline.llm.recordings import (
    all_lines,
    belongs_to,
    joined,
    raw_lines,
    read_answers,
    read_lines,
    read_responses,
    recording,
    write_lines,
)


@dataclass(frozen=True)
class Summary:
    """Counts over one recordings file.

    Attributes:
        path: Path of the file.
        models: Checkpoints that were queried, sorted.
        answers: Number of answers, including failures.
        hand_written: Number of hand-written answers (sample recordings).
        input_tokens, output_tokens: Sums over the answers that have token counts.
    """

    path: Path
    models: tuple[str, ...]
    answers: int
    hand_written: int
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True)
class MergeResult:
    """Result of a merge.

    Attributes:
        added: Number of new answers, including failures.
        conflicts: Keys for which the target file has a different answer, which was kept.
    """

    added: int
    conflicts: tuple[str, ...]


def is_recording(name: str) -> bool:
    """Return whether a path is a valid relative path of a recordings file on every file system."""
    *folders, _ = normalize_name(name).split("/")
    in_no_file = not any(folder.endswith(".jsonl") for folder in folders)
    return name.endswith(".jsonl") and is_plain(name) and in_no_file


def recording_files(folder: str | Path) -> list[Path]:
    """Return the sorted paths of the recordings files in a folder and its subfolders.

    If `folder` is a file, returns only its path.

    Raises:
        UserError: The folder does not exist.
    """
    folder = Path(folder)
    if folder.is_file():
        return [folder]
    if not folder.is_dir():
        raise UserError("no such folder", where=folder, hint="check the path")
    return sorted(
        file
        for file in folder.rglob("*.jsonl")
        if is_recording(file.relative_to(folder).as_posix())
    )


def summarize(path: str | Path) -> Summary:
    """Count the answers and tokens in a recordings file and list its models.

    Raises:
        UserError: A line is invalid; the message states file and line.
    """
    path = Path(path)
    models = {line.question().model for line in read_lines(path)}
    answers = [answer for own in read_responses(path).values() for answer in own]
    return Summary(
        path,
        tuple(sorted(models)),
        len(answers),
        sum(answer.origin == "hand-written" for answer in answers),
        sum(answer.input_tokens or 0 for answer in answers),
        sum(answer.output_tokens or 0 for answer in answers),
    )


def verify(path: str | Path, target: str | Path | None = None) -> list[str]:
    """Return the problems in a recordings file, each as `file:line: problem`.

    Problems are lines that are not recordings, keys that are not the digest of their question,
    invalid questions and answers, request bodies that differ from their question, different
    answers with the same key, and, if `target` is given, lines that were recorded for another run
    than that of the file `target`.
    """
    return [f"{fault.where}: {fault.what}" for fault in _faults(Path(path), target)]


def _faults(path: Path, target: str | Path | None = None) -> Iterator[UserError]:
    """Yield an error for each invalid line (see `verify`)."""
    answers: dict[str, int] = {}
    for line in all_lines(path):
        try:
            answer = line.check()
        except UserError as error:
            yield error
            continue
        content = hash(canonical_json(answer.record()))
        if not answer.failure and answers.setdefault(line.key, content) != content:
            yield line.fault("an earlier line has a different answer with the same key")
        if target and not belongs_to(target, line.run):
            what = f"recorded for the run {line.run}, not for {target}"
            yield UserError(
                what, where=f"{path}:{line.number}", hint="use the file of the answer's run"
            )


def merge(target: str | Path, sources: Iterable[str | Path]) -> dict[str, MergeResult]:
    """Copy the answers that `target` lacks from `sources`; keep all answers in `target`.

    Returns:
        The result of each merge, by source.

    Raises:
        UserError: A source is missing, listed twice or invalid (see `verify`), or a line in
            `target` is damaged. In all of these cases, nothing is changed.
    """
    done: dict[str, Path] = {}
    for source in map(Path, sources):
        if not source.is_file():
            raise UserError("no such file", where=source, hint="check the path")
        if str(source) in done:
            raise UserError("listed twice", where=source, hint="list each file once")
        for fault in _faults(source, target):
            raise fault
        done[str(source)] = source
    raw_lines(target)  # raises before anything is changed
    return {name: _merge(Path(target), source) for name, source in done.items()}


def _merge(target: Path, source: Path) -> MergeResult:
    """Merge a valid file into `target`."""
    with recording(target):
        ours, theirs = raw_lines(target), raw_lines(source)
        answered, conflicts = read_answers(target), []
        for key, answer in read_answers(source).items():
            known = answered.get(key, answer)
            if not (known.failure or answer.failure or known == answer):
                conflicts.append(key)
        new = {key: own for key, own in theirs.items() if key not in conflicts}
        both = joined(ours, new)
        added = sum(map(len, both.values())) - sum(map(len, ours.values()))
        if added:
            write_lines(target, both)
        return MergeResult(added, tuple(sorted(conflicts)))


def import_archive(
    archive: str | Path, folder: str | Path, *, most_bytes: int = MOST_UNPACKED
) -> dict[str, MergeResult]:
    """Merge a .tar.zst archive of recordings into a folder and return the results by relative path.

    The archive is first unpacked into a temporary folder.

    Args:
        archive: Packed folder of recordings, such as by `tar --zstd`.
        folder: Recordings folder.
        most_bytes: Maximum unpacked size in bytes.

    Raises:
        UserError: The archive is invalid, contains no recordings, unpacks to more than `most_bytes`
            or has an invalid line, or a line in the folder's file of the same name is damaged. In
            all of these cases, nothing is changed.
    """
    archive, folder = Path(archive), Path(folder)
    with tempfile.TemporaryDirectory() as place:
        names = unpack(
            archive,
            place,
            allowed=is_recording,
            most_bytes=most_bytes,
            if_larger="raise the limit with --max-size if you trust its source",
        )
        if not names:
            raise UserError("contains no recordings", where=archive, hint=REFUSED)
        for name in names:
            for fault in _faults(Path(place, name), folder / name):
                where = fault.where.replace(f"{place}/", f"{archive}: ")
                raise UserError(fault.what, where=where, hint=REFUSED)
            raw_lines(folder / name)  # raises before anything is changed
        return {name: _merge(folder / name, Path(place, name)) for name in names}
