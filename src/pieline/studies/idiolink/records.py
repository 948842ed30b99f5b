"""Records of IdioLink's documents and queries."""

from typing import Literal, Self, get_args

from pydantic import model_validator

from pieline.core.records import Id, Record

Usage = Literal["literal", "idiomatic", "simplification", "sense"]
QueryUsage = Literal["literal", "idiomatic"]
QueryMode = Literal["sentence", "span", "instruction_sentence", "instruction_span"]
QUERY_MODES: tuple[QueryMode, ...] = get_args(QueryMode)
SOFT_NEGATIVES = 3
HARD_NEGATIVES = 2
"""Negatives per training tuple (Table 3); released tuples have the same numbers."""


class Meaning(Record):
    """Fields of a text that scoring reads; `pie` is the canonical form, `subject` the domain."""

    id: Id
    pie: str
    subject: str
    usage: Usage


class JudgedMeaning(Meaning):
    """A line of meanings.jsonl, which describes a document or query without its wording."""

    text: Literal["document", "query"]


class PieText(Meaning):
    """A text with a marked span that carries the meaning of a PIE (IdioLink, section 3.1).

    Attributes:
        sentence: The text.
        span: Words in `sentence` that carry the meaning of the PIE.
        is_gold: Whether a human annotator checked the text.
    """

    sentence: str
    span: str
    is_gold: bool

    @model_validator(mode="after")
    def _span_is_verbatim(self) -> Self:
        if not self.span or self.span not in self.sentence:
            # Escaped, because a span in other Unicode characters may look the same.
            raise ValueError(f"span {self.span!a} is not in its sentence {self.sentence!a}")
        return self


class Document(PieText):
    """A document of an IdioLink index."""


class Query(PieText):
    """An IdioLink query, which uses its PIE literally or idiomatically."""

    usage: QueryUsage


def query_scores_file(metrics: str) -> str:
    """Return the path of the per-query scores that belong to a metric file."""
    return f"{metrics.removesuffix('.json')}.queries.csv"
