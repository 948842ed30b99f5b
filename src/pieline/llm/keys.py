"""API keys: read from the environment variable that an entry names, and shown nowhere."""

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from pieline.core.errors import UserError
from pieline.llm.questions import Question
from pieline.llm.recordings import read_answers
from pieline.models.llm import LLMSpec

NO_KEY = "unused"
"""Sent where no key is needed, so that litellm does not look for one in the environment."""

_SHORTEST_SECRET = 8


class MissingKey(NamedTuple):
    """A key that is not set although answers of this model are not recorded."""

    label: str
    variable: str
    unanswered: int


def api_key(spec: LLMSpec) -> str:
    """The key for a model; `NO_KEY` for one that needs none.

    Raises:
        UserError: the environment variable that the entry names is not set.
    """
    if spec.api_key_env is None:
        return NO_KEY
    key = os.environ.get(spec.api_key_env, "").strip()
    if not key:
        raise UserError(
            f"the environment variable {spec.api_key_env} is not set",
            where=spec.label,
            mend="set it, or use recorded answers with llm.mode: replay",
        )
    return key


def missing_keys(
    jobs: Iterable[tuple[LLMSpec, Sequence[Question], str | Path]],
) -> list[MissingKey]:
    """Keys that a run in mode `record` would need and lack, one for each model, by label.

    Args:
        jobs: model, its questions, and the file of recordings that may answer them.
    """
    unanswered: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for spec, questions, path in jobs:
        if spec.api_key_env and not os.environ.get(spec.api_key_env, "").strip():
            wanted = {question.key for question in questions}
            missing = wanted - read_answers(path, wanted).keys()
            found = unanswered.setdefault((spec.label, spec.api_key_env), set())
            found.update((str(path), key) for key in missing)
    return [
        MissingKey(label, variable, len(keys))
        for (label, variable), keys in sorted(unanswered.items())
        if keys
    ]


def require_keys(jobs: Iterable[tuple[LLMSpec, Sequence[Question], str | Path]]) -> None:
    """Stop before anything runs if `missing_keys` finds any.

    Raises:
        UserError: one that lists every model, its variable and its number of unrecorded answers.
    """
    missing = missing_keys(jobs)
    if missing:
        listed = ", ".join(
            f"{key.label} needs {key.variable} for {key.unanswered} unrecorded answers"
            for key in missing
        )
        raise UserError(
            f"API keys are not set: {listed}",
            mend="set them, import recordings, or leave these models out",
        )


def redact(text: str, spec: LLMSpec) -> str:
    """Replace the model's key, as it is or escaped, by the name of its environment variable.

    A value of fewer than 8 characters is no key (but a placeholder) and would take words apart.
    """
    secret = os.environ.get(spec.api_key_env or "", "").strip()
    if len(secret) >= _SHORTEST_SECRET:
        for form in {secret, quote(secret, safe=""), json.dumps(secret)[1:-1], repr(secret)[1:-1]}:
            text = text.replace(form, f"[{spec.api_key_env}]")
    return text
