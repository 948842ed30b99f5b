"""Compute the estimated and maximum cost of questions, and the cost of recorded answers."""

import json
import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from pieline.core.errors import UserError
from pieline.llm.answers import Answer, total
from pieline.llm.questions import Question
from pieline.models.llm import LLMEntry, Prices

BYTES_PER_TOKEN = 3.6
"""Approximate UTF-8 bytes per token: English prose has 4 to 4.5, German 3 to 3.5."""

TOKENS_PER_MESSAGE = 8
"""Upper bound on the tokens of role markers and separators per turn, for all providers."""

MOST_TOKENS = 200_000
"""Token count that no prompt or answer of a study reaches; higher reported counts are errors."""

TOKENS_OF_TEMPLATE = 64
"""Upper bound on the tokens that a chat template adds, for example a default system prompt."""


@dataclass(frozen=True)
class Estimate:
    """Estimated cost of a set of questions.

    Attributes:
        spec: Entry of the model.
        questions: Number of distinct questions.
        recorded: Number of questions with recorded answers; the token counts exclude these
            questions.
        input_tokens: Approximate number of input tokens, computed with `BYTES_PER_TOKEN`.
        output_tokens: Upper bound on the number of output tokens; None if the number is unbounded.
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

        None if there are questions to ask, and their output is unbounded or the prices are unknown.
        """
        highest_prices = self.spec.paid.highest if self.spec.paid else None
        return self._cost(self.output_tokens, highest_prices)

    @property
    def likely_usd(self) -> float | None:
        """Expected cost in US dollars; None if there are questions to ask at unknown prices."""
        return self._cost(self.likely_output_tokens, self.spec.paid)

    def _cost(self, output_tokens: int | None, prices: Prices | None) -> float | None:
        """Return the cost in US dollars of the input and output tokens; None if it is unknown."""
        is_free = not self.spec.paid and not self.spec.cost_is_unknown
        if is_free or not self.to_ask:
            return 0.0
        if self.spec.cost_is_unknown or output_tokens is None:
            return None
        return price(prices, self.input_tokens, output_tokens)

    def __add__(self, other: "Estimate") -> "Estimate":
        """Add two estimates of the same model that have no question in common."""
        return Estimate(
            self.spec,
            questions=self.questions + other.questions,
            recorded=self.recorded + other.recorded,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=total([self.output_tokens, other.output_tokens]),
            likely_output_tokens=self.likely_output_tokens + other.likely_output_tokens,
        )


def estimate(
    questions: Iterable[Question],
    spec: LLMEntry,
    recorded: Collection[str] = (),
    likely_tokens: int = 0,
) -> Estimate:
    """Estimate the cost of the questions that have no recorded answer.

    Args:
        questions: Questions to the model.
        spec: Entry of the model.
        recorded: Keys of the questions with recorded answers.
        likely_tokens: Expected output tokens per answer. For an answer with a lower upper bound,
            the upper bound is used.
    """
    unique_questions = dict.fromkeys(questions)
    # Computing a key takes longer than everything else, so skip it if nothing is recorded.
    to_ask = [
        question for question in unique_questions if not recorded or question.key not in recorded
    ]
    bounds = [max_answer_tokens(question, spec) for question in to_ask]
    return Estimate(
        spec,
        questions=len(unique_questions),
        recorded=len(unique_questions) - len(to_ask),
        input_tokens=sum(estimate_input_tokens(question) for question in to_ask),
        output_tokens=total(bounds),
        likely_output_tokens=sum(min(likely_tokens, bound or likely_tokens) for bound in bounds),
    )


def estimate_input_tokens(question: Question) -> int:
    """Estimate the number of tokens of a question from its length in UTF-8 bytes."""
    text_bytes = sum(len(turn.content.encode("utf-8")) for turn in question.messages)
    return math.ceil(text_bytes / BYTES_PER_TOKEN) + TOKENS_PER_MESSAGE * len(question.messages)


def max_input_tokens(question: Question) -> int:
    """Return an upper bound on the tokens of a question: one per byte, plus those of the markup.

    No tokenizer produces more tokens than a text has bytes.
    """
    text_bytes = sum(len(turn.content.encode("utf-8")) for turn in question.messages)
    schema_bytes = len(str(question.parameters.get("response_format", "")).encode("utf-8"))
    body_bytes = len(json.dumps(question.body).encode("utf-8")) if question.body else 0
    markup_tokens = TOKENS_PER_MESSAGE * len(question.messages) + TOKENS_OF_TEMPLATE
    return text_bytes + schema_bytes + body_bytes + markup_tokens


def max_answer_tokens(question: Question, spec: LLMEntry) -> int | None:
    """Return the maximum number of tokens of an answer; None if the number is unbounded.

    The maximum is the parameter `max_tokens` of the question or, if the question does not send
    this parameter, `max_output_tokens` of the entry.
    """
    sent_limit = question.parameters.get("max_tokens")
    return int(sent_limit) if sent_limit is not None else spec.max_output_tokens


def max_attempt_usd(question: Question, spec: LLMEntry) -> float:
    """Return the maximum cost of one attempt at a question, in US dollars.

    Raises:
        UserError: The model has prices, but the length of its answers is unbounded.
    """
    if not spec.paid:
        return 0.0
    max_output_tokens = max_answer_tokens(question, spec)
    if max_output_tokens is None:
        raise UserError(
            "the length of an answer is unbounded, and so is its cost",
            where=spec.label,
            hint="send max_tokens, or set max_output_tokens in models.yaml",
        )
    return price(spec.paid.highest, max_input_tokens(question), max_output_tokens)


def price(
    prices: Prices | None,
    input_tokens: int,
    output_tokens: int,
    *,
    cached: int | None = None,
    written: int | None = None,
) -> float:
    """Return the price of an answer's input and output tokens in US dollars; 0 without prices.

    Args:
        prices: Prices of the model.
        input_tokens: Total number of input tokens, including cached ones.
        output_tokens: Number of all output tokens.
        cached: Number of input tokens that were read from the cache.
        written: Number of input tokens that were written to the cache.
    """
    if not prices:
        return 0.0
    micro_usd = 0.0  # in millionths, because prices are per million tokens
    other_input_tokens = input_tokens
    # Without a price of their own, tokens of the cache cost the same as other input.
    if prices.cached_input is not None and cached:
        micro_usd += cached * prices.cached_input
        other_input_tokens -= cached
    if prices.cache_write is not None and written:
        micro_usd += written * prices.cache_write
        other_input_tokens -= written
    micro_usd += max(other_input_tokens, 0) * prices.input + output_tokens * prices.output
    return micro_usd / 1e6


def answer_usd(answer: Answer, spec: LLMEntry) -> float | None:
    """Return the cost of an answer in US dollars; None if its token counts are unusable.

    Token counts are unusable if the provider reported no counts, or a count above `MOST_TOKENS` and
    above the model's `max_output_tokens`. Hand-written answers and answers of models without prices
    cost 0.
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
