"""Read and write recordings files, which have one JSON line per response.

    {"answer": {...}, "key": "<sha256>", "question": {...}, "run": "jam/english/NAME/..."}

The key is the digest of the question (`Question.key`), so each line can be verified on its own. The
run (`run_name`) identifies the file that the answer was recorded for, because models without a seed
parameter receive the same questions in all runs. The run is missing in older and in hand-written
recordings.

Killing a writer at any point does not damage the file: lines are appended and synced to the disk
before their answers are used. The answer in an incomplete last line was therefore never used;
readers skip the line, and the next writer drops it.

A key has any number of failed responses and at most one answer. Two different answers with the same
key are an error, because it is unclear which answer counts. When a writer closes the file, it sorts
the lines by key, so that Git diffs are small and copies can be merged line by line.
"""

import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from pydantic import ValidationError
from pydantic_core import from_json

from pieline.core.errors import UserError
from pieline.core.files import atomic_path, canonical_json, sha256, sha256_of
from pieline.core.records import explain
from pieline.core.sidecars import load_sidecar, sidecar_of
from pieline.llm.answers import Answer
from pieline.llm.questions import Message, Question
from pieline.llm.wire import describe_mismatch

_LONGEST_LINE = 1 << 27
"""Maximum bytes per line, more than the longest response needs; longer lines are damaged."""
REPLACED_SUFFIX = ".replaced"
"""Suffix of the file next to the recordings that keeps answers that were asked again."""


class Line(NamedTuple):
    """One line of a recordings file.

    Attributes:
        path: Path of the file.
        number: Number (from 1) of the line.
        raw: Bytes of the line, including the newline, which an incomplete last line lacks.
        value: Parsed JSON; empty if the line is not a recording.
    """

    path: Path
    number: int
    raw: bytes
    value: dict[str, Any]

    @property
    def key(self) -> str:
        """Key in the line, not verified; empty if the line is not a recording."""
        return str(self.value.get("key", ""))

    @property
    def run(self) -> str:
        """Run for which the answer was recorded; empty if unknown."""
        return str(self.value.get("run", ""))

    def answer(self) -> Answer:
        """Return the answer in the line.

        Raises:
            UserError: The line is not a recording, the key is not the digest of the question, or
                the answer is invalid.
        """
        if not self.value:
            raise self.fault("not a recording")
        if sha256_of(canonical_json(self.value["question"]).encode()) != self.key:
            raise self.fault("the key is not the digest of the question")
        try:
            return Answer(key=self.key, **self.value["answer"])
        except ValidationError as error:
            raise self.fault(f"not an answer ({explain(error)})") from None
        except TypeError:
            raise self.fault("not an answer, or its fields include a key") from None

    def question(self) -> Question:
        """Return the question in the line.

        Raises:
            UserError: The line does not contain a valid question.
        """
        try:
            content = self.value["question"]
            turns = tuple(Message(**turn) for turn in content["messages"])
            body = json.loads(content.get("body", "{}"))
            model, parameters, sample = content["model"], content["parameters"], content["sample"]
            return Question(model, turns, parameters, sample, body=body)
        except (AttributeError, KeyError, TypeError, ValueError):
            raise self.fault("the question is invalid") from None

    def check(self) -> Answer:
        """Validate the whole line, including the request body, and return the answer.

        Raises:
            UserError: The answer or the question is invalid (see `answer` and `question`), or the
                request body differs from the question.
        """
        answer, question = self.answer(), self.question()
        if question.key != self.key:
            raise self.fault("the key is not the digest of the question")
        mismatch = describe_mismatch(question, answer.sent) if answer.sent else None
        if mismatch:
            raise self.fault(mismatch)
        return answer

    def check_run(self, run: str) -> None:
        """Raise a `UserError` if the answer was recorded for a run other than `run`."""
        if self.run not in ("", run):
            raise UserError(
                f"an answer of {self.question().model} recorded for the run {self.run}, not for"
                f" {run}",
                where=f"{self.path}:{self.number}",
                hint="if the entry was renamed, run `pieline recordings rename OLD NEW`; otherwise"
                " the file is a copy: restore or delete it, and ask again",
            )

    def fault(self, what: str) -> UserError:
        """Return an error whose message states the file and the line."""
        return UserError(
            what,
            where=f"{self.path}:{self.number}",
            hint="restore the file, resolve the merge conflict or delete the line",
        )


def run_name(path: str | Path, folder: str | Path) -> str:
    """Return the name of the run that a recordings file belongs to.

    The name is the path of the file below the recordings folder, without the extension. Symbolic
    links below the folder are not followed, because a linked file or folder is a copy.
    """
    below = os.path.relpath(_absolute(path), _absolute(folder))
    if below.startswith(os.pardir):  # the folder is spelled in two ways
        below = os.path.relpath(os.path.realpath(path), os.path.realpath(folder))
    return Path(below).as_posix().removesuffix(".jsonl")


def with_entry(run: str, old: str, new: str) -> str:
    """Return the name of a run with `new` in place of `old`, the name of its model.

    The model's name is a whole part of a run's name, for example of `jam/english/MODEL/SETTING`,
    `jam_variants/english/MODEL` or `ask/MODEL`.
    """
    return "/".join(new if part == old else part for part in run.split("/"))


def belongs_to(path: str | Path, run: str) -> bool:
    """Return whether a path is the recordings file of a run in any recordings folder.

    Also returns True if `run` is empty, because old recordings do not name their run.
    """
    return not run or _absolute(path).removesuffix(".jsonl").endswith(f"/{run}")


def _absolute(path: str | Path) -> str:
    """Return an absolute path without `..`, without following links."""
    return os.path.normpath(Path(path).absolute())


def all_lines(path: str | Path) -> Iterator[Line]:
    """Yield all lines of a file, also damaged lines; yield nothing if the file is missing."""
    path = Path(path)
    with suppress(FileNotFoundError), path.open("rb") as stream:
        number = 0
        while raw := stream.readline(_LONGEST_LINE):
            number += 1
            yield Line(path, number, raw, _parse_line(raw))


def read_lines(path: str | Path) -> Iterator[Line]:
    """Yield the lines of a file without an incomplete last line.

    Yields nothing if the file is missing.

    Raises:
        UserError: A line other than an incomplete last line is not a recording.
    """
    for line in all_lines(path):
        if line.value:
            yield line
        elif line.raw.endswith(b"\n"):
            raise line.fault("not a recording")


def answers_token(output: str | Path, recordings: str | Path) -> str:
    """Return a job parameter (token) that changes if an answer that the job used was edited.

    The token is empty if the output has no sidecar. The token is the one in the sidecar as long as
    each answer that the job used is unchanged or deleted, and no such answer was set aside to be
    asked again.

    Args:
        output: First output of the job.
        recordings: Recordings file that the job reads.
    """
    if not Path(sidecar_of(output)).exists():
        return ""
    sidecar = load_sidecar(output)
    if not Path(recordings).exists():
        return sidecar.token
    if sidecar.recordings.get(str(recordings)) == sha256(recordings):
        return sidecar.token
    answers = read_answers(recordings, sidecar.answers)
    digests = {key: answer.digest for key, answer in answers.items()}
    is_edited = any(digest != sidecar.answers[key] for key, digest in digests.items())
    used_answer_is_set_aside = any(
        line.key not in digests and sidecar.answers.get(line.key) == line.answer().digest
        for line in read_lines(f"{recordings}{REPLACED_SUFFIX}")
    )
    if not is_edited and not used_answer_is_set_aside:
        return sidecar.token
    return f"edited answers ({sha256_of(canonical_json(digests).encode())[:16]})"


def read_answers(
    path: str | Path,
    wanted: Collection[str] | None = None,
    *,
    run: str | None = None,
    attempts: int = 1,
) -> dict[str, Answer]:
    """Return the recorded responses that count as answers (see `counts_as_answer`), by key.

    The parameters and errors are those of `read_responses` and `counts_as_answer`.
    """
    return {
        key: responses[-1]
        for key, responses in read_responses(path, wanted, run=run).items()
        if counts_as_answer(responses, attempts)
    }


def counts_as_answer(responses: Sequence[Answer], attempts: int) -> bool:
    """Return whether the last response to a question counts as the answer to the question.

    A failed response counts as an unreadable answer if the model generated something and there are
    at least `attempts` responses, because asking again did not help.

    Args:
        responses: Responses to one question, in the order of `read_responses`.
        attempts: Number of responses after which a question is not asked again.
    """
    last = responses[-1]
    return not last.failure or (last.has_output and len(responses) >= attempts)


def read_responses(
    path: str | Path, wanted: Collection[str] | None = None, *, run: str | None = None
) -> dict[str, list[Answer]]:
    """Return recorded responses by key: failures in the order of the attempts, then the answer.

    Also checks that each key is the digest of its question. Equal responses are returned once.

    Args:
        path: Recordings file; a missing file has no answers.
        wanted: Keys of the answers to read (default: all).
        run: Run that uses the answers (`run_name`); None accepts the answers of any run.

    Raises:
        UserError: A line is not a recording, or a line to read has an invalid answer, a key that is
            not the digest of its question, another run, or an answer that differs from that of an
            earlier line with the same key; the message states the file and the line.
    """
    responses_by_key: dict[str, list[Answer]] = {}
    for line in read_lines(path):
        if wanted is not None and line.key not in wanted:
            continue
        if run is not None:
            line.check_run(run)
        responses = responses_by_key.setdefault(line.key, [])
        answer = line.answer()
        if answer in responses:
            continue
        has_answer = any(not response.failure for response in responses)
        if has_answer and not answer.failure:
            raise line.fault("an earlier line has a different answer with the same key")
        responses.append(answer)
    for responses in responses_by_key.values():
        responses.sort(key=_response_order)
    return responses_by_key


def _response_order(answer: Answer) -> tuple[bool, bool, int]:
    """Return a sort key: failures without output, failures with output, then the answer."""
    return not answer.failure, answer.has_output, answer.attempt or 0


def raw_lines(path: str | Path) -> dict[str, list[bytes]]:
    """Return the lines of a file as bytes by key, in the order of `read_responses`.

    Of several lines with equal answers, only the first is returned.

    Raises:
        UserError: A line other than an incomplete last line is not a recording.
    """
    lines_by_key: dict[str, list[bytes]] = {}
    for line in read_lines(path):
        lines_by_key.setdefault(line.key, []).append(line.raw.strip() + b"\n")
    return sort_lines(lines_by_key)


def sort_lines(lines_by_key: Mapping[str, list[bytes]]) -> dict[str, list[bytes]]:
    """Return each key's lines in the order of `read_responses`, without repeated answers."""
    # A single line is not parsed, because parsing all lines of a large file would take long.
    return {
        key: _sort_lines(lines) if len(lines) > 1 else lines for key, lines in lines_by_key.items()
    }


def count_lines(lines: Mapping[str, Sequence[bytes]]) -> int:
    """Return the number of lines of a file, given the lines by key (see `raw_lines`)."""
    return sum(len(lines_of_key) for lines_of_key in lines.values())


def check_conflicts(lines: Mapping[str, Sequence[bytes]], where: Path) -> None:
    """Raise a `UserError` if a key has two different answers.

    Args:
        lines: Lines by key without repeated answers (see `sort_lines`).
        where: File for the error message.
    """
    for key, lines_of_key in lines.items():
        if len(lines_of_key) == 1:
            continue
        responses = [Line(where, 0, raw, _parse_line(raw)).answer() for raw in lines_of_key]
        answers = [response for response in responses if not response.failure]
        if len(answers) > 1:
            raise UserError(
                f"the question {key[:12]} has two different answers",
                where=where,
                hint="keep one of them",
            )


def _sort_lines(lines_of_key: Iterable[bytes]) -> list[bytes]:
    """Return one key's lines in the order of `read_responses`, without repeated answers."""
    line_by_answer: dict[str, Line] = {}
    for raw in lines_of_key:
        # The path and the number are not known here.
        line = Line(Path(), 0, raw, _parse_line(raw))
        line_by_answer.setdefault(canonical_json(line.value["answer"]), line)
    lines = sorted(line_by_answer.values(), key=lambda line: _response_order(line.answer()))
    return [line.raw for line in lines]


def merge_lines(*files: Mapping[str, Sequence[bytes]]) -> dict[str, list[bytes]]:
    """Return the lines of several files by key, in the order of `read_responses`.

    Args:
        files: Lines of each file by key (see `raw_lines`).
    """
    merged: dict[str, list[bytes]] = {}
    for lines_by_key in files:
        for key, lines in lines_by_key.items():
            merged[key] = _sort_lines([*merged[key], *lines]) if key in merged else [*lines]
    return merged


def write_lines(path: Path, lines: Mapping[str, Sequence[bytes]]) -> None:
    """Atomically replace the content of a recordings file with `lines`, sorted by key.

    The caller must be the only writer.
    """
    with atomic_path(path) as temporary, temporary.open("wb") as stream:
        for key in sorted(lines):
            stream.writelines(lines[key])
        stream.flush()
        os.fsync(stream.fileno())


def set_aside(path: Path, lines: Mapping[str, Sequence[bytes]]) -> None:
    """Move lines from a file to the file next to it with the suffix `REPLACED_SUFFIX`.

    The caller must be the only writer. This function is safe to repeat after a crash.

    Args:
        path: Recordings file.
        lines: Lines to move, by key.
    """
    if not lines:
        return
    aside = path.with_name(path.name + REPLACED_SUFFIX)
    write_lines(aside, merge_lines(raw_lines(aside), lines))
    kept_lines = {}
    for key, lines_of_key in raw_lines(path).items():
        moved_lines = lines.get(key, ())
        kept_lines[key] = [raw for raw in lines_of_key if raw not in moved_lines]
    write_lines(path, kept_lines)


class Recorder:
    """Writer, returned by `recording`, that appends answers to a recordings file.

    Attributes:
        path: Path of the file.
    """

    def __init__(self, path: Path, handle: int, run: str = "") -> None:
        self.path, self._handle, self._run = path, handle, run

    def append(self, recorded: Iterable[tuple[Question, Answer]]) -> None:
        """Append answers with their questions to the file, and sync the file to the disk."""
        unwritten = b"".join(
            to_line(question, answer, run=self._run) for question, answer in recorded
        )
        while unwritten:
            written_bytes = os.write(self._handle, unwritten)
            unwritten = unwritten[written_bytes:]
        os.fsync(self._handle)


def to_line(question: Question, answer: Answer, run: str = "") -> bytes:
    """Return the line that records an answer for a run.

    Raises:
        ValueError: The answer belongs to a different question.
    """
    if answer.key != question.key:
        raise ValueError("the answer belongs to a different question")
    line = {"answer": answer.record(), "key": question.key, "question": question.content()}
    if run:
        line["run"] = run
    return (canonical_json(line) + "\n").encode("utf-8")


@contextmanager
def recording(path: str | Path, run: str = "") -> Iterator[Recorder]:
    """Open a recordings file for appending, as its only writer, and sort it after the block.

    Creates a missing file. Drops an incomplete last line.

    Args:
        path: Recordings file.
        run: Run that the new answers are recorded for (`run_name`).

    Raises:
        UserError: Another process is writing the file, or a line is damaged.
    """
    path = Path(path)

    def raise_taken() -> NoReturn:
        raise UserError(
            "another run is writing this file", where=path, hint="wait until it has finished"
        )

    with lock(path.parent, path.name, raise_taken):
        for leftover in path.parent.glob(f".{path.name}.*.part"):
            leftover.unlink()  # a run was killed while it replaced the file
        _sort_file(path)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        try:
            yield Recorder(path, handle, run)
        finally:
            os.close(handle)
            _sort_file(path)


def lock(folder: Path, name: str, on_taken: Callable[[], None]) -> AbstractContextManager[object]:
    """Acquire a lock between processes, which is also released when this process ends.

    The lock is the file `.locks/<name>.lock` in the folder; Git ignores this file.

    Args:
        folder: Folder of the files that the lock protects.
        name: Name of the lock.
        on_taken: Callback, called once before waiting if another process has the lock. The callback
            may raise an exception to avoid the wait.

    Returns:
        A context manager that releases the lock.
    """
    # Imported only here, because filelock's audit hook slows down each file access of a process.
    from filelock import FileLock, Timeout

    # No soft locks on file systems without locks: a soft lock would survive a killed process.
    file_lock = FileLock(folder / ".locks" / f"{name}.lock", fallback_to_soft=False)
    with suppress(Timeout):
        return file_lock.acquire(blocking=False)
    on_taken()
    return file_lock.acquire(poll_interval=0.5)  # may poll for hours on a network file system


def record(path: str | Path, answered: Iterable[tuple[Question, Answer]], run: str = "") -> None:
    """Append answers with their questions to a recordings file (see `recording`)."""
    with recording(path, run) as recorder:
        recorder.append(answered)


def foreign_file(path: Path) -> Path:
    """Return the file next to a recordings file that keeps billed answers of other models."""
    return path.with_name(f"{path.name}.foreign")


def _sort_file(path: Path) -> None:
    """Sort a file by key, and drop repeated lines and an incomplete last line.

    A file that is already in this form, or does not exist, is not written.
    """
    lines = raw_lines(path)
    sorted_lines = (raw for key in sorted(lines) for raw in lines[key])
    if path.exists():
        with path.open("rb") as stream:
            is_sorted = all(expected == raw for expected, raw in zip_longest(sorted_lines, stream))
        if not is_sorted:
            write_lines(path, lines)


def _parse_line(raw: bytes) -> dict[str, Any]:
    """Parse a line of a recordings file; return an empty dict if the line is not a recording."""
    try:
        value = from_json(raw, allow_inf_nan=False)
    except ValueError:
        return {}
    if not isinstance(value, dict):
        return {}
    names_except_run = value.keys() - {"run"}
    if names_except_run != {"answer", "key", "question"}:
        return {}
    if not isinstance(value["key"], str) or not isinstance(value.get("run", ""), str):
        return {}
    return value
