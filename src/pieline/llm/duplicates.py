"""Detect answers that are the same response of a provider under several questions or in two files.

A provider gives each response its own id. Equal ids of answers to equal messages mean that a file
is a copy, or that a cache between the project and the provider returned one response several times.
Deviations over seeds or votes over samples would then be computed from a single answer.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from pieline.core.errors import UserError
from pieline.llm.answers import Answer
from pieline.llm.questions import Message, Question
from pieline.llm.recordings import read_lines

_ID = re.compile(rb'"response_id":"((?:[^"\\\\]|\\\\.)*)"')
UNIQUE_LENGTH = 16
"""Minimum length of an id that cannot be repeated by chance: some servers number their responses
randomly from 0 to 999."""
CHANCE = 0.05
"""Maximum share of shorter ids that may be repeated by chance."""

Response = tuple[str, str | None, tuple[Message, ...]]
"""Id, text and messages of a response."""


def check_duplicates(
    run: str, folder: Path, questions: Mapping[str, Question], answers: Mapping[str, Answer]
) -> None:
    """Raise a `UserError` if answers are the same responses as others in this run or another file.

    Compares with all files in the same top folder (the study) of the recordings folder. Answers
    without an id, such as those of local models, are not compared.

    Args:
        run: Name of the run (`pieline.llm.recordings.run_name`).
        folder: Recordings folder.
        questions: Questions of the run by key.
        answers: Answers of the run by key.
    """
    responses = [
        (answer.response_id, answer.text, questions[key].messages)
        for key, answer in answers.items()
        if answer.response_id is not None and not answer.failure
    ]
    asked: dict[str, set[tuple[Message, ...]]] = {}
    for identity, _, messages in responses:
        asked.setdefault(identity, set()).add(messages)
    # An id that a server gives to answers to different messages identifies nothing.
    counts = Counter(response for response in responses if len(asked[response[0]]) == 1)
    if not counts:
        return
    path, own, total = folder / f"{run}.jsonl", counts.keys(), counts.total()
    repeated = [response for response, count in counts.items() if count > 1]
    _check(repeated, total, "for other samples of the same questions", path)
    for other in _files_of_study(run, folder):
        if other != path:
            _check(own & set(_responses(other, own, run)), total, f"in {other}", path)


def _files_of_study(run: str, folder: Path) -> list[Path]:
    study, _, rest = run.partition("/")
    return sorted((folder / study).rglob("*.jsonl") if rest else folder.glob("*.jsonl"))


def _responses(path: Path, wanted: Collection[Response], run: str) -> Iterator[Response]:
    """Yield the responses in a file whose ids are among the wanted ones.

    Lines that were recorded for this run are omitted: they are copies, which no other run can use.
    """
    ids = {response[0].encode() for response in wanted}
    with path.open("rb") as stream:
        if not any((found := _ID.search(raw)) and found[1] in ids for raw in stream):
            return
    for line in read_lines(path):
        if line.run != run and (found := _ID.search(line.raw)) and found[1] in ids:
            answer = line.answer()
            if not answer.failure:
                yield answer.response_id or "", answer.text, line.question().messages


def _check(same: Collection[Response], total: int, where: str, path: Path) -> None:
    """Raise a `UserError` if repeated responses are not repeated by chance."""
    if not same:
        return
    longest = max((response[0] for response in same), key=len)
    if len(longest) >= UNIQUE_LENGTH or (len(same) > 1 and len(same) > CHANCE * total):
        raise UserError(
            f"{len(same)} of {total} answers are the same responses as {where} (such as the one"
            f" with the id {longest})",
            where=path,
            hint="if a file is a copy, delete it; if a cache returned a response twice, turn off"
            " the cache, delete these answers and ask again",
        )
