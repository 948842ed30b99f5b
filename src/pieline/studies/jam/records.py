"""The records of ID10M-JAM: originals, their variants, and the sentences to be predicted."""

from collections.abc import Iterable
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from pieline.core.records import Record
from pieline.studies.jam.bio import Tag, spans_of

DecidedBy = Literal["file", "release", "tags"]
"""Where the decisions that filter ID10M come from: someone's file, the released originals, or the
tags alone."""
VariantSource = Literal["sample", "released", "generated"]
Verdict = Literal["valid", "corrected", "invalid", "unreviewed"]
ModelVerdict = Literal["valid", "corrected", "replaced", "unknown"]
Flag = Literal[
    "original_missing",
    "original_not_last",
    "context_empty",
    "context_too_short",
    "context_too_long",
    "pie_repeated",
    "other_pie",
    "wrong_language",
    "duplicate",
    "not_reviewed_by_model",
]
"""What an automatic check can find wrong with a variant (see `variants.validation`)."""


class TaggedRecord(Record):
    """A sentence with its PIE and the gold label of each token.

    Attributes:
        language: of the sentence.
        sentence: the concatenation of the tokens.
        tokens: with their trailing spaces.
        tags: BIO tags; all O where the PIE is used literally (section 3.1).
        pies: the PIE (a list, as upstream has it), also of literal sentences.
        true_idioms: the PIE again if it is figurative, as the release spells it there; the released
            analysis compares with it.
        is_figurative: whether the PIE is used idiomatically.
    """

    language: str
    sentence: str = Field(min_length=1)
    tokens: tuple[str, ...]
    tags: tuple[Tag, ...]
    pies: tuple[str, ...] = Field(min_length=1)
    true_idioms: tuple[str, ...]
    is_figurative: bool

    @model_validator(mode="after")
    def _tokens_fit(self) -> Self:
        if "".join(self.tokens) != self.sentence:
            raise ValueError("the tokens are not the sentence")
        if len(self.tags) != len(self.tokens):
            raise ValueError(f"{len(self.tags)} tags for {len(self.tokens)} tokens")
        if spans_of(self.tags) and not self.is_figurative:
            raise ValueError("a literal sentence has idiom tags")
        return self


class Original(TaggedRecord):
    """A sentence of ID10M's test split that filtering kept (section 3.2).

    Attributes:
        id: place in the raw file, as in `test-0001`.
        was_fixed: whether its text or its label was corrected.
    """

    id: str
    was_fixed: bool


class Variant(TaggedRecord):
    """A hard variant: an added context, then the original sentence (section 3.3).

    Attributes:
        original_id: its original.
        number: among its siblings, from 1.
        source: where it comes from.
        model_verdict: what the validating model did with it; null where no model was asked.
        flags: what the automatic checks found.
        verdict: what people said; `unreviewed` where nobody has.
        note: what the annotator, or the validating model, remarked.
    """

    original_id: str
    number: int = Field(ge=1)
    source: VariantSource
    model_verdict: ModelVerdict | None = None
    flags: tuple[Flag, ...] = ()
    verdict: Verdict = "unreviewed"
    note: str = ""

    @property
    def id(self) -> str:
        """Its name, as in `test-0001-v2`."""
        return f"{self.original_id}-v{self.number}"


class JamSentence(TaggedRecord):
    """A sentence to be predicted: an original, or one of its variants.

    Attributes:
        id: of the sentence; equal to `original_id` for an original.
        original_id: the original.
        variant_number: 0 for the original itself.
    """

    id: str
    original_id: str
    variant_number: int = Field(ge=0)

    @property
    def is_original(self) -> bool:
        """Whether this is the sentence of ID10M itself."""
        return self.variant_number == 0


def as_sentence(item: Original | Variant) -> JamSentence:
    """What a model is asked about, of an original or a variant."""
    fields: dict[str, Any] = {name: getattr(item, name) for name in TaggedRecord.model_fields}
    fields |= {"id": item.id, "original_id": item.id, "variant_number": 0}
    if isinstance(item, Variant):
        fields |= {"original_id": item.original_id, "variant_number": item.number}
    return JamSentence(**fields)


def by_original(sentences: Iterable[JamSentence]) -> dict[str, list[JamSentence]]:
    """The sentences of each original, the original itself first, in order."""
    groups: dict[str, list[JamSentence]] = {}
    for item in sentences:
        groups.setdefault(item.original_id, []).append(item)
    return {
        name: sorted(group, key=lambda item: item.variant_number) for name, group in groups.items()
    }
