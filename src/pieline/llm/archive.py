"""List, verify, merge and import recordings files."""

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
    count_lines,
    merge_lines,
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
    """Result of merging one recordings file into another.

    Attributes:
        added: Number of new answers, including failures.
        conflicts: Keys for which the target file has a different answer, which was kept.
    """

    added: int
    conflicts: tuple[str, ...]


def is_recording(name: str) -> bool:
    """Return whether a path is a valid relative path of a recordings file on every file system."""
    *folders, _ = normalize_name(name).split("/")
    is_below_a_file = any(folder.endswith(".jsonl") for folder in folders)
    return name.endswith(".jsonl") and is_plain(name) and not is_below_a_file


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
        UserError: A line is invalid; the message states the file and the line.
    """
    path = Path(path)
    models = {line.question().model for line in read_lines(path)}
    answers = [answer for responses in read_responses(path).values() for answer in responses]
    return Summary(
        path,
        models=tuple(sorted(models)),
        answers=len(answers),
        hand_written=sum(answer.origin == "hand-written" for answer in answers),
        input_tokens=sum(answer.input_tokens or 0 for answer in answers),
        output_tokens=sum(answer.output_tokens or 0 for answer in answers),
    )


def verify(path: str | Path, target: str | Path | None = None) -> list[str]:
    """Return the problems in a recordings file, each as `file:line: problem`.

    Problems are lines that are not recordings, keys that are not the digest of their question,
    invalid questions and answers, request bodies that differ from their question, and different
    answers with the same key. If `target` is set, lines that were not recorded for the run of the
    recordings file `target` are also problems.
    """
    return [f"{fault.where}: {fault.what}" for fault in _find_faults(Path(path), target)]


def _find_faults(path: Path, target: str | Path | None = None) -> Iterator[UserError]:
    """Yield an error for each problem in a recordings file (see `verify`)."""
    # Hashes of the answers need less memory than the answers.
    first_hash_by_key: dict[str, int] = {}
    for line in all_lines(path):
        try:
            answer = line.check()
        except UserError as error:
            yield error
            continue
        if not answer.failure:
            answer_hash = hash(canonical_json(answer.record()))
            first_hash = first_hash_by_key.setdefault(line.key, answer_hash)
            if first_hash != answer_hash:
                yield line.fault("an earlier line has a different answer with the same key")
        if target and not belongs_to(target, line.run):
            yield UserError(
                f"recorded for the run {line.run}, not for {target}",
                where=f"{path}:{line.number}",
                hint="use the file of the answer's run",
            )


def merge(target: str | Path, sources: Iterable[str | Path]) -> dict[str, MergeResult]:
    """Add those answers in the files `sources` that the recordings file `target` lacks.

    All answers in `target` are kept.

    Returns:
        The result of each merge, by the path of the source.

    Raises:
        UserError: A source is missing, listed twice or invalid (see `verify`), or a line in
            `target` is damaged. In all of these cases, nothing is changed.
    """
    source_by_name: dict[str, Path] = {}
    for source in map(Path, sources):
        if not source.is_file():
            raise UserError("no such file", where=source, hint="check the path")
        if str(source) in source_by_name:
            raise UserError("listed twice", where=source, hint="list each file once")
        fault = next(_find_faults(source, target), None)
        if fault:
            raise fault
        source_by_name[str(source)] = source
    raw_lines(target)  # raises before anything is changed
    return {name: _merge(Path(target), source) for name, source in source_by_name.items()}


def _merge(target: Path, source: Path) -> MergeResult:
    """Add the lines of the valid file `source` to `target`, except for contradicted questions.

    A question is contradicted if both files have an answer to it and the answers differ. All lines
    of this question in `source` are left out, including those that report failures.
    """
    with recording(target):
        target_answers = read_answers(target)
        conflicting_keys: set[str] = set()
        for key, source_answer in read_answers(source).items():
            target_answer = target_answers.get(key)
            if target_answer is None or target_answer.failure or source_answer.failure:
                continue
            if target_answer != source_answer:
                conflicting_keys.add(key)
        target_lines = raw_lines(target)
        accepted_lines = {
            key: lines for key, lines in raw_lines(source).items() if key not in conflicting_keys
        }
        merged_lines = merge_lines(target_lines, accepted_lines)
        added = count_lines(merged_lines) - count_lines(target_lines)
        if added:
            write_lines(target, merged_lines)
        return MergeResult(added, tuple(sorted(conflicting_keys)))


def import_archive(
    archive: str | Path, folder: str | Path, *, most_bytes: int = MOST_UNPACKED
) -> dict[str, MergeResult]:
    """Merge the recordings files of an archive into the files of a recordings folder.

    The archive is first unpacked into a temporary folder.

    Args:
        archive: `.tar.zst` archive of a recordings folder, for example created by `tar --zstd`.
        folder: Recordings folder.
        most_bytes: Maximum unpacked size in bytes.

    Returns:
        The result of each file's merge, by the path of the file in the archive.

    Raises:
        UserError: The archive is invalid, contains no recordings, is larger than `most_bytes` when
            unpacked or has an invalid line; or a line in the folder's file of the same name is
            damaged. In all of these cases, nothing is changed.
    """
    archive, folder = Path(archive), Path(folder)
    with tempfile.TemporaryDirectory() as unpacked:
        names = unpack(
            archive,
            unpacked,
            allowed=is_recording,
            most_bytes=most_bytes,
            if_larger="raise the limit with --max-size if you trust its source",
        )
        if not names:
            raise UserError("contains no recordings", where=archive, hint=REFUSED)
        for name in names:
            fault = next(_find_faults(Path(unpacked, name), folder / name), None)
            if fault:
                # State the path in the archive instead of the temporary path.
                where = fault.where.replace(f"{unpacked}/", f"{archive}: ")
                raise UserError(fault.what, where=where, hint=REFUSED)
            raw_lines(folder / name)  # raises before anything is changed
        return {name: _merge(folder / name, Path(unpacked, name)) for name in names}
