"""Stop a run whose first answers are unreadable or cut off, or whose prompts are cut off."""

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from pieline.core.errors import UserError
from pieline.llm.answers import Answer
from pieline.llm.costs import estimate_input_tokens
from pieline.llm.parsing import answer_text
from pieline.llm.questions import Question
from pieline.models.llm import LLMEntry

FIRST_ANSWERS = 10
"""Number of answers after which a run stops if all of them, or their prompts, are cut off."""
FIRST_UNREADABLE = 20
"""Number of answers after which a run stops if none of them is readable."""

_FAR_BELOW = 0.5
_BELOW = 0.7
"""Fractions of the estimated tokens. A provider counts more tokens for a complete prompt: at least
0.72 of the estimate for all prompts in the recordings of the repository."""
_LONGER = 1.25
_LONGER_TOKENS = 10
"""Ratio and difference of two estimates from which the prompts certainly differ in tokens."""


class _PromptSize(NamedTuple):
    """Number of tokens of a prompt: the server's count, and our estimate."""

    counted: int
    estimated: int


def has_text(answer: Answer) -> bool:
    """Return whether an answer has a complete text (see `answer_text`)."""
    _, unreadable = answer_text(answer)
    return unreadable is None


class FirstAnswers:
    """First answers of a run, which show whether further answers would be of use.

    Args:
        spec: Entry of the model.
        is_readable: Function that returns whether an answer is readable.
        limit_setting: Name of the setting that limits the length of the answers, for error
            messages.
    """

    def __init__(
        self,
        spec: LLMEntry,
        is_readable: Callable[[Answer], bool] = has_text,
        limit_setting: str = "max_tokens",
    ) -> None:
        self._spec, self._is_readable, self._limit_setting = spec, is_readable, limit_setting
        self._answers = 0
        self._cut_answers = 0
        self._any_readable = False
        self._prompts: list[_PromptSize] = []

    def add(self, question: Question, answer: Answer) -> None:
        """Count a response, and record the size of the question's prompt."""
        self._answers += 1
        if answer.stop_reason == "length":
            self._cut_answers += 1
        # Parsing takes time, so stop parsing after the first readable answer.
        self._any_readable = self._any_readable or self._is_readable(answer)
        if answer.input_tokens and answer.origin == "asked" and not answer.failure:
            estimated = estimate_input_tokens(question)
            self._prompts.append(_PromptSize(answer.input_tokens, estimated))

    @property
    def are_useless(self) -> bool:
        """Whether there are enough answers, and all of them are of no use."""
        return self._all_cut or self._none_readable or _are_prompts_cut(self._prompts)

    @property
    def _all_cut(self) -> bool:
        return self._answers >= FIRST_ANSWERS and self._cut_answers == self._answers

    @property
    def _none_readable(self) -> bool:
        return self._answers >= FIRST_UNREADABLE and not self._any_readable

    def error(self, not_asked: Collection[Question]) -> UserError:
        """Return the error of a run that stops because its answers are of no use.

        Args:
            not_asked: Questions that are not asked because the run stops, at least one.
        """
        if self._all_cut:
            limit = next(iter(not_asked)).parameters.get("max_tokens")
            at_limit = "" if limit is None else f" at {limit} tokens"
            what = f"{self._answers} of {self._answers} answers are cut off{at_limit}"
            hint = f"raise {self._name_limit(limit)}"
        elif self._none_readable:
            what = f"none of {self._answers} answers is readable"
            hint = "look at one with `pieline ask` and correct the entry in models.yaml"
        else:
            most_counted = max(prompt.counted for prompt in self._prompts)
            most_estimated = max(prompt.estimated for prompt in self._prompts)
            what = (
                f"the server seems to cut the prompts: it counts at most {most_counted} tokens, but"
                f" a prompt has about {most_estimated}"
            )
            hint = (
                "raise its context length (docs/chat_models.md#a-server-that-already-runs) and run"
                " `pieline recordings reask --outcome any`"
            )
        return UserError(
            f"{what}; {len(not_asked)} questions are not asked",
            where=self._spec.label,
            hint=f"{hint}, or set llm.stop_when_cut: false to ask only these questions",
        )

    def _name_limit(self, limit: int | None) -> str:
        """Return the name of the setting that limits answers; `limit` is the sent `max_tokens`."""
        default_limit = (self._spec.defaults or {}).get("max_tokens")
        if limit is not None and limit != default_limit:
            return self._limit_setting
        # Without a sent limit, the context length limits the answers of a local model.
        is_context_length = self._spec.is_local and limit is None
        field = "context_length" if is_context_length else "max_tokens in defaults"
        return f"{field} of {self._spec.label} in models.yaml"


def _are_prompts_cut(prompts: Sequence[_PromptSize]) -> bool:
    """Return whether a server cuts prompts off, according to its token counts and our estimates.

    The server cuts prompts if it counts far fewer tokens than estimated for all prompts, or if it
    counts the same maximum for prompts that certainly differ in length.
    """
    if len(prompts) < FIRST_ANSWERS:
        return False
    if all(prompt.counted < _FAR_BELOW * prompt.estimated for prompt in prompts):
        return True
    most_counted = max(prompt.counted for prompt in prompts)
    estimates = [prompt.estimated for prompt in prompts if prompt.counted == most_counted]
    shortest, longest = min(estimates), max(estimates)
    if len(estimates) < FIRST_ANSWERS or longest - shortest < _LONGER_TOKENS:
        return False
    lengths_differ = longest >= _LONGER * shortest
    longest_is_incomplete = most_counted < _BELOW * longest
    return lengths_differ or longest_is_incomplete
