"""Stop a run whose first answers are unreadable or cut off, or whose prompts are cut off."""

from collections.abc import Callable, Collection, Sequence

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
"""Complete prompts have more than these shares of the estimated tokens: those in the recordings of
the repository have at least 0.72."""
_LONGER = 1.25
_LONGER_TOKENS = 10
"""Ratio and difference of two estimates from which the prompts certainly differ in tokens."""


def has_text(answer: Answer) -> bool:
    """Return whether an answer has a complete text."""
    return answer_text(answer)[1] is None


class FirstAnswers:
    """First answers of a run, which show whether further answers would be of use.

    Args:
        spec: Entry of the model.
        is_readable: Whether an answer is readable.
        limit_setting: Name of the setting that limits the length of the answers, for messages.
    """

    def __init__(
        self,
        spec: LLMEntry,
        is_readable: Callable[[Answer], bool] = has_text,
        limit_setting: str = "max_tokens",
    ) -> None:
        self._spec, self._is_readable, self._limit_setting = spec, is_readable, limit_setting
        self._count = self._cut = 0
        self._any_readable = False
        self._prompts: list[tuple[int, int]] = []

    def add(self, question: Question, answer: Answer) -> None:
        """Add a response to a question."""
        self._count += 1
        self._cut += answer.stop_reason == "length"
        # Most runs parse only their first answer here.
        self._any_readable = self._any_readable or self._is_readable(answer)
        if answer.input_tokens and answer.origin == "asked" and not answer.failure:
            self._prompts.append((answer.input_tokens, estimate_input_tokens(question)))

    @property
    def are_useless(self) -> bool:
        """Whether there are enough answers, and all of them are of no use."""
        return self._all_cut or self._none_readable or _are_cut(self._prompts)

    @property
    def _all_cut(self) -> bool:
        return self._cut == self._count >= FIRST_ANSWERS

    @property
    def _none_readable(self) -> bool:
        return self._count >= FIRST_UNREADABLE and not self._any_readable

    def error(self, left: Collection[Question]) -> UserError:
        """Return the error of a run that stops because its answers are of no use.

        Args:
            left: Questions that are not asked, at least one.
        """
        switch = "or set llm.stop_when_cut: false to ask only these questions"
        if self._all_cut:
            limit = next(iter(left)).parameters.get("max_tokens")
            setting = self._limit_setting
            if limit is None or limit == (self._spec.defaults or {}).get("max_tokens"):
                is_own = self._spec.is_local and limit is None
                field = "context_length" if is_own else "max_tokens in defaults"
                setting = f"{field} of {self._spec.label} in models.yaml"
            tokens = "" if limit is None else f" at {limit} tokens"
            what = f"{self._count} of {self._count} answers are cut off{tokens}"
            hint = f"raise {setting}, {switch}"
        elif self._none_readable:
            what = f"none of {self._count} answers is readable"
            hint = f"look at one with `pieline ask` and correct the entry in models.yaml, {switch}"
        else:
            most = max(self._prompts)
            what = (
                f"the server seems to cut the prompts: it counts at most {most[0]} tokens, but a"
                f" prompt has about {max(estimate for _, estimate in self._prompts)}"
            )
            hint = (
                "raise its context length (docs/chat_models.md#a-server-that-already-runs) and run"
                f" `pieline recordings reask --outcome any`, {switch}"
            )
        return UserError(
            f"{what}; {len(left)} questions are not asked", where=self._spec.label, hint=hint
        )


def _are_cut(prompts: Sequence[tuple[int, int]]) -> bool:
    """Return whether a server cut prompts off, given its token counts and our estimates."""
    if len(prompts) < FIRST_ANSWERS:
        return False
    if all(count < _FAR_BELOW * estimate for count, estimate in prompts):
        return True
    most = max(count for count, _ in prompts)
    longest = [estimate for count, estimate in prompts if count == most]
    if len(longest) < FIRST_ANSWERS or max(longest) - min(longest) < _LONGER_TOKENS:
        return False
    return max(longest) >= _LONGER * min(longest) or most < _BELOW * max(longest)
