"""Read and write recordings files, which have one JSON line per response.

    {"answer": {...}, "key": "<sha256>", "question": {...}, "run": "jam/english/NAME/..."}

The key is the digest of the question (`Question.key`), so each line can be verified on its own. The
run (`run_name`) identifies the file that the answer was recorded for, because models without a seed
parameter receive the same questions in all runs. The run is missing in older and in hand-written
recordings.

Killing a writer at any point does not damage the file: lines are appended and synced to the disk
before their answers are used. The answer in an incomplete last line was therefore never used;
readers skip the line, and the next writer drops it.

A key has any number of failed responses and at most one other response. Two that differ are an
error, because nobody knows which one counts. When a writer closes the file, it sorts the lines by
key, so that Git diffs are small and copies can be merged line by line.
"""

import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
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
        """Return the answer.

        Raises:
            UserError: The line is not a recording, its key is not the digest of its question, or
                its answer is invalid.
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
        """Return the question.

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
            UserError: `answer` or `question` raises an error, or the request body differs from the
                question.
        """
        answer, question = self.answer(), self.question()
        if question.key != self.key:
            raise self.fault("the key is not the digest of the question")
        if answer.sent and (problem := describe_mismatch(question, answer.sent)):
            raise self.fault(problem)
        return answer

    def check_run(self, run: str) -> None:
        """Raise a `UserError` if the answer was recorded for a run other than `run`."""
        if self.run not in ("", run):
            hint = "the file is a copy: restore or delete it, and ask again"
            if names := renamed_entry(self.run, run):
                hint = (
                    f"if the entry was renamed, run `pieline recordings rename {' '.join(names)}`;"
                    f" otherwise {hint}"
                )
            raise UserError(
                f"an answer of {self.question().model} recorded for the run {self.run}, not for"
                f" {run}",
                where=f"{self.path}:{self.number}",
                hint=hint,
            )

    def fault(self, what: str) -> UserError:
        """Return an error whose message states the file and the line."""
        return UserError(
            what,
            where=f"{self.path}:{self.number}",
            hint="restore the file, resolve the merge conflict or delete the line",
        )


def run_name(path: str | Path, folder: str | Path) -> str:
    """Return the name of the run that a recordings file belongs to: its path below the folder.

    The extension is removed. Symbolic links below the folder are not followed, because a linked
    file or folder is a copy.
    """
    below = os.path.relpath(_absolute(path), _absolute(folder))
    if below.startswith(os.pardir):  # the folder is spelled in two ways
        below = os.path.relpath(os.path.realpath(path), os.path.realpath(folder))
    return Path(below).as_posix().removesuffix(".jsonl")


def entry_of(run: str) -> str:
    """Return the name of the model in a run: the last folder, or the file of `pieline ask`."""
    folder, _, name = run.rpartition("/")
    return name if folder == "ask" else folder.rpartition("/")[2]


def with_entry(run: str, name: str) -> str:
    """Return the same run of another model."""
    folder, _, last = run.rpartition("/")
    return f"ask/{name}" if folder == "ask" else f"{folder.rpartition('/')[0]}/{name}/{last}"


def renamed_entry(old: str, new: str) -> tuple[str, str] | None:
    """Return the names of the models of two runs if the runs differ in nothing else."""
    names = entry_of(old), entry_of(new)
    return names if all(names) and old != new and with_entry(old, names[1]) == new else None


def belongs_to(path: str | Path, run: str) -> bool:
    """Return whether a path is the recordings file of a run, in whichever recordings folder.

    True for recordings without the name of a run.
    """
    return not run or _absolute(path).removesuffix(".jsonl").endswith(f"/{run}")


def _absolute(path: str | Path) -> str:
    """Return an absolute path without `..`; links are not followed."""
    return os.path.normpath(Path(path).absolute())


def all_lines(path: str | Path) -> Iterator[Line]:
    """Yield all lines of a file, including damaged ones; none if the file is missing."""
    path = Path(path)
    with suppress(FileNotFoundError), path.open("rb") as stream:
        for number, raw in enumerate(iter(partial(stream.readline, _LONGEST_LINE), b""), 1):
            yield Line(path, number, raw, _parse(raw))


def read_lines(path: str | Path) -> Iterator[Line]:
    """Yield the lines of a file, except an incomplete last line; none if the file is missing.

    Raises:
        UserError: A line except an incomplete last line is not a recording.
    """
    for line in all_lines(path):
        if line.value:
            yield line
        elif line.raw.endswith(b"\n"):
            raise line.fault("not a recording")


def answers_token(output: str | Path, recordings: str | Path) -> str:
    """Return a job parameter that changes if an answer that the job's outputs used was edited.

    The token is empty if the output has no sidecar. As long as every answer that the outputs used
    is unchanged or deleted, and none was set aside to be asked again, the token is the one in the
    sidecar.

    Args:
        output: First output of the job.
        recordings: Recordings file that the job reads.
    """
    if not Path(sidecar_of(output)).exists():
        return ""
    known = load_sidecar(output)
    if not Path(recordings).exists() or known.recordings.get(str(recordings)) == sha256(recordings):
        return known.token
    answers = {key: item.digest for key, item in read_answers(recordings, known.answers).items()}
    aside = Path(f"{recordings}{REPLACED_SUFFIX}")
    is_set_aside = any(
        line.key not in answers and known.answers.get(line.key) == line.answer().digest
        for line in read_lines(aside)
    )
    if answers.items() <= known.answers.items() and not is_set_aside:
        return known.token
    return f"edited answers ({sha256_of(canonical_json(answers).encode())[:16]})"


def read_answers(
    path: str | Path,
    wanted: Collection[str] | None = None,
    *,
    run: str | None = None,
    attempts: int = 1,
) -> dict[str, Answer]:
    """Return the recorded answer that counts for each key (see `read_responses`, `counted`)."""
    responses = read_responses(path, wanted, run=run)
    return {key: own[-1] for key, own in responses.items() if counted(own, attempts)}


def counted(responses: Sequence[Answer], attempts: int) -> bool:
    """Return whether the last of these responses to a question counts as its answer.

    A failure counts as an unreadable answer if the model generated something and there are
    `attempts` responses, because asking again did not help.
    """
    last = responses[-1]
    return not last.failure or (last.has_output and len(responses) >= attempts)


def read_responses(
    path: str | Path, wanted: Collection[str] | None = None, *, run: str | None = None
) -> dict[str, list[Answer]]:
    """Return recorded responses by key: failures in the order of the attempts, then the answer.

    Also checks that each key is the digest of its question. Equal responses count once.

    Args:
        path: Recordings file; a missing file has no answers.
        wanted: Keys of the answers to read (default: all).
        run: Run that uses the answers (`run_name`); None skips the check that they belong to it.

    Raises:
        UserError: A line is not a recording, or a line to read has an invalid answer, a key that is
            not the digest of its question, another run, or a different answer than an earlier line
            with the same key; the message states file and line.
    """
    responses: dict[str, list[Answer]] = {}
    for line in read_lines(path):
        if wanted is None or line.key in wanted:
            if run is not None:
                line.check_run(run)
            own, answer = responses.setdefault(line.key, []), line.answer()
            if answer in own:
                continue
            if not answer.failure and any(not other.failure for other in own):
                raise line.fault("an earlier line has a different answer with the same key")
            own.append(answer)
    for own in responses.values():
        own.sort(key=_rank)
    return responses


def _rank(answer: Answer) -> tuple[bool, bool, int]:
    return not answer.failure, answer.has_output, answer.attempt or 0


def raw_lines(path: str | Path) -> dict[str, list[bytes]]:
    """Return the bytes of the lines with each key, ordered like `read_responses`.

    Of lines with equal answers, only the first is returned.

    Raises:
        UserError: A line except an incomplete last line is not a recording.
    """
    lines: dict[str, list[bytes]] = {}
    for line in read_lines(path):
        lines.setdefault(line.key, []).append(line.raw.strip() + b"\n")
    return {key: own if len(own) == 1 else _in_order(own) for key, own in lines.items()}


def check_conflicts(lines: Mapping[str, Sequence[bytes]], where: Path) -> None:
    """Raise a `UserError` if a key has two different answers."""
    for key, own in lines.items():
        if len(own) > 1:
            answers = [Line(where, 0, raw, _parse(raw)).answer() for raw in own]
            if sum(not answer.failure for answer in answers) > 1:
                raise UserError(
                    f"the question {key[:12]} has two different answers",
                    where=where,
                    hint="keep one of them",
                )


def _in_order(lines: Iterable[bytes]) -> list[bytes]:
    unique: dict[str, Line] = {}
    for raw in lines:
        line = Line(Path(), 0, raw, _parse(raw))
        unique.setdefault(canonical_json(line.value["answer"]), line)
    return [line.raw for line in sorted(unique.values(), key=lambda line: _rank(line.answer()))]


def joined(*files: Mapping[str, Sequence[bytes]]) -> dict[str, list[bytes]]:
    """Return the lines of several files by key, ordered like `raw_lines`."""
    lines: dict[str, list[bytes]] = {}
    for key, own in (item for file in files for item in file.items()):
        lines[key] = _in_order([*lines[key], *own]) if key in lines else [*own]
    return lines


def write_lines(path: Path, lines: Mapping[str, Sequence[bytes]]) -> None:
    """Atomically replace the content of a file with these lines, sorted by key.

    The caller must be the only writer.
    """
    with atomic_path(path) as temporary, temporary.open("wb") as stream:
        for key in sorted(lines):
            stream.writelines(lines[key])
        stream.flush()
        os.fsync(stream.fileno())


def set_aside(path: Path, lines: Mapping[str, Sequence[bytes]]) -> None:
    """Remove lines from a file and keep them in the file with `REPLACED_SUFFIX` next to it.

    The caller must be the only writer. Safe to repeat after a crash.
    """
    aside = path.with_name(path.name + REPLACED_SUFFIX)
    if lines:
        write_lines(aside, joined(raw_lines(aside), lines))
        left = raw_lines(path)
        kept = {
            key: [raw for raw in own if raw not in lines.get(key, ())] for key, own in left.items()
        }
        write_lines(path, kept)


class Recorder:
    """Writer that appends answers to a file that `recording` opened.

    Attributes:
        path: Path of the file.
    """

    def __init__(self, path: Path, handle: int, run: str = "") -> None:
        self.path, self._handle, self._run = path, handle, run

    def append(self, recorded: Iterable[tuple[Question, Answer]]) -> None:
        """Write the answers to these questions, and sync them to the disk."""
        data = b"".join(to_line(*pair, run=self._run) for pair in recorded)
        while data:
            data = data[os.write(self._handle, data) :]
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

    def refuse() -> NoReturn:
        raise UserError(
            "another run is writing this file", where=path, hint="wait until it has finished"
        )

    with lock(path.parent, path.name, refuse):
        for leftover in path.parent.glob(f".{path.name}.*.part"):
            leftover.unlink()  # a run was killed while it replaced the file
        _put_in_order(path)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        try:
            yield Recorder(path, handle, run)
        finally:
            os.close(handle)
            _put_in_order(path)


def lock(folder: Path, name: str, on_taken: Callable[[], None]) -> AbstractContextManager[object]:
    """Acquire an interprocess lock, which is also released when the process ends.

    The lock is the file `.locks/<name>.lock` in the folder; Git ignores this file.

    Args:
        folder: Folder of the files that the lock protects.
        name: Name of the lock.
        on_taken: Callback, called once before waiting if another process has the lock. It may raise
            an exception instead of waiting.

    Returns:
        A context manager that releases the lock.
    """
    # Imported only by writers, because its audit hook slows down each file access of a process.
    from filelock import FileLock, Timeout

    # No fallback for file systems without locks: its lock files would survive a killed process.
    held = FileLock(folder / ".locks" / f"{name}.lock", fallback_to_soft=False)
    with suppress(Timeout):
        return held.acquire(blocking=False)
    on_taken()
    return held.acquire(poll_interval=0.5)  # may poll for hours on a network file system


def record(path: str | Path, answered: Iterable[tuple[Question, Answer]], run: str = "") -> None:
    """Append answers to a recordings file (see `recording`)."""
    with recording(path, run) as recorder:
        recorder.append(answered)


def foreign_file(path: Path) -> Path:
    """Return the path of the file for billed answers of other models, next to a recordings file."""
    return path.with_name(f"{path.name}.foreign")


def _put_in_order(path: Path) -> None:
    """Sort a file by key and drop repeated lines and an incomplete last line, if necessary."""
    lines = raw_lines(path)
    expected = (raw for key in sorted(lines) for raw in lines[key])
    if path.exists():
        with path.open("rb") as stream:
            is_in_order = all(one == other for one, other in zip_longest(expected, stream))
        if not is_in_order:
            write_lines(path, lines)


def _parse(raw: bytes) -> dict[str, Any]:
    """Parse a line; return an empty dict if it is not a recording."""
    try:
        value = from_json(raw, allow_inf_nan=False)
    except ValueError:
        return {}
    is_line = isinstance(value, dict) and value.keys() - {"run"} == {"answer", "key", "question"}
    names = is_line and isinstance(value["key"], str) and isinstance(value.get("run", ""), str)
    return value if names else {}
