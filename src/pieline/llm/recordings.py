"""Files of recorded answers: JSON lines that survive a kill at any byte.

A file holds two kinds of lines:

- `{"content": "...", "text": "<sha256>"}`: a text that many questions share (a system prompt, an
  example turn), stored once under its digest;
- `{"answer": {...}, "key": "...", "question": {...}}`: what was asked and what was answered. The
  key can be computed again from the question. A turn of the question is `{"role", "content"}` or,
  for a shared text, `{"role", "text": "<sha256>"}`.

Lines are only ever appended, each with one write, and synced to the disk before the answer is
used. Of two lines with one key the first counts. A torn last line was never used by anyone: readers
skip it and the next writer cuts it off. When a job ends its file is put in canonical order, so that
git shows small differences and two copies can be merged line by line.
"""

import hashlib
import json
import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from pydantic import ValidationError

from pieline.core.errors import UserError
from pieline.core.files import atomic_path, canonical_json
from pieline.llm.answers import Answer
from pieline.llm.locks import lock
from pieline.llm.questions import Message, Question

SHARED_FROM = 120
"""Turns before the last one are stored once if they have at least this many characters."""


class Line(NamedTuple):
    """One whole line of a recordings file: its number, its bytes (no newline) and its JSON."""

    number: int
    raw: bytes
    value: dict[str, Any]


def read_lines(path: Path) -> Iterator[Line]:
    """Whole lines of a recordings file; a torn last line is skipped, a missing file is empty.

    Raises:
        UserError: a line that is not the torn end of the file is no recordings line.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return
    pieces = data.split(b"\n")
    tail = pieces.pop()
    for number, raw in enumerate(pieces, 1):
        value = parse_line(raw)
        if value is None:
            raise UserError(
                "not a line of recordings",
                where=f"{path}:{number}",
                mend="restore the file, resolve the merge or delete the line",
            )
        yield Line(number, raw, value)
    value = parse_line(tail)
    if value is not None:
        yield Line(len(pieces) + 1, tail, value)


def read_answers(path: str | Path, wanted: Collection[str] | None = None) -> dict[str, Answer]:
    """Recorded answers by key: those among `wanted`, or all.

    Raises:
        UserError: a damaged line; names file and line.
    """
    path = Path(path)
    answers: dict[str, Answer] = {}
    for line in read_lines(path):
        key = line.value.get("key")
        if key is not None and key not in answers and (wanted is None or key in wanted):
            answers[key] = answer_in(line, path)
    return answers


def answer_in(line: Line, path: Path) -> Answer:
    """The answer that a line holds.

    Raises:
        UserError: the line's answer is not one; names file and line.
    """
    try:
        return Answer(key=line.value["key"], **line.value["answer"])
    except (ValidationError, TypeError, KeyError):
        raise UserError(
            "not an answer", where=f"{path}:{line.number}", mend="restore or delete the line"
        ) from None


def question_in(value: dict[str, Any], texts: dict[str, str]) -> Question:
    """The question that a line's JSON holds; `texts` are the file's shared texts by digest.

    Raises:
        KeyError, TypeError, AttributeError: the line's question is not one.
    """
    content = value["question"]
    turns = [
        Message(turn["role"], texts[turn["text"]] if "text" in turn else turn["content"])
        for turn in content["messages"]
    ]
    return Question(content["model"], tuple(turns), content["parameters"], content["sample"])


class Recorder:
    """Appends answers to the file that `recording` opened."""

    def __init__(self, handle: int, shared: set[str]) -> None:
        self._handle, self._shared = handle, shared

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
                turn["text"] = hashlib.sha256(text.encode("utf-8")).hexdigest()
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
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        try:
            mend_tail(handle)
            shared = {line.value["text"] for line in read_lines(path) if "text" in line.value}
            yield Recorder(handle, shared)
        finally:
            os.close(handle)


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
    data = canonical_bytes(line.value for line in read_lines(path))
    if path.exists() and data != path.read_bytes():
        replace(path, data)


def replace(path: Path, data: bytes) -> None:
    """Replace a file atomically with content that is on the disk before the name points to it."""
    with atomic_path(path) as temporary, temporary.open("wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())


def canonical_bytes(values: Iterable[dict[str, Any]]) -> bytes:
    """The canonical file of these lines; of lines with one key or text the first is kept."""
    kept: dict[tuple[int, str], str] = {}
    for value in values:
        place = (0, value["text"]) if "text" in value else (1, value["key"])
        kept.setdefault(place, canonical_json(value))
    return "".join(kept[place] + "\n" for place in sorted(kept)).encode("utf-8")


def mend_tail(handle: int) -> None:
    """Make an open recordings file end with a whole line.

    A last line that lacks only its newline gets one; a torn one is cut off.
    """
    size = os.fstat(handle).st_size
    data = os.pread(handle, size, 0)
    tail = data[data.rfind(b"\n") + 1 :]
    if parse_line(tail) is not None:
        os.write(handle, b"\n")
    elif tail:
        os.ftruncate(handle, size - len(tail))
    os.fsync(handle)


def parse_line(raw: bytes) -> dict[str, Any] | None:
    """The JSON of a whole line of either kind, null for anything else."""
    try:
        value = json.loads(raw)
    except ValueError:
        return None
    if isinstance(value, dict) and (
        {"text", "content"} == value.keys() or {"key", "question", "answer"} == value.keys()
    ):
        return value
    return None
