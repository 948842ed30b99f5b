"""Define the records of answers from language models."""

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, NonNegativeInt

from pieline.core.errors import UserError
from pieline.core.files import canonical_json, sha256_of
from pieline.core.records import Frozen
from pieline.models.llm import LLMEntry, api_model_name

FILTERED = "content_filter"

_REASONS = {
    FILTERED: "blocklist content_filter content_filtered error_toxic escalation"
    " guardrail_intervened image_other image_prohibited_content image_recitation image_safety"
    " language other prohibited_content recitation safety sensitive spii",
    "refusal": "refusal refused",
    "repetition": "repeat repeated repetition repetition_detected",
    "length": "context_length context_length_exceeded length max_completion_tokens max_length"
    " max_new_tokens max_output_tokens max_tokens model_context_window_exceeded model_length"
    " token_limit",
    "tool_calls": "function_call tool_call tool_calls tool_use",
    "stop": "complete completed done end end_turn eos eos_found eos_token finished normal"
    " stop stop_sequence stop_token",
}
"""Providers' reasons for stopping in lower case, by our name; earlier names take precedence."""
_OUR_NAMES = {reason: name for name, reasons in _REASONS.items() for reason in reasons.split()}


def total(counts: Collection[int | None]) -> int | None:
    """Return the sum of token counts; None if one of them is None (unknown or unbounded)."""
    return None if None in counts else sum(count or 0 for count in counts)


def finish_reason(stated_reasons: Iterable[str]) -> str | None:
    """Return our name for the reasons for stopping that a provider states (see `_REASONS`).

    Returns None if the provider states no reason, or an unknown reason, because the generation may
    then have failed.
    """
    our_names = set()
    for reason in stated_reasons:
        # Google's OpenAI-compatible endpoint writes "content_filter: SAFETY".
        normalized = reason.partition(":")[0].strip().lower().replace("-", "_")
        our_name = _OUR_NAMES.get(normalized.removeprefix("finish_reason_"))
        if our_name is None:
            return None
        our_names.add(our_name)
    for our_name in _REASONS:  # in the order of precedence
        if our_name in our_names:
            return our_name
    return None


def _without_lone_surrogates(text: str) -> str:
    # Some providers split an escaped surrogate pair, and half a pair cannot be encoded as UTF-8.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


Text = Annotated[str, AfterValidator(_without_lone_surrogates)]


class ToolCall(Frozen):
    """A function call that the model requested.

    Attributes:
        name: Name of the function.
        arguments: Arguments as the JSON text that the model wrote.
    """

    name: Text | None = None
    arguments: Text = ""


class SentRequest(Frozen):
    """Request that was sent to get an answer (see `pieline.llm.wire`).

    Attributes:
        path: Path of the URL.
        body: Request body with references to the question: `{"question": 0}` stands for the text of
            the first turn, `{"question": "messages"}` for all turns, and `{"question": name}` for a
            parameter.
    """

    path: str
    body: dict[str, Any]


class Answer(Frozen):
    """One response of a provider, as received.

    Every response with a text or token counts is recorded, even if the response cannot be parsed or
    reports a failure.

    Attributes:
        key: Digest of the question.
        text: Text of the answer; null if the model returned none.
        reasoning: Reasoning that the provider returned separately from the text.
        refusal: Message that the provider returned instead of a text because the model declined.
        finish_reason: Reason why the model stopped: `stop`, `length`, `content_filter`, `refusal`,
            `repetition` or `tool_calls`; null if the provider states no reason or an unknown one.
        provider_reason: Reason in the provider's words; null if equal to `finish_reason`.
        error: Failure that the response reports, or the reason why the response is incomplete; null
            if there is none.
        unread: Content of an unknown kind, which may be a part of the answer; null if there is
            none.
        raw: Beginning of the response body, if the answer has an `error`, `unread` content or an
            unknown reason for stopping.
        attempt: Number of recorded earlier responses to the question; null if there are none.
        tool_calls: Function calls that the model requested; they are never executed.
        returned_model: Model that the response names; null if it names none.
        fingerprint: Provider's identifier for the backend that answered.
        response_id: Provider's identifier for the response; null for local models.
        input_tokens, output_tokens: Token counts reported by the provider; output tokens include
            reasoning tokens.
        cached_tokens, cache_write_tokens: Input tokens that were read from the provider's cache or
            written to it; null if the provider reports none.
        reasoning_tokens: Output tokens used for reasoning; null if the provider does not count
            them.
        address: Scheme, host and port of the server that answered; null for local models, whose key
            identifies the weights, and in older recordings.
        sent: Request that was sent; null in older and in hand-written recordings.
        origin: `asked` if a model answered; `hand-written` in a sample recording.
    """

    key: str
    text: Text | None = None
    reasoning: Text | None = None
    refusal: Text | None = None
    finish_reason: Text | None = None
    provider_reason: Text | None = None
    error: Text | None = None
    unread: Text | None = None
    raw: Text | None = None
    attempt: NonNegativeInt | None = None
    tool_calls: tuple[ToolCall, ...] | None = None
    returned_model: Text | None = None
    fingerprint: Text | None = None
    response_id: Text | None = None
    input_tokens: NonNegativeInt | None = None
    output_tokens: NonNegativeInt | None = None
    cached_tokens: NonNegativeInt | None = None
    cache_write_tokens: NonNegativeInt | None = None
    reasoning_tokens: NonNegativeInt | None = None
    address: str | None = None
    sent: SentRequest | None = None
    origin: Literal["asked", "hand-written"] = "asked"

    @property
    def stop_reason(self) -> str | None:
        """Our name for the reason why the model stopped.

        Unlike `finish_reason`, the name is also set for a reason that was unknown when the answer
        was recorded. None if the provider states no reason or an unknown one.
        """
        stated_reasons = self.provider_reason.split(", ") if self.provider_reason else ()
        return self.finish_reason or finish_reason(stated_reasons)

    @property
    def failure(self) -> str:
        """Reason why the generation failed, in the provider's words; empty if it did not fail."""
        if self.error:
            return self.error
        if self.provider_reason and self.stop_reason is None:
            return f"the generation ended with the reason {self.provider_reason!r}"
        return ""

    @property
    def has_output(self) -> bool:
        """Whether the model generated anything."""
        generated = self.text, self.reasoning, self.refusal, self.tool_calls, self.unread
        return any(generated) or bool(self.output_tokens)

    @property
    def digest(self) -> str:
        """First 16 hexadecimal digits of the SHA-256 of the fields that `record` returns."""
        return sha256_of(canonical_json(self.record()).encode())[:16]

    def record(self) -> dict[str, Any]:
        """Return the fields to store: the text, even if null, and all other non-null fields.

        The key is left out, because it is stored beside these fields.
        """
        fields = self.model_dump(exclude={"key"}, exclude_none=True)
        return {"text": None, **fields}


def is_foreign(answer: Answer, spec: LLMEntry) -> bool:
    """Return whether the queried model's entry does not accept the model that a response names.

    If a response names no model, it is accepted if the entry accepts any name, or if the response
    reports a failure or a filtered request, because then no model answered.
    """
    is_filtered = answer.text is None and answer.finish_reason == FILTERED
    if answer.returned_model is None and (is_filtered or answer.failure):
        return False
    return not spec.accepts_model_name(answer.returned_model)


def check_answering_model(answers: Iterable[Answer], spec: LLMEntry, where: Path) -> None:
    """Raise a `UserError` if an answer came from another model (see `is_foreign`).

    Args:
        answers: Answers to check.
        spec: Entry of the queried model.
        where: File of the answers, for the error message.
    """
    for answer in answers:
        if is_foreign(answer, spec):
            raise UserError(
                f"requested {api_model_name(spec.checkpoint)}, answered by"
                f" {answer.returned_model or 'an unnamed model'}",
                where=where,
                hint="if it is the same model, add the name ('*': any or none) to answers_as in its"
                " entry in models.yaml; otherwise leave the model out, or remove these answers to"
                " ask again",
            )


def check_address(
    answers: Iterable[Answer], spec: LLMEntry, asked_at: str | None, where: Path
) -> None:
    """Raise a `UserError` if an answer is from a server that the model's entry does not accept.

    Args:
        answers: Recorded answers.
        spec: Entry of the queried model.
        asked_at: Scheme, host and port of the queried server; None if unknown.
        where: File of the answers, for the error message.
    """
    for answer in answers:
        if not spec.accepts_origin(answer.address, asked_at):
            raise UserError(
                f"{spec.label} is asked at {asked_at}, but {answer.address} answered",
                where=where,
                hint=f"if that server has the same model, set its address (api_base or"
                f" llm.api_bases.{spec.provider}) or add {answer.address} to answers_from in its"
                " entry in models.yaml; otherwise remove these answers to ask again",
            )
