"""Files of recorded answers: one JSON line per answer, which survives a kill at any byte.

    {"answer": {...}, "key": "<sha256>", "question": {...}}

The key is the digest of the question (`Question.key`), so every line can be checked by itself.
Lines are only ever appended, each with one write, and synced to the disk before the answer is
used. Of two lines with one key the first counts. A torn last line was never used by anyone: readers
skip it and the next writer drops it. When a writer closes its file the lines are put in the order
of their keys, so that git shows small differences and copies can be merged line by line.
"""

import hashlib
import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from filelock import FileLock, Timeout
from pydantic import ValidationError
from pydantic_core import from_json

from pieline.core.errors import UserError
from pieline.core.evidence import Evidence
from pieline.core.files import atomic_path, canonical_json, sha256
from pieline.core.records import explain, load_record
from pieline.llm.answers import Answer
from pieline.llm.questions import Message, Question
from pieline.llm.wire import misfit

_LONGEST_LINE = 1 << 24
"""Bytes: some hundred times the longest prompt. What is longer is read as several lines."""


class Line(NamedTuple):
    """One line of a file.

    Attributes:
        path, number: of the file, and of the line from 1.
        raw: its bytes, with the newline.
        value: its JSON; empty for a line that is not one of recordings.
    """

    path: Path
    number: int
    raw: bytes
    value: dict[str, Any]

    @property
    def key(self) -> str:
        """Return the key that the line states."""
        return str(self.value.get("key", ""))

    def answer(self) -> Answer:
        """The answer.

        Raises:
            UserError: the line is not one of recordings, or its key not the digest of its question.
        """
        if not self.value:
            raise self.fault("not a line of recordings")
        if hashlib.sha256(canonical_json(self.value["question"]).encode()).hexdigest() != self.key:
            raise self.fault("the key is not the digest of the question")
        try:
            return Answer(key=self.key, **self.value["answer"])
        except ValidationError as error:
            raise self.fault(f"not an answer ({explain(error)})") from None
        except TypeError:
            raise self.fault("not an answer, or one with a key of its own") from None

    def question(self) -> Question:
        """The question.

        Raises:
            UserError: the line does not contain one.
        """
        try:
            content = self.value["question"]
            turns = tuple(Message(**turn) for turn in content["messages"])
            return Question(
                *(content["model"], turns, content["parameters"], content["sample"]),
                body=json.loads(content.get("body", "{}")),
            )
        except (AttributeError, KeyError, TypeError, ValueError):
            raise self.fault("not a question and its answer") from None

    def check(self) -> Answer:
        """The answer, if also the body that was sent is the question's.

        Raises:
            UserError: see `answer`; or the body or the question is another one.
        """
        answer, question = self.answer(), self.question()
        if question.key != self.key:
            raise self.fault("the key is not the digest of the question")
        if answer.sent and (problem := misfit(question, answer.sent)):
            raise self.fault(problem)
        return answer

    def fault(self, what: str) -> UserError:
        """Return an error for the line."""
        return UserError(
            what,
            where=f"{self.path}:{self.number}",
            hint="restore the file, resolve the merge or delete the line",
        )


def all_lines(path: str | Path) -> Iterator[Line]:
    """Yield all lines of a file, also damaged and torn ones; none if the file is missing."""
    path = Path(path)
    with suppress(FileNotFoundError), path.open("rb") as stream:
        for number, raw in enumerate(iter(partial(stream.readline, _LONGEST_LINE), b""), 1):
            yield Line(path, number, raw, _parse(raw))


def read_lines(path: str | Path) -> Iterator[Line]:
    """Yield the lines of a file; a torn last line is skipped, a missing file is empty.

    Raises:
        UserError: a line that is not the torn end of the file is not one of recordings.
    """
    for line in all_lines(path):
        if line.value:
            yield line
        elif line.raw.endswith(b"\n"):
            raise line.fault("not a line of recordings")


def answers_token(evidence: str | Path, recordings: str | Path) -> str:
    """A param of the job that reads recorded answers: another one once an answer was edited.

    As long as the recorded answers are those that its outputs were read from (or are gone), it is
    what it was in that job, which the outputs' evidence states.
    """
    if not Path(evidence).exists():
        return ""
    known = load_record(evidence, Evidence)
    if not Path(recordings).exists() or known.recordings.get(str(recordings)) == sha256(recordings):
        return known.token
    answers = {key: item.digest for key, item in read_answers(recordings, known.answers).items()}
    if answers.items() <= known.answers.items():
        return known.token
    return f"edited: {hashlib.sha256(canonical_json(answers).encode()).hexdigest()[:16]}"


def read_answers(path: str | Path, wanted: Collection[str] | None = None) -> dict[str, Answer]:
    """Return recorded answers by key, after a check that each key is the digest of its question.

    Args:
        path: the file; one that is missing is empty.
        wanted: keys of the answers to read (default: all).

    Raises:
        UserError: a damaged line, or one whose key is not the digest of its question; names file
            and line.
    """
    answers: dict[str, Answer] = {}
    for line in read_lines(path):
        if line.key not in answers and (wanted is None or line.key in wanted):
            answers[line.key] = line.answer()
    return answers


def raw_lines(path: str | Path) -> dict[str, bytes]:
    """Return the bytes of each line by key; of two lines with one key the first."""
    lines: dict[str, bytes] = {}
    for line in read_lines(path):
        lines.setdefault(line.key, line.raw.strip() + b"\n")
    return lines


def write_lines(path: Path, lines: Mapping[str, bytes]) -> None:
    """Replace a file by these lines in the order of their keys.

    Atomic, and on the disk before the name points to it. The caller must be the only writer.
    """
    with atomic_path(path) as temporary, temporary.open("wb") as stream:
        stream.writelines(lines[key] for key in sorted(lines))
        stream.flush()
        os.fsync(stream.fileno())


class Recorder:
    """Appends answers to the file that `recording` opened.

    Attributes:
        path: of the file.
    """

    def __init__(self, path: Path, handle: int) -> None:
        self.path, self._handle = path, handle

    def append(self, recorded: Iterable[tuple[Question, Answer]]) -> None:
        """Write these answers and return when they are on the disk."""
        data = b"".join(to_line(question, answer) for question, answer in recorded)
        while data:
            data = data[os.write(self._handle, data) :]
        os.fsync(self._handle)


def to_line(question: Question, answer: Answer) -> bytes:
    """Return the line that records an answer."""
    if answer.key != question.key:
        raise ValueError("only an answer to this very question can be recorded")
    line = {"answer": answer.record(), "key": question.key, "question": question.content()}
    return (canonical_json(line) + "\n").encode("utf-8")


@contextmanager
def recording(path: str | Path) -> Iterator[Recorder]:
    """Open a file of recordings for appending, as its only writer; put it in order at the end.

    A missing file is created; a torn last line is dropped first.

    Raises:
        UserError: another process writes this file; or it holds a damaged line.
    """
    path = Path(path)

    def refuse() -> NoReturn:
        raise UserError(
            "another run is writing this file", where=path, hint="wait until it has ended"
        )

    with lock(path.parent, path.name, refuse):
        for leftover in path.parent.glob(f".{path.name}.*.part"):
            leftover.unlink()  # of a run that was killed while it replaced the file
        _put_in_order(path)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        try:
            yield Recorder(path, handle)
        finally:
            os.close(handle)
            _put_in_order(path)


def lock(folder: Path, name: str, on_taken: Callable[[], None]) -> AbstractContextManager[object]:
    """Take a lock between processes, which vanishes with the process that holds it.

    It is the file `.locks/<name>.lock` of the folder, which git ignores.

    Args:
        folder: where the files lie that the lock protects.
        name: of the lock.
        on_taken: called once if another process has the lock, before waiting for it; may raise.

    Returns:
        What frees the lock when its block ends.
    """
    # Without the fallback for file systems that know no locks: its files outlive a kill.
    held = FileLock(folder / ".locks" / f"{name}.lock", fallback_to_soft=False)
    with suppress(Timeout):
        return held.acquire(blocking=False)
    on_taken()
    return held.acquire(poll_interval=0.5)  # for hours, maybe on a network file system


def record(path: str | Path, answered: Iterable[tuple[Question, Answer]]) -> None:
    """Add answers to a file."""
    with recording(path) as recorder:
        recorder.append(answered)


def foreign_file(path: Path) -> Path:
    """Return the file beside these recordings that keeps billed answers of other models."""
    return path.with_name(f"{path.name}.foreign")


def _put_in_order(path: Path) -> None:
    """Sort a file by key, without torn and repeated lines; one that is in order stays as it is."""
    lines = raw_lines(path)
    size = sum(map(len, lines.values()))
    if path.exists() and (list(lines) != sorted(lines) or size != path.stat().st_size):
        write_lines(path, lines)


def _parse(raw: bytes) -> dict[str, Any]:
    """Parse a line of recordings; empty for any other bytes."""
    try:
        value = from_json(raw, allow_inf_nan=False)
    except ValueError:
        return {}
    is_line = isinstance(value, dict) and value.keys() == {"answer", "key", "question"}
    return value if is_line and isinstance(value["key"], str) else {}
