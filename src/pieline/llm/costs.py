"""Compute the estimated and maximum cost of questions, and the cost of recorded answers."""

import json
import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from pieline.core.errors import UserError
from pieline.llm.answers import Answer
from pieline.llm.questions import Question
from pieline.models.llm import LLMEntry, Prices

BYTES_PER_TOKEN = 3.6
"""Approximate UTF-8 bytes per token: English prose has 4 to 4.5, German 3 to 3.5."""

TOKENS_PER_MESSAGE = 8
"""Upper bound, for all providers, on the tokens of role markers and separators per turn."""

MOST_TOKENS = 200_000
"""Token count that no model and no prompt of a study reaches; a higher count is an error."""

TOKENS_OF_TEMPLATE = 64
"""Upper bound on the tokens that a chat template adds, such as a default system prompt."""


@dataclass(frozen=True)
class Estimate:
    """Estimated cost of a set of questions.

    Attributes:
        spec: Entry of the model.
        questions: Number of distinct questions.
        recorded: Number of questions with recorded answers; the token counts exclude these
            questions.
        input_tokens: Approximate number of input tokens, from `BYTES_PER_TOKEN`.
        output_tokens: Upper bound on the number of output tokens; None if it is unbounded.
        likely_output_tokens: Expected number of output tokens.
    """

    spec: LLMEntry
    questions: int = 0
    recorded: int = 0
    input_tokens: int = 0
    output_tokens: int | None = 0
    likely_output_tokens: int = 0

    @property
    def to_ask(self) -> int:
        """Number of questions without a recorded answer."""
        return self.questions - self.recorded

    @property
    def usd(self) -> float | None:
        """Approximate input cost plus maximum output cost, in US dollars.

        None if questions are to be asked and the output is unbounded or the prices are unknown.
        """
        return self._usd(self.output_tokens, self.spec.paid and self.spec.paid.highest)

    @property
    def likely_usd(self) -> float | None:
        """Expected cost in US dollars; None if questions are to be asked at unknown prices."""
        return self._usd(self.likely_output_tokens, self.spec.paid)

    def _usd(self, output_tokens: int | None, prices: Prices | None) -> float | None:
        if not self.to_ask or not (self.spec.paid or self.spec.cost_is_unknown):
            return 0.0
        if self.spec.cost_is_unknown or output_tokens is None:
            return None
        return price(prices, self.input_tokens, output_tokens)

    def __add__(self, other: "Estimate") -> "Estimate":
        """Add two estimates of the same model that have no question in common."""
        bounds = (self.output_tokens, other.output_tokens)
        return Estimate(
            self.spec,
            self.questions + other.questions,
            self.recorded + other.recorded,
            self.input_tokens + other.input_tokens,
            None if None in bounds else sum(bound or 0 for bound in bounds),
            self.likely_output_tokens + other.likely_output_tokens,
        )


def estimate(
    questions: Iterable[Question],
    spec: LLMEntry,
    recorded: Collection[str] = (),
    likely: int = 0,
) -> Estimate:
    """Estimate the cost of the questions that have no recorded answer.

    Args:
        questions: Questions to the model.
        spec: Entry of the model.
        recorded: Keys of the recorded answers.
        likely: Expected output tokens per answer, capped at the upper bound of each answer.
    """
    unique = dict.fromkeys(questions)
    # Computing a key takes longer than everything else, so skip it if nothing is recorded.
    left = [question for question in unique if not recorded or question.key not in recorded]
    input_tokens = sum(map(estimate_input_tokens, left))
    bounds = [max_answer_tokens(question, spec) for question in left]
    return Estimate(
        spec,
        questions=len(unique),
        recorded=len(unique) - len(left),
        input_tokens=input_tokens,
        output_tokens=None if None in bounds else sum(bound or 0 for bound in bounds),
        likely_output_tokens=sum(min(likely, bound or likely) for bound in bounds),
    )


def estimate_input_tokens(question: Question) -> int:
    """Estimate the number of tokens of a question from its length in UTF-8 bytes."""
    size = sum(len(turn.content.encode("utf-8")) for turn in question.messages)
    return math.ceil(size / BYTES_PER_TOKEN) + TOKENS_PER_MESSAGE * len(question.messages)


def max_input_tokens(question: Question) -> int:
    """Return an upper bound on the tokens of a question.

    No tokenizer produces more tokens than the text has bytes.
    """
    size = sum(len(turn.content.encode("utf-8")) for turn in question.messages)
    schema = len(str(question.parameters.get("response_format", "")).encode("utf-8"))
    body = len(json.dumps(question.body).encode("utf-8")) if question.body else 0
    turns = TOKENS_PER_MESSAGE * len(question.messages)
    return size + schema + body + turns + TOKENS_OF_TEMPLATE


def max_answer_tokens(question: Question, spec: LLMEntry) -> int | None:
    """Return the maximum tokens of an answer: `max_tokens` if sent, else the limit in the entry.

    Returns None if the entry has no limit either.
    """
    sent = question.parameters.get("max_tokens")
    return int(sent) if sent is not None else spec.max_output_tokens


def max_attempt_usd(question: Question, spec: LLMEntry) -> float:
    """Return the maximum cost of one attempt at a question, in US dollars.

    Raises:
        UserError: The model has prices, but the length of its answers is unbounded.
    """
    if not spec.paid:
        return 0.0
    bound = max_answer_tokens(question, spec)
    if bound is None:
        raise UserError(
            "the length of an answer is unbounded, and so is its cost",
            where=spec.label,
            hint="send max_tokens, or set max_output_tokens in models.yaml",
        )
    return price(spec.paid.highest, max_input_tokens(question), bound)


def price(
    prices: Prices | None,
    input_tokens: int,
    output_tokens: int,
    *,
    cached: int | None = None,
    written: int | None = None,
) -> float:
    """Return the price of these tokens in US dollars; 0 without prices.

    Args:
        prices: Prices of the model.
        input_tokens: Total number of input tokens, including cached ones.
        output_tokens: Number of all output tokens.
        cached: Number of input tokens that were read from the cache.
        written: Number of input tokens that were written to the cache.
    """
    if not prices:
        return 0.0
    usd = 0.0
    for rate, tokens in ((prices.cached_input, cached), (prices.cache_write, written)):
        if rate is not None and tokens:  # else they cost the same as other input
            usd += tokens * rate
            input_tokens -= tokens
    usd += max(input_tokens, 0) * prices.input + output_tokens * prices.output
    return usd / 1e6


def answer_usd(answer: Answer, spec: LLMEntry) -> float | None:
    """Return the cost of an answer in US dollars; None without usable token counts.

    Counts are unusable if the provider reported none, or more than `MOST_TOKENS`. Returns 0 for
    hand-written answers and models without prices.
    """
    if answer.origin == "hand-written" or not spec.paid:
        return 0.0
    if answer.input_tokens is None or answer.output_tokens is None:
        return None
    if largest_count(answer) > max(MOST_TOKENS, spec.max_output_tokens or 0):
        return None
    return price(
        spec.paid,
        answer.input_tokens,
        answer.output_tokens,
        cached=answer.cached_tokens,
        written=answer.cache_write_tokens,
    )


def largest_count(answer: Answer) -> int:
    """Return the largest token count that the provider reported; 0 if it reported none."""
    counts = (
        answer.input_tokens,
        answer.output_tokens,
        answer.cached_tokens,
        answer.cache_write_tokens,
        answer.reasoning_tokens,
    )
    return max(count or 0 for count in counts)
