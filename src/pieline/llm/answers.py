"""Recorded answers of language models."""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, NonNegativeInt

from pieline.core.errors import UserError
from pieline.core.files import canonical_json
from pieline.core.records import Frozen
from pieline.models.llm import LLMEntry, name_on_the_wire

FILTERED = "content_filter"


def _without_lone_surrogates(text: str) -> str:
    # Some providers cut an escaped pair in two; half a pair cannot be written as UTF-8.
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


Text = Annotated[str, AfterValidator(_without_lone_surrogates)]


class ToolCall(Frozen):
    """A function call that the model requested; the arguments are JSON as the model wrote it."""

    name: Text | None = None
    arguments: Text = ""


class Sent(Frozen):
    """The request that an answer belongs to (see `pieline.llm.wire`): path of the address and body.

    In the body `{"question": 0}` stands for the text of the question's first turn,
    `{"question": "messages"}` for all its turns and `{"question": name}` for a parameter.
    """

    path: str
    body: dict[str, Any]


class Answer(Frozen):
    """One answer: whatever a provider bills, also if it says nothing that can be read.

    Attributes:
        key: digest of the question.
        text: the answer's text; null where the model returned none.
        reasoning: thoughts that the provider returned apart from the text.
        refusal: what the provider returned in place of the text where the model declined.
        finish_reason: why the model stopped, in litellm's names (`stop`, `length`,
            `content_filter`, `tool_calls`, ...).
        tool_calls: function calls that it requested; nothing executes them.
        returned_model: the model that the response names; null where it names none.
        fingerprint: the provider's name for the system that answered.
        response_id: the provider's number for the request (null for local models).
        input_tokens, output_tokens: as counted by the provider; output includes reasoning.
        cached_tokens, cache_write_tokens: input tokens that were read from the provider's cache, or
            written to it; null if it reports none.
        reasoning_tokens: output tokens that were thoughts, if the provider counts them.
        sent: what was sent; null in older recordings and in hand-written ones.
        origin: `asked` of the model, or `hand-written` for a scripted sample recording.
    """

    key: str
    text: Text | None = None
    reasoning: Text | None = None
    refusal: Text | None = None
    finish_reason: str | None = None
    tool_calls: tuple[ToolCall, ...] | None = None
    returned_model: str | None = None
    fingerprint: str | None = None
    response_id: str | None = None
    input_tokens: NonNegativeInt | None = None
    output_tokens: NonNegativeInt | None = None
    cached_tokens: NonNegativeInt | None = None
    cache_write_tokens: NonNegativeInt | None = None
    reasoning_tokens: NonNegativeInt | None = None
    sent: Sent | None = None
    origin: Literal["asked", "hand-written"] = "asked"

    @property
    def digest(self) -> str:
        """A digest of all that is recorded of it."""
        return hashlib.sha256(canonical_json(self.record()).encode()).hexdigest()[:16]

    def record(self) -> dict[str, Any]:
        """Return the fields to store: all but the key that are not null, and always the text."""
        fields = self.model_dump(exclude={"key"}, exclude_none=True)
        return {"text": None, **fields}


def is_foreign(answer: Answer, spec: LLMEntry) -> bool:
    """Return whether a response names another model, or none although a model answered.

    A request that a filter rejects is answered by no model.
    """
    if (answer.returned_model, answer.text, answer.finish_reason) == (None, None, FILTERED):
        return False
    return not spec.answers_with(answer.returned_model)


def refuse_foreign(answers: Iterable[Answer], spec: LLMEntry, where: Path) -> None:
    """Raise a `UserError` for the first answer of another model, in the file `where`."""
    for answer in answers:
        if is_foreign(answer, spec):
            raise UserError(
                f"asked {name_on_the_wire(spec.checkpoint)}, answered by"
                f" {answer.returned_model or 'an unnamed model'}",
                where=where,
                hint="if it is the same model, add the name ('*': any or none) to answers_as of its"
                " entry in models.yaml; else leave the model out, or remove these answers to ask"
                " again",
            )
