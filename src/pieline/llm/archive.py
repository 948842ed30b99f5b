"""List, verify, merge, export and import folders of recordings."""

import json
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pieline.core.errors import UserError
from pieline.core.files import canonical_json
from pieline.core.packing import MOST_UNPACKED, REFUSED, is_plain, normalize_name, pack, unpack
from pieline.llm.recordings import Line, all_lines, raw_lines, read_lines, recording, write_lines


@dataclass(frozen=True)
class Summary:
    """Counts over one file of recordings.

    Attributes:
        path: the file.
        models: checkpoints that were asked.
        answers: how many.
        hand_written: those that no model gave (sample recordings).
        input_tokens, output_tokens: sums over the answers whose tokens were counted.
    """

    path: Path
    models: tuple[str, ...]
    answers: int
    hand_written: int
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True)
class Merged:
    """Result of a merge: number of new answers, and keys that already had another answer."""

    added: int
    conflicts: tuple[str, ...]


def is_recording(name: str) -> bool:
    """Return whether a relative path may name a file of recordings, on any file system."""
    *folders, _ = normalize_name(name).split("/")
    in_no_file = not any(folder.endswith(".jsonl") for folder in folders)
    return name.endswith(".jsonl") and is_plain(name) and in_no_file


def recording_files(folder: str | Path) -> list[Path]:
    """Return the files of recordings in a folder and below, sorted, or the given file."""
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


def summarise(path: str | Path) -> Summary:
    """Count the answers, models and tokens of a file of recordings.

    Raises:
        UserError: a faulty line; names file and line.
    """
    path = Path(path)
    keys: set[str] = set()
    models: set[str] = set()
    hand_written = input_tokens = output_tokens = 0
    for line in read_lines(path):
        if line.key in keys:
            continue
        keys.add(line.key)
        answer = line.answer()
        models.add(line.question().model)
        hand_written += answer.origin == "hand-written"
        input_tokens += answer.input_tokens or 0
        output_tokens += answer.output_tokens or 0
    return Summary(
        path, tuple(sorted(models)), len(keys), hand_written, input_tokens, output_tokens
    )


def verify(path: str | Path) -> list[str]:
    """Return the problems of a file, each as `file:line: what`; none if it is valid.

    Problems are lines that are no recordings, keys that are not the digest of their question,
    answers with unknown fields, bodies that were sent and are not their question's, and two answers
    under one key.
    """
    return [f"{line.path}:{line.number}: {what}" for line, what in _faults(Path(path))]


def _faults(path: Path) -> Iterator[tuple[Line, str]]:
    """Yield each faulty line and what is wrong with it."""
    answers: dict[str, int] = {}
    for line in all_lines(path):
        try:
            answer = hash(canonical_json(line.check().record()))
        except UserError as error:
            yield line, error.what
            continue
        if answers.setdefault(line.key, answer) != answer:
            yield line, "another answer stands under the same key"


def _check(path: Path, hint: str, shown: str = "") -> None:
    """Raise a `UserError` for the first faulty line of a file, `shown` as its name if given."""
    for line, what in _faults(path):
        raise UserError(what, where=f"{shown or path}:{line.number}", hint=hint)


def merge(target: str | Path, sources: Iterable[str | Path]) -> dict[str, Merged]:
    """Add the answers of `sources` that `target` lacks; where both have one, `target`'s stays.

    Returns:
        What was added, by source.

    Raises:
        UserError: a source that is given twice or that `verify` finds fault with, or a damaged
            line in `target`; nothing is changed then.
    """
    done: dict[str, Path] = {}
    for source in map(Path, sources):
        if not source.is_file():
            raise UserError("no such file", where=source, hint="check the path")
        if str(source) in done:
            raise UserError("given twice", where=source, hint="name each file once")
        _check(source, "correct the line, or fetch the file again")
        done[str(source)] = source
    raw_lines(target)  # raises before anything is changed
    return {name: _merge(Path(target), source) for name, source in done.items()}


def _merge(target: Path, source: Path) -> Merged:
    """Merge a file that was checked."""
    with recording(target):
        ours, theirs = raw_lines(target), raw_lines(source)
        shared = sorted(ours.keys() & theirs.keys())
        conflicts = (key for key in shared if _answer(ours[key]) != _answer(theirs[key]))
        if len(theirs) > len(shared):
            write_lines(target, theirs | ours)
        return Merged(len(theirs) - len(shared), tuple(conflicts))


def _answer(raw: bytes) -> object:
    return json.loads(raw)["answer"]


def export_folder(folder: str | Path, archive: str | Path) -> int:
    """Write all recordings of a folder to one `.tar.zst` file and return their number.

    Equal recordings give equal bytes: each file is in order, without owner and time.

    Raises:
        UserError: no recordings, or a file that `verify` finds fault with.
    """
    folder = Path(folder)
    files, answers = recording_files(folder), 0
    if not files:
        raise UserError("holds no recordings", where=folder, hint="name the folder that does")

    def members() -> Iterator[tuple[str, bytes]]:
        nonlocal answers
        for path in files:
            _check(path, "see `pieline recordings verify`")
            lines = raw_lines(path)
            answers += len(lines)
            name = path.relative_to(folder).as_posix() if path != folder else path.name
            yield name, b"".join(lines[key] for key in sorted(lines))

    pack(archive, members())
    return answers


def import_archive(
    archive: str | Path, folder: str | Path, *, most_bytes: int = MOST_UNPACKED
) -> dict[str, Merged]:
    """Merge an exported file into a folder and return the results by relative path.

    It is unpacked in the folder for temporary files.

    Args:
        archive: what `export_folder` wrote.
        folder: the folder of recordings.
        most_bytes: that it may unpack to.

    Raises:
        UserError: not such a file, one that unpacks to more, or one with a faulty line; nothing is
            changed then.
    """
    archive, folder = Path(archive), Path(folder)
    with tempfile.TemporaryDirectory() as place:
        names = unpack(
            archive,
            place,
            allowed=is_recording,
            most_bytes=most_bytes,
            if_larger="allow more with --max-size if you trust where it comes from",
        )
        if not names:
            raise UserError("holds no recordings", where=archive, hint=REFUSED)
        for name in names:
            _check(Path(place, name), REFUSED, shown=f"{archive}: {name}")
            raw_lines(folder / name)  # raises before anything is changed
        return {name: _merge(folder / name, Path(place, name)) for name in names}
