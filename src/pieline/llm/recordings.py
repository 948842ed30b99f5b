"""Files of recorded answers: JSON lines that survive a kill at any byte.

A file holds two kinds of lines:

- `{"content": "...", "text": "<sha256>"}`: a text that many questions share (a system prompt, an
  example turn), stored once under its digest;
- `{"answer": {...}, "key": "...", "question": {...}}`: what was asked and what was answered. The
  key can be computed again from the question. A turn of the question is `{"role", "content"}` or,
  for a shared text, `{"role", "text": "<sha256>"}`.

Lines are only ever appended, each with one write, and synced to the disk before the answer is
used. Of two lines with one key the first counts. A torn last line was never used by anyone: readers
skip it and the next writer cuts it off. When a job ends its file is put in canonical order (shared
texts by digest, then answers by key), so that git shows small differences and two copies can be
merged line by line.

Files may hold millions of answers: they are read line by line, and only the lines that are wanted
are read as JSON.
"""

import gc
import hashlib
import heapq
import io
import json
import os
import re
from collections import deque
from collections.abc import Collection, Container, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, NoReturn, Self

from pydantic import ValidationError

from pieline.core.errors import UserError
from pieline.core.files import atomic_path, canonical_json
from pieline.core.records import explain
from pieline.llm.answers import Answer
from pieline.llm.locks import lock
from pieline.llm.questions import Message, Question
from pieline.llm.wire import misfit

SHARED_FROM = 120
"""Turns before the last one are stored once if they have at least this many characters."""

_TEXTS_IN_MEMORY = 1 << 26
"""Bytes of shared texts that a reader keeps."""

_TAIL_BYTES = 1 << 16

# How `canonical_json` writes a line: {"answer":{...},"key":"...","question":{...}}
_KEY_MARK = b'},"key":"'
_KEY_LENGTH = 64
_QUESTION_MARK = b'","question":'
_SHARED_TURN = re.compile(rb'\{"role":("[a-z]+"),"text":"([0-9a-f]{64})"\}')


class Line(NamedTuple):
    """One whole line of a recordings file.

    Attributes:
        number: of the line, from 1.
        at: offset of its first byte in the file.
        raw: its bytes, with the newline.
        place: what the canonical order sorts by: `0` and the digest of a shared text, or `1` and
            the key of an answer; empty for a line that is neither.
    """

    number: int
    at: int
    raw: bytes
    place: bytes

    @property
    def value(self) -> dict[str, Any]:
        """Its JSON.

        Raises:
            ValueError: it is damaged within.
        """
        value = parse_line(self.raw)
        if value is None:
            raise ValueError("not a line of recordings")
        return value


class Reader:
    """An open file of recordings, which may be far larger than memory; a missing one is empty.

    What it reads is one state of the file, even if another process replaces it meanwhile.

    Raises:
        UserError: the file cannot be read.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._texts: dict[bytes, tuple[int, int]] = {}
        self._read: dict[bytes, bytes] = {}
        self._bytes_read = 0
        self._stream: BinaryIO = io.BytesIO()
        with opening(self.path), suppress(FileNotFoundError):
            self._stream = self.path.open("rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def lines(
        self, wanted: Container[bytes] | None = None, *, strict: bool = True
    ) -> Iterator[Line]:
        """Whole lines; JSON is parsed only where a line is not written as `Recorder` writes it.

        Of a line that is, its begin, its end and its key are seen, and `check` sees the rest.

        Args:
            wanted: places of the answers to give (default: of all); shared texts are given always.
            strict: whether a damaged line is an error and a torn last one is skipped; if not, both
                are lines with an empty place.

        Raises:
            UserError: a damaged line; names file and line.
        """
        self._stream.seek(0)
        at = 0
        for number, raw in enumerate(self._stream, 1):
            place = _place(raw)
            if wanted is None or place in wanted or not place.startswith(b"1"):
                if place.startswith(b"0"):
                    self._texts.setdefault(place, (at, len(raw)))
                is_whole = raw.endswith(b"\n")
                line = Line(number, at, raw if is_whole else raw + b"\n", place)
                if place or not strict:
                    yield line
                elif is_whole:
                    raise self._fault(line, "not a line of recordings")
            at += len(raw)

    def learn_texts(self, *, strict: bool = True) -> set[str]:
        """Read through the file for its shared texts; their digests."""
        deque(self.lines((), strict=strict), maxlen=0)
        return {place[1:].decode("utf-8", "replace") for place in self._texts}

    def answer(self, line: Line, *, with_sent: bool = True) -> Answer:
        """The answer that a line holds, if it stands under its own question.

        All lines were read before, so that the shared texts are known. Without `with_sent` a line
        as `Recorder` writes it is read without what was sent.

        Raises:
            UserError: the key is not the digest of the question, a shared text is missing, or the
                line holds no answer to a question; names file and line.
        """
        key = line.place[1:].decode("utf-8", "replace")
        with suppress(ValueError):
            # As `Recorder` wrote it a line has what the key was computed from, byte by byte.
            at = line.raw.find(_KEY_MARK)
            asked = line.raw[at + len(_KEY_MARK) + _KEY_LENGTH + len(_QUESTION_MARK) : -2]
            fields = line.raw[len(b'{"answer":') : at]
            # A key of its own, as `Recorder` writes none, must not hide behind the right one.
            own_key = b'"key"' in fields
            digest = hashlib.sha256(_SHARED_TURN.sub(self._turn, asked)).hexdigest()
            if digest == key and not own_key:
                if not with_sent:
                    fields = _without_sent(fields)
                return Answer.model_validate_json(fields + b',"key":"' + line.place[1:] + b'"}')
        try:
            value = line.value
            if "key" in value["answer"]:
                raise ValueError("key: stands within the answer")
            answer = Answer(key=value["key"], **value["answer"])
            genuine = self._question(value["question"]).key == key == answer.key
        except KeyError as error:
            raise self._fault(line, f"lacks {error}") from None
        except (TypeError, AttributeError):  # their texts speak of Python
            raise self._fault(line, "not a question and its answer") from None
        except (ValueError, UserError) as error:
            why = explain(error) if isinstance(error, ValidationError) else error
            raise self._fault(line, f"not a question and its answer ({why})") from None
        if not genuine:
            raise self._fault(line, "the key is not the digest of the question")
        return answer

    def question(self, line: Line) -> Question:
        """The question of a line whose answer was read."""
        return self._question(line.value["question"])

    def check(self, line: Line) -> None:
        """Check all of a line, as `answer` does, and that its body that was sent is its question's.

        A shared text must be the one of its digest.

        Raises:
            UserError: what is wrong; names file and line.
        """
        if line.place.startswith(b"1"):
            answer = self.answer(line)
            if answer.sent and (problem := misfit(self.question(line), answer.sent)):
                raise self._fault(line, problem)
            return
        value = parse_line(line.raw)
        if value is None:
            raise self._fault(line, "not a line of recordings")
        if _digest(str(value["content"])) != value["text"]:
            raise self._fault(line, "the text is not the one of its digest")

    def in_order(self) -> Iterator[tuple[bytes, bytes]]:
        """Place and bytes of each line in canonical order; of lines of one place the first.

        The part of the file that is in order is read through; of the lines behind it only places
        and offsets are in memory.
        """
        end, behind = self._order
        waiting = sorted(behind, reverse=True)
        for line in self.lines():
            if line.at >= end:
                break
            while waiting and waiting[-1] < line.place:
                place = waiting.pop()
                yield place, self._bytes(*behind[place])
            if waiting and waiting[-1] == line.place:
                waiting.pop()
            yield line.place, line.raw
        for place in reversed(waiting):
            yield place, self._bytes(*behind[place])

    def is_in_order(self) -> bool:
        """Whether the file is exactly what `in_order` gives."""
        end, behind = self._order
        return not behind and end == self._stream.seek(0, os.SEEK_END)

    @cached_property
    def _order(self) -> tuple[int, dict[bytes, tuple[int, int]]]:
        """Where the part in order ends; offset and length by place of the lines behind it."""
        end, last = 0, b""
        behind: dict[bytes, tuple[int, int]] = {}
        for line in self.lines():
            if not behind and line.place > last:
                end, last = line.at + len(line.raw), line.place
            else:
                behind.setdefault(line.place, (line.at, len(line.raw)))
        return end, behind

    def _bytes(self, at: int, length: int) -> bytes:
        # Leaves the stream where it is, maybe in the middle of its lines.
        read = b""
        while more := os.pread(self._stream.fileno(), length - len(read), at + len(read)):
            read += more
        return read.removesuffix(b"\n") + b"\n"

    def _question(self, content: dict[str, Any]) -> Question:
        turns = [
            Message(turn["role"], self._text(turn["text"]) if "text" in turn else turn["content"])
            for turn in content["messages"]
        ]
        return Question(content["model"], tuple(turns), content["parameters"], content["sample"])

    def _text(self, digest: str) -> Any:
        text = self._shared(b"0" + digest.encode())
        if text is None:
            raise KeyError(f"shared text {digest}")
        return json.loads(text)

    def _turn(self, shared: re.Match[bytes]) -> bytes:
        """The canonical JSON of a turn that names a shared text."""
        role, digest = shared.groups()
        text = self._shared(b"0" + digest)
        return shared[0] if text is None else b'{"content":' + text + b',"role":' + role + b"}"

    def _shared(self, place: bytes) -> bytes | None:
        """The canonical JSON of a shared text, null if the file lacks it."""
        if place not in self._read and place in self._texts:
            value = parse_line(self._bytes(*self._texts[place]))
            text = canonical_json(value and value["content"]).encode("utf-8")
            self._bytes_read += len(text)
            if self._bytes_read > _TEXTS_IN_MEMORY:
                self._read.clear()
                self._bytes_read = len(text)
            self._read[place] = text
        return self._read.get(place)

    def _fault(self, line: Line, what: str) -> UserError:
        return UserError(
            what,
            where=f"{self.path}:{line.number}",
            mend="restore the file, resolve the merge or delete the line",
        )


def read_lines(path: str | Path) -> Iterator[Line]:
    """Whole lines of a recordings file; a torn last line is skipped, a missing file is empty.

    Raises:
        UserError: a line that is not the torn end of the file is no recordings line.
    """
    with Reader(path) as reader:
        yield from reader.lines()


def read_answers(
    path: str | Path, wanted: Collection[str] | None = None, *, with_sent: bool = True
) -> dict[str, Answer]:
    """Recorded answers by key. Each stands under its own question.

    Args:
        path: the file; one that is missing is empty.
        wanted: keys of the answers to read (default: of all).
        with_sent: whether to read what was sent, too, which takes as long as all else.

    Raises:
        UserError: a damaged line, or one whose key is not the digest of its question; names file
            and line.
    """
    places = None if wanted is None else {b"1" + key.encode() for key in wanted}
    with Reader(path) as reader, _no_garbage():
        found: dict[bytes, Line] = {}
        for line in reader.lines(places):
            if line.place.startswith(b"1"):
                found.setdefault(line.place, line)
        answers = (reader.answer(line, with_sent=with_sent) for line in found.values())
        return {answer.key: answer for answer in answers}


def _without_sent(fields: bytes) -> bytes:
    """The canonical JSON of an answer, the field `sent` taken out.

    Within a text a quote follows a backslash, so both marks are keys; before `sent` and after
    `text` no field has such keys.
    """
    start, end = fields.find(b',"sent":{'), fields.rfind(b'},"text":')
    return fields[:start] + fields[end + 1 :] if 0 < start < end else fields


@contextmanager
def _no_garbage() -> Iterator[None]:
    """Keep the collector from walking through all answers again and again: it halves the speed."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class Recorder:
    """Appends answers to the file that `recording` opened.

    Attributes:
        path: of the file.
    """

    def __init__(self, path: Path, handle: int, shared: set[str]) -> None:
        self.path, self._handle, self._shared = path, handle, shared

    def append(self, recorded: Iterable[tuple[Question, Answer]]) -> None:
        """Write these answers and return when they are on the disk."""
        lines: list[str] = []
        for question, answer in recorded:
            lines += self._lines(question, answer)
        data = "".join(line + "\n" for line in lines).encode("utf-8")
        while data:
            data = data[os.write(self._handle, data) :]
        os.fsync(self._handle)

    def _lines(self, question: Question, answer: Answer) -> Iterator[str]:
        if answer.key != question.key:
            raise ValueError("only an answer to this very question can be recorded")
        content = question.content()
        for turn in content["messages"][:-1]:
            text = turn["content"]
            if len(text) >= SHARED_FROM:
                turn["text"] = _digest(text)
                del turn["content"]
                if turn["text"] not in self._shared:
                    self._shared.add(turn["text"])
                    yield canonical_json({"text": turn["text"], "content": text})
        yield canonical_json({"key": question.key, "question": content, "answer": answer.record()})


@contextmanager
def recording(path: str | Path) -> Iterator[Recorder]:
    """Open a file of recordings for writing, as its only writer; made if it does not exist.

    Raises:
        UserError: another process writes this file; or it holds a damaged line.
    """
    path = Path(path)

    def refuse() -> NoReturn:
        raise UserError(
            "another run is writing this file", where=path, mend="wait until it has ended"
        )

    with lock(path.parent, path.name, refuse):
        for leftover in path.parent.glob(f".{path.name}.*.part"):
            leftover.unlink()  # of a run that was killed while it replaced the file
        with opening(path):
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        try:
            mend_tail(handle)
            with Reader(path) as reader:
                shared = reader.learn_texts()
            yield Recorder(path, handle, shared)
        finally:
            os.close(handle)


def foreign_file(path: Path) -> Path:
    """The file beside these recordings that keeps billed answers of other models."""
    return path.with_name(f"{path.name}.foreign")


def record(path: str | Path, answered: Iterable[tuple[Question, Answer]]) -> None:
    """Add answers to a file and put it in canonical order (for scripted sample recordings)."""
    with recording(path) as recorder:
        recorder.append(answered)
        canonicalise(path)


def canonicalise(path: str | Path) -> None:
    """Put a file in its one canonical order: shared texts by digest, then answers by key.

    Of lines with one key the first is kept; a torn last line is dropped. Atomic and idempotent.
    The caller must be the file's only writer.
    """
    path = Path(path)
    with Reader(path) as reader:
        in_order = reader.is_in_order()
    if not in_order:
        unite(path, path)


def unite(target: Path, *sources: Path) -> None:
    """Make `target` the lines of all sources (it may be one), in canonical order.

    Of lines with one key the first source's is kept. The file is replaced atomically, and its
    content is on the disk before the name points to it.
    """
    with ExitStack() as stack, atomic_path(target) as temporary:
        stream = stack.enter_context(temporary.open("wb"))
        readers = [stack.enter_context(Reader(source)) for source in sources]
        for _, lines in groupby(merged(*readers), itemgetter(0)):
            stream.write(next(lines)[2])
        stream.flush()
        os.fsync(stream.fileno())


def merged(*readers: Reader) -> Iterator[tuple[bytes, int, bytes]]:
    """The lines of files in one canonical order: place, number of the file, bytes.

    Lines of one place come one after the other, in the order of the files.
    """

    def of(number: int, reader: Reader) -> Iterator[tuple[bytes, int, bytes]]:
        return ((place, number, raw) for place, raw in reader.in_order())

    return heapq.merge(*(of(number, reader) for number, reader in enumerate(readers)))


def mend_tail(handle: int) -> None:
    """Make an open recordings file end with a whole line.

    A last line that lacks only its newline gets one; a torn one is cut off. Only the tail is read:
    the file may be larger than what one read gives.
    """
    size = at = os.fstat(handle).st_size
    tail = b""
    with open(handle, "rb", closefd=False) as stream:
        while at and b"\n" not in tail:
            length = min(at, max(_TAIL_BYTES, len(tail)))
            at -= length
            stream.seek(at)
            tail = stream.read(length) + tail
    tail = tail[tail.rfind(b"\n") + 1 :]
    if parse_line(tail) is not None:
        os.write(handle, b"\n")
    elif tail:
        os.ftruncate(handle, size - len(tail))
    os.fsync(handle)


def parse_line(raw: bytes) -> dict[str, Any] | None:
    """The JSON of a whole line of either kind, null for anything else."""
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    kinds = ({"text", "content"}, {"key", "question", "answer"})
    if not isinstance(value, dict) or value.keys() not in kinds:
        return None
    named = value["key"] if "key" in value else value["text"]
    return value if isinstance(named, str) else None


def _place(raw: bytes) -> bytes:
    """The place of a line (`Line.place`).

    Lines as `Recorder` writes them are not parsed. The marks that are looked for are no part of
    any text: a quote within a text follows a backslash, never a comma or a brace.
    """
    if raw.startswith(b'{"answer":{'):
        at = raw.find(_KEY_MARK) + len(_KEY_MARK)
        end = at + _KEY_LENGTH
        if raw.startswith(_QUESTION_MARK, end) and raw.endswith(b"}}\n"):
            return b"1" + raw[at:end]
    elif (
        raw.startswith(b'{"content":"') and raw.endswith(b'"}\n') and raw[-77:-67] == b'","text":"'
    ):
        return b"0" + raw[-67:-3]
    value = parse_line(raw)
    if value is None:
        return b""
    place: str = "1" + value["key"] if "key" in value else "0" + value["text"]
    return place.encode("utf-8", "surrogatepass")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@contextmanager
def opening(path: Path) -> Iterator[None]:
    """Make it an error in one line if a file cannot be opened, read or written."""
    try:
        yield
    except (OSError, ValueError) as error:  # a name with a NUL is no value
        why = getattr(error, "strerror", None) or error
        raise UserError(
            f"cannot be opened: {why}", where=path, mend="check path and permissions"
        ) from None
