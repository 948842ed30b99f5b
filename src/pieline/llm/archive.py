"""A folder of recordings as a whole: list, verify, merge, and ship it as one file."""

import json
import tempfile
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import BinaryIO, NamedTuple

import zstandard

from pieline.core.errors import UserError
from pieline.core.files import atomic_path, canonical_json
from pieline.llm.recordings import (
    Reader,
    canonicalise,
    merged,
    opening,
    parse_line,
    recording,
    unite,
)

GIB = 1 << 30

MOST_UNPACKED = 8 * GIB
"""Bytes that an archive may unpack to unless its reader allows more."""

_LONGEST_LINE = 1 << 24
"""Bytes of a line in an archive: some hundred times the longest prompt."""

_LEVEL = 12
_CHUNK_BYTES = 1 << 10
"""Packed bytes at a time: zstd can make 32,000 times as many of them."""

_REFUSED = "fetch it again, or do not use it"


@dataclass(frozen=True)
class Summary:
    """What one file of recordings holds.

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
    """What a merge did: answers that were new, and keys that had another answer already."""

    added: int
    conflicts: tuple[str, ...]


def is_recording(name: str) -> bool:
    """Whether a relative path may name a file of recordings, on any file system."""
    *folders, file = _folded(name).split("/")
    return (
        name.endswith(".jsonl")
        and file != "ledger.jsonl"  # the spending of older versions
        and not any(part.startswith(".") or not part for part in [*folders, file])
        and not any(part.endswith(".jsonl") for part in folders)
        and name.isprintable()
        and "\\" not in name
    )


def _folded(name: str) -> str:
    """The same for all names that are one file where case or composition do not count."""
    return unicodedata.normalize("NFC", name).casefold()


def recording_files(folder: str | Path) -> list[Path]:
    """Files of recordings in a folder and below, sorted; a file is itself."""
    folder = Path(folder)
    if folder.is_file():
        return [folder]
    if not folder.is_dir():
        raise UserError("no such folder", where=folder, mend="check the path")
    return sorted(
        file
        for file in folder.rglob("*.jsonl")
        if is_recording(file.relative_to(folder).as_posix())
    )


def summarise(path: str | Path) -> Summary:
    """Count what a file of recordings holds.

    Raises:
        UserError: a faulty line; names file and line.
    """
    path = Path(path)
    keys: set[bytes] = set()
    models: set[str] = set()
    hand_written = input_tokens = output_tokens = 0
    with Reader(path) as reader:
        reader.learn_texts()
        for line in reader.lines():
            if line.place.startswith(b"0") or line.place in keys:
                continue
            keys.add(line.place)
            answer = reader.answer(line)
            models.add(str(line.value["question"]["model"]))
            hand_written += answer.origin == "hand-written"
            input_tokens += answer.input_tokens or 0
            output_tokens += answer.output_tokens or 0
    return Summary(
        path, tuple(sorted(models)), len(keys), hand_written, input_tokens, output_tokens
    )


def verify(path: str | Path) -> list[str]:
    """Problems of a file, each as `file:line: what`; none if all answers are under their question.

    Found are: lines that are no recordings, keys that are not the digest of their question, shared
    texts that are not those of their digest or are missing, answers with unknown fields, bodies
    that were sent and are not their question's, and two answers under one key.

    Raises:
        UserError: the file cannot be read.
    """
    return [f"{path}:{number}: {what}" for number, what in _faults(Path(path))]


def _faults(path: Path) -> Iterator[tuple[int, str]]:
    """Number of each faulty line, and what is wrong with it."""
    answers: dict[bytes, int] = {}
    with Reader(path) as reader:
        reader.learn_texts(strict=False)
        for line in reader.lines(strict=False):
            try:
                reader.check(line)
            except UserError as error:
                yield line.number, error.what
                continue
            if line.place.startswith(b"1"):
                answer = hash(canonical_json(line.value["answer"]))
                if answers.setdefault(line.place, answer) != answer:
                    yield line.number, "another answer stands under the same key"


class _Source(NamedTuple):
    """A file whose answers are to be merged, and how its lines are named in errors."""

    path: Path
    origin: Path
    line_before: int = 0


def merge(target: str | Path, sources: Iterable[str | Path]) -> dict[str, Merged]:
    """Add the answers of `sources` that `target` lacks; where both have one, `target`'s stays.

    Returns:
        What was added, by source.

    Raises:
        UserError: a source that is given twice or that `verify` finds fault with, or a damaged
            line in `target`; nothing is changed then.
    """
    given = [_Source(Path(source), Path(source)) for source in sources]
    for number, source in enumerate(given):
        if not source.path.is_file():
            raise UserError("no such file", where=source.path, mend="check the path")
        if source in given[:number]:
            raise UserError("given twice", where=source.path, mend="name each file once")
    done = _merge([(Path(target), source) for source in given])
    return {str(source.path): each for source, each in zip(given, done, strict=True)}


def _merge(pairs: Sequence[tuple[Path, _Source]]) -> list[Merged]:
    """Merge sources into targets, when all that will be read has been read once."""
    for target, source in pairs:
        for number, what in _faults(source.path):
            where = f"{source.origin}:{source.line_before + number}"
            raise UserError(what, where=where, mend="correct the line, or fetch the file again")
        with Reader(target) as reader:
            reader.learn_texts()
    return [_merge_one(target, source.path) for target, source in pairs]


def _merge_one(target: Path, source: Path) -> Merged:
    added, is_new, conflicts = 0, False, []
    with recording(target):
        with Reader(target) as ours, Reader(source) as theirs:
            for place, group in groupby(merged(ours, theirs), itemgetter(0)):
                (_, number, raw), *others = group
                is_answer = place.startswith(b"1")
                is_new |= number == 1
                added += number == 1 and is_answer
                if is_answer and any(_answer(raw) != _answer(other[2]) for other in others):
                    conflicts.append(place[1:].decode())
        if is_new:
            unite(target, target, source)
        else:
            canonicalise(target)
    return Merged(added, tuple(conflicts))


def _answer(raw: bytes) -> object:
    return (parse_line(raw) or {}).get("answer")


def export_folder(folder: str | Path, archive: str | Path) -> int:
    """Write all recordings of a folder to one `.jsonl.zst` file; the number of answers in it.

    Equal recordings give equal bytes. Each file is a line `{"file": "<relative path>"}` followed by
    its lines in canonical order. The ledger is not part of it.

    Raises:
        UserError: no recordings, or a file that `verify` finds fault with.
    """
    folder = Path(folder)
    files, answers = recording_files(folder), 0
    if not files:
        raise UserError("holds no recordings", where=folder, mend="name the folder that does")
    packer = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True)
    with (
        atomic_path(archive) as temporary,
        temporary.open("wb") as packed,
        packer.stream_writer(packed) as stream,
    ):
        for path in files:
            for number, what in _faults(path):
                mend = "see `pieline recordings verify`"
                raise UserError(what, where=f"{path}:{number}", mend=mend)
            name = path.relative_to(folder).as_posix() if path != folder else path.name
            stream.write((canonical_json({"file": name}) + "\n").encode("utf-8"))
            with Reader(path) as reader:
                for place, raw in reader.in_order():
                    stream.write(raw)
                    answers += place.startswith(b"1")
    return answers


def import_archive(
    archive: str | Path, folder: str | Path, *, most_bytes: int = MOST_UNPACKED
) -> dict[str, Merged]:
    """Merge an exported file into a folder: what was added, by relative path.

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
        files = _unpack(archive, Path(place), most_bytes)
        done = _merge([(folder / name, source) for name, source in files.items()])
    return dict(zip(files, done, strict=True))


def _unpack(archive: Path, place: Path, most_bytes: int) -> dict[str, _Source]:
    """Write each file of an archive to one in `place`; by the names that they have in it."""
    files: dict[str, _Source] = {}
    names: set[str] = set()
    with ExitStack() as stack:
        stream: BinaryIO | None = None
        for number, raw in enumerate(_archived_lines(archive, most_bytes), 1):
            where = f"{archive}:{number}"
            if raw.startswith(b'{"file":'):
                name = _file_name(raw, where)
                if _folded(name) in names:
                    raise UserError(f"names the file {name} twice", where=where, mend=_REFUSED)
                names.add(_folded(name))
                files[name] = _Source(place / f"{len(files)}.jsonl", archive, number)
                stack.close()
                stream = stack.enter_context(files[name].path.open("wb"))
            elif stream is None:
                raise UserError("no file named before", where=where, mend=_REFUSED)
            elif not raw.startswith(b"{"):  # seen here, it does not fill the disk first
                raise UserError("not a line of recordings", where=where, mend=_REFUSED)
            else:
                stream.write(raw)
    if not files:
        raise UserError("holds no recordings", where=archive, mend=_REFUSED)
    return files


def _file_name(raw: bytes, where: str) -> str:
    """The relative path that a line `{"file": ...}` names."""
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        value = {}
    name = value.get("file")
    if value.keys() != {"file"} or not isinstance(name, str) or not is_recording(name):
        raise UserError(f"names the file {name!r}, no recordings", where=where, mend=_REFUSED)
    return name


def _archived_lines(archive: Path, most_bytes: int) -> Iterator[bytes]:
    """Lines of an archive with their newlines, in bounded memory."""
    rest = b""
    for data in _unpacked(archive, most_bytes):
        *lines, rest = (rest + data).split(b"\n")
        if len(rest) > _LONGEST_LINE:
            raise UserError(
                f"holds a line of more than {_LONGEST_LINE >> 20} MiB", where=archive, mend=_REFUSED
            )
        for line in lines:
            yield line + b"\n"
    if rest:
        raise _cut_off(archive)


def _unpacked(archive: Path, most_bytes: int) -> Iterator[bytes]:
    """Content of an archive, all frames of it."""
    frame = None
    size = frames = 0
    with opening(archive), archive.open("rb") as packed:
        while data := packed.read(_CHUNK_BYTES):
            while data:
                if frame is None:
                    frame = zstandard.ZstdDecompressor().decompressobj()
                    frames += 1
                try:
                    content = frame.decompress(data)
                except zstandard.ZstdError as error:
                    raise UserError(
                        f"not a whole zstd file: {error}", where=archive, mend=_REFUSED
                    ) from None
                size += len(content)
                if size > most_bytes:
                    raise UserError(
                        f"unpacks to more than {_size(most_bytes)}",
                        where=archive,
                        mend="allow more with --max-size if you trust where it comes from",
                    )
                yield content
                data = frame.unused_data if frame.eof else b""
                frame = None if frame.eof else frame
    if frame is not None or not frames:
        raise _cut_off(archive)


def _size(size: int) -> str:
    return f"{size / GIB:g} GiB" if size >= GIB // 100 else f"{size:,} bytes"


def _cut_off(archive: Path) -> UserError:
    return UserError("the file is cut off", where=archive, mend=_REFUSED)
