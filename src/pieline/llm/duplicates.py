"""Detect answers that are the same response of a provider under several questions or in two files.

A provider gives each response its own id. If two answers to equal messages have the same id, a file
is a copy, or a cache between the project and the provider returned one response several times.
Deviations over seeds, or votes over samples, would then be computed from a single answer.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from pieline.core.errors import UserError
from pieline.llm.answers import Answer
from pieline.llm.questions import Message, Question
from pieline.llm.recordings import read_lines

_ID = re.compile(rb'"response_id":"((?:[^"\\\\]|\\\\.)*)"')
"""Field with the id of the response in a line of a recordings file."""
UNIQUE_LENGTH = 16
"""Minimum characters of an id that no two responses share by chance. (Some servers number their
responses randomly from 0 to 999.)"""
CHANCE = 0.05
"""Maximum share (fraction) of a run's answers whose shorter ids may be repeated by chance."""


class Response(NamedTuple):
    """Properties that identify a response of a provider.

    Attributes:
        identity: Provider's identifier for the response.
        text: Text of the answer; None if the model returned none.
        messages: Turns of the question.
    """

    identity: str
    text: str | None
    messages: tuple[Message, ...]


def check_duplicates(
    run: str, folder: Path, questions: Mapping[str, Question], answers: Mapping[str, Answer]
) -> None:
    """Raise a `UserError` if a response occurs twice in a run, or in the run and another file.

    Only files of the same study, which share a subfolder of the recordings folder, are compared.
    Answers without an id, for example answers of local models, are not compared.

    Args:
        run: Name of the run (`pieline.llm.recordings.run_name`).
        folder: Recordings folder.
        questions: Questions of the run by key.
        answers: Answers of the run by key.
    """
    responses = [
        Response(answer.response_id, answer.text, questions[key].messages)
        for key, answer in answers.items()
        if answer.response_id is not None and not answer.failure
    ]
    messages_by_id: dict[str, set[tuple[Message, ...]]] = {}
    for response in responses:
        messages_by_id.setdefault(response.identity, set()).add(response.messages)
    # An id that a server gives to answers to different messages identifies nothing.
    response_counts = Counter(
        response for response in responses if len(messages_by_id[response.identity]) == 1
    )
    if not response_counts:
        return
    path = folder / f"{run}.jsonl"
    total = response_counts.total()
    repeated = [response for response, count in response_counts.items() if count > 1]
    _check_repeated(repeated, total, "for other samples of the same questions", path)
    for other_path in _files_of_study(run, folder):
        if other_path != path:
            others = _responses_with_ids(other_path, response_counts.keys(), run)
            in_both_files = {response for response in others if response in response_counts}
            _check_repeated(in_both_files, total, f"in {other_path}", path)


def _files_of_study(run: str, folder: Path) -> list[Path]:
    """Return the recordings files in the top folder (the study) of a run, sorted by path.

    If the run is in no top folder, returns the files that are directly in the recordings folder.
    """
    *run_folders, _ = run.split("/")
    if not run_folders:
        return sorted(folder.glob("*.jsonl"))
    return sorted((folder / run_folders[0]).rglob("*.jsonl"))


def _responses_with_ids(path: Path, compared: Collection[Response], run: str) -> Iterator[Response]:
    """Yield the responses in a file that have the id of a response in `compared`.

    Failures are omitted. Lines that were recorded for `run` are also omitted: they are copies,
    which no other run can use.
    """
    ids = {response.identity.encode() for response in compared}
    with path.open("rb") as stream:
        # Most files have none of the ids, and searching a file is faster than parsing its lines.
        if not any(_id_in_line(raw) in ids for raw in stream):
            return
    for line in read_lines(path):
        if line.run != run and _id_in_line(line.raw) in ids:
            answer = line.answer()
            if not answer.failure:
                yield Response(answer.response_id or "", answer.text, line.question().messages)


def _id_in_line(raw: bytes) -> bytes | None:
    """Return the id of the response in a line of a recordings file; None if it has no id."""
    match = _ID.search(raw)
    return match[1] if match else None


def _check_repeated(repeated: Collection[Response], total: int, where: str, path: Path) -> None:
    """Raise a `UserError` unless the ids of repeated responses may be equal by chance.

    Args:
        repeated: Responses that occur several times.
        total: Number of all compared answers.
        where: Description of the other occurrences, for the error message.
        path: Recordings file of the run.
    """
    if not repeated:
        return
    longest_id = max((response.identity for response in repeated), key=len)
    is_above_chance = len(repeated) > 1 and len(repeated) > CHANCE * total
    if len(longest_id) >= UNIQUE_LENGTH or is_above_chance:
        raise UserError(
            f"{len(repeated)} of {total} answers are the same responses as {where} (such as the one"
            f" with the id {longest_id})",
            where=path,
            hint="if a file is a copy, delete it; if a cache returned a response twice, turn off"
            " the cache, delete these answers and ask again",
        )
