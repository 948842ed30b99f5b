"""Define the records of ID10M-JAM: originals, variants and the sentences of a dataset."""

from collections.abc import Iterable
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from pieline.core.errors import UserError
from pieline.core.files import read_text
from pieline.core.records import Record, load_jsonl
from pieline.studies.jam.bio import Tag, spans_of

PRINTED_COUNTS = {"english": (178, 534), "german": (137, 411)}
"""Numbers of originals and variants in the paper, by language (section 3.4)."""
DecidedBy = Literal["file", "release", "tags"]
"""Source of the decisions that filter ID10M: a decision file, the public originals, or ID10M's tags
alone."""
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
"""Problem of a variant: a problem found by `variants.validation.check_text`, or a missing review by
the validating model."""


class TaggedRecord(Record):
    """A sentence with its PIE and gold tags.

    Attributes:
        language: Language of the sentence.
        sentence: Concatenation of the tokens.
        tokens: Tokens with their trailing spaces.
        tags: BIO tags; all O if the PIE is used literally (section 3.1).
        pies: The PIE of a figurative or literal sentence; a list, as in the public data.
        true_idioms: The PIE of a figurative sentence as spelled in the public data, for the scoring
            rule `released`; empty for a literal sentence.
        is_figurative: Whether the PIE is used figuratively.
    """

    language: str
    sentence: str = Field(min_length=1)
    tokens: tuple[str, ...]
    tags: tuple[Tag, ...]
    pies: tuple[str, ...] = Field(min_length=1)
    true_idioms: tuple[str, ...]
    is_figurative: bool

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        """Raise a `ValueError` if tokens, tags, usage and text contradict each other."""
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
        number: Number (from 1) of the variant among the variants of the original.
        source: Source of the variant.
        model_verdict: Verdict of the validating model; null if no model was used.
        flags: Problems of the variant.
        verdict: Human verdict; `unreviewed` without a human verdict.
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
        """Return the id of the variant, such as `test-0001-v2`."""
        return f"{self.original_id}-v{self.number}"


class JamSentence(TaggedRecord):
    """A sentence to judge: an original or a variant.

    Attributes:
        id: Sentence id; equal to `original_id` for an original.
        original_id: Id of the original.
        variant_number: Number (from 1) of the variant; 0 for an original.
    """

    id: str
    original_id: str
    variant_number: int = Field(ge=0)

    @property
    def is_original(self) -> bool:
        """Return whether the sentence is an original."""
        return self.variant_number == 0


def as_sentence(record: Original | Variant) -> JamSentence:
    """Convert an original or a variant to a sentence of the dataset."""
    if isinstance(record, Variant):
        original_id, variant_number = record.original_id, record.number
    else:
        original_id, variant_number = record.id, 0
    shared_fields = {name: getattr(record, name) for name in TaggedRecord.model_fields}
    return JamSentence(
        id=record.id, original_id=original_id, variant_number=variant_number, **shared_fields
    )


def by_original(sentences: Iterable[JamSentence]) -> dict[str, list[JamSentence]]:
    """Group sentences by the id of their original, and sort each group by variant number.

    The original, which has the variant number 0, is the first of its group.
    """
    groups: dict[str, list[JamSentence]] = {}
    for sentence in sentences:
        groups.setdefault(sentence.original_id, []).append(sentence)
    for group in groups.values():
        group.sort(key=lambda sentence: sentence.variant_number)
    return groups


def load_sentences(path: str | Path) -> list[JamSentence]:
    """Read the sentences of a dataset, or read originals and convert them to sentences.

    `path` is a file in `results/datasets/jam/` or `results/originals/jam/`.

    Raises:
        UserError: The file is missing or empty, or a line is invalid. The message states the file
            and, for an invalid line, the number of the line.
    """
    content = read_text(path)
    if not content.strip():
        raise UserError("the file has no sentences", where=path, hint="create it again")
    first_line = content.partition("\n")[0]
    is_dataset = '"original_id"' in first_line
    if is_dataset:
        return load_jsonl(path, JamSentence)
    return [as_sentence(original) for original in load_jsonl(path, Original)]
