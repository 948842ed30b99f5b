"""Records of ID10M-JAM: originals, variants and input sentences."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from pieline.core.errors import UserError
from pieline.core.files import read_text
from pieline.core.records import Record, load_jsonl
from pieline.studies.jam.bio import Tag, spans_of

PRINTED_COUNTS = {"english": (178, 534), "german": (137, 411)}
"""Number of originals and variants in the paper by language (section 3.4)."""
DecidedBy = Literal["file", "release", "tags"]
"""Source of the decisions that filter ID10M: a decision file, the released originals, or ID10M's
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
"""Problem of a variant: a finding of `variants.validation.check_text`, or a missing review by the
validating model."""


class TaggedRecord(Record):
    """A sentence with its PIE and gold tags.

    Attributes:
        language: Language of the sentence.
        sentence: Concatenation of the tokens.
        tokens: Tokens with their trailing spaces.
        tags: BIO tags; all O if the PIE is used literally (section 3.1).
        pies: The PIE of the sentence, even if it is used literally; a list, as in the release.
        true_idioms: The PIE of a figurative sentence as the release spells it, for `released`
            scoring; empty for a literal sentence.
        is_figurative: Whether the PIE is used idiomatically.
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
            raise ValueError("the tokens do not add up to the sentence")
        if len(self.tags) != len(self.tokens):
            raise ValueError(f"{len(self.tags)} tags for {len(self.tokens)} tokens")
        if spans_of(self.tags) and not self.is_figurative:
            raise ValueError("a literal sentence has idiom tags")
        return self


class Original(TaggedRecord):
    """A sentence of ID10M's test split that passed filtering (section 3.2).

    Attributes:
        id: Split and position in the raw file, such as `test-0001`.
        was_fixed: Whether the text or the label was corrected.
    """

    id: str
    was_fixed: bool


class Variant(TaggedRecord):
    """A hard variant: an added context followed by the original sentence (section 3.3).

    Attributes:
        original_id: Id of the original.
        number: Number (from 1) of the variant among the original's variants.
        source: Source of the variant.
        model_verdict: Decision of the validating model; null if no model was used.
        flags: Problems of the variant.
        verdict: Human verdict; `unreviewed` if there is none.
        note: Remark of the annotator or of the validating model.
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
        """Return the id, such as `test-0001-v2`."""
        return f"{self.original_id}-v{self.number}"


class JamSentence(TaggedRecord):
    """An input sentence: an original or one of its variants.

    Attributes:
        id: Sentence id; equal to `original_id` for an original.
        original_id: Id of the original.
        variant_number: Variant number; 0 for the original.
    """

    id: str
    original_id: str
    variant_number: int = Field(ge=0)

    @property
    def is_original(self) -> bool:
        """Return whether this is an original."""
        return self.variant_number == 0


def as_sentence(item: Original | Variant) -> JamSentence:
    """Convert an original or a variant to an input sentence."""
    fields: dict[str, Any] = {name: getattr(item, name) for name in TaggedRecord.model_fields}
    fields |= {"id": item.id, "original_id": item.id, "variant_number": 0}
    if isinstance(item, Variant):
        fields |= {"original_id": item.original_id, "variant_number": item.number}
    return JamSentence(**fields)


def by_original(sentences: Iterable[JamSentence]) -> dict[str, list[JamSentence]]:
    """Group sentences by original id; each group starts with the original if it is present."""
    groups: dict[str, list[JamSentence]] = {}
    for item in sentences:
        groups.setdefault(item.original_id, []).append(item)
    return {
        name: sorted(group, key=lambda item: item.variant_number) for name, group in groups.items()
    }


def load_sentences(path: str | Path) -> list[JamSentence]:
    """Read input sentences from `results/datasets/jam/…` or `results/originals/jam/…`.

    Raises:
        UserError: The file is missing or empty, or a line is invalid; the message states the file
            and, for an invalid line, its number.
    """
    text = read_text(path)
    if not text.strip():
        raise UserError("the file has no sentences", where=path, hint="create it again")
    first_line = text.split("\n", 1)[0]
    if '"original_id"' in first_line:
        return load_jsonl(path, JamSentence)
    return [as_sentence(item) for item in load_jsonl(path, Original)]
