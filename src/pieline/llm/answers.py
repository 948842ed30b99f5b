"""What a model answered."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator

from pieline.core.records import Frozen


def _without_lone_surrogates(text: str) -> str:
    # Some providers cut an escaped pair in two; half a pair cannot be written as UTF-8.
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


Text = Annotated[str, AfterValidator(_without_lone_surrogates)]


class Answer(Frozen):
    """One answer, or (with `error`) the failure to get one.

    Attributes:
        key: digest of the question.
        text: the answer's text; null where the model returned none.
        reasoning: thoughts that the provider returned apart from the text.
        refusal: what the provider returned in place of the text where the model declined.
        finish_reason: why the model stopped, in litellm's names (`stop`, `length`,
            `content_filter`, ...).
        returned_model: the checkpoint that the provider says has answered.
        fingerprint: the provider's name for the system that answered.
        response_id: the provider's number for the request (null for local models).
        input_tokens, output_tokens: as counted by the provider; output includes reasoning.
        reasoning_tokens: those of the output tokens that were thoughts, where told.
        origin: `asked` of the model, or `hand-written` for a scripted sample recording.
        error: why no answer was had after all attempts; never recorded.
    """

    key: str
    text: Text | None = None
    reasoning: Text | None = None
    refusal: Text | None = None
    finish_reason: str | None = None
    returned_model: str | None = None
    fingerprint: str | None = None
    response_id: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    origin: Literal["asked", "hand-written"] = "asked"
    error: str | None = None

    def record(self) -> dict[str, Any]:
        """The fields to store: all but the key that are not null, and always the text."""
        fields = self.model_dump(exclude={"key", "error"}, exclude_none=True)
        return {"text": None, **fields}
