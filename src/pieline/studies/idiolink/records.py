"""Texts of IdioLink: documents and queries."""

from typing import Literal, Self, get_args

from pydantic import model_validator

from pieline.core.records import Id, Record

Usage = Literal["literal", "idiomatic", "simplification", "sense"]
QueryUsage = Literal["literal", "idiomatic"]
QueryMode = Literal["sentence", "span", "instruction_sentence", "instruction_span"]
QUERY_MODES: tuple[QueryMode, ...] = get_args(QueryMode)


class Meaning(Record):
    """What scoring reads of a text: its PIE (canonical form), how it is used, and its domain."""

    id: Id
    pie: str
    subject: str
    usage: Usage


class JudgedMeaning(Meaning):
    """A line of meanings.jsonl: what a document or a query means, without its wording."""

    text: Literal["document", "query"]


class PieText(Meaning):
    """A text with a marked span that carries the meaning of a PIE (IdioLink, section 3.1).

    `span` is the words that carry it in `sentence`, `is_gold` whether a person checked it.
    """

    sentence: str
    span: str
    is_gold: bool

    @model_validator(mode="after")
    def _span_is_verbatim(self) -> Self:
        if not self.span or self.span not in self.sentence:
            raise ValueError(f"span {self.span!r} is not in its sentence")
        return self


class Document(PieText):
    """A document of the IdioLink index."""


class Query(PieText):
    """An IdioLink query: its PIE is used literally or idiomatically."""

    usage: QueryUsage


def query_scores_file(metrics: str) -> str:
    """The scores by query of a run, which stand beside its metric file."""
    return f"{metrics.removesuffix('.json')}.queries.csv"
