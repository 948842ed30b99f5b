"""Stop a run whose first answers are all cut off at the maximum length."""

from collections.abc import Collection

from pieline.core.errors import UserError
from pieline.llm.answers import Answer
from pieline.llm.questions import Question
from pieline.models.llm import LLMEntry

FIRST_ANSWERS = 10
"""Number of answers after which a run stops if all of them are cut off."""


def is_cut(answer: Answer) -> bool:
    """Return whether an answer reached the maximum length."""
    return answer.finish_reason == "length"


def all_cut(answers: Collection[Answer]) -> bool:
    """Return whether there are at least `FIRST_ANSWERS` answers and all of them are cut off."""
    return len(answers) >= FIRST_ANSWERS and all(map(is_cut, answers))


def cut_error(
    answers: Collection[Answer], left: Collection[Question], spec: LLMEntry, setting: str
) -> UserError:
    """Return the error of a run that stopped because its first answers are all cut off.

    Args:
        answers: Answers of the run.
        left: Questions that are not asked, at least one.
        spec: Entry of the model.
        setting: Name of the setting that limits the length of the answers.
    """
    limit = next(iter(left)).parameters.get("max_tokens")
    if limit is None or limit == (spec.defaults or {}).get("max_tokens"):
        field = "context_length" if spec.is_local and limit is None else "max_tokens in defaults"
        setting = f"{field} of {spec.label} in models.yaml"
    tokens = "" if limit is None else f" at {limit} tokens"
    return UserError(
        f"{sum(map(is_cut, answers))} of {len(answers)} answers are cut off{tokens};"
        f" {len(left)} questions are not asked",
        where=spec.label,
        hint=f"raise {setting}, or set llm.stop_when_cut: false to ask only these questions",
    )
