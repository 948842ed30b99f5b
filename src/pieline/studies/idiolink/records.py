"""Texts of IdioLink: documents and queries."""

from typing import Literal, Self, get_args

from pydantic import model_validator

from pieline.core.records import Id, Record

Usage = Literal["literal", "idiomatic", "simplification", "sense"]
QueryUsage = Literal["literal", "idiomatic"]
QueryMode = Literal["sentence", "span", "instruction_sentence", "instruction_span"]
QUERY_MODES: tuple[QueryMode, ...] = get_args(QueryMode)


class PieText(Record):
    """A text with a marked span that carries the meaning of a PIE (IdioLink, section 3.1).

    `pie` is the canonical form, `span` the words that carry its meaning in `sentence`, `subject`
    the domain, `is_gold` whether a person checked it.
    """

    id: Id
    sentence: str
    pie: str
    span: str
    subject: str
    is_gold: bool

    @model_validator(mode="after")
    def _span_is_verbatim(self) -> Self:
        if not self.span or self.span not in self.sentence:
            raise ValueError(f"span {self.span!r} is not in its sentence")
        return self


class Document(PieText):
    """A document of the IdioLink index."""

    usage: Usage


class Query(PieText):
    """An IdioLink query: its PIE is used literally or idiomatically."""

    usage: QueryUsage


def query_scores_file(metrics: str) -> str:
    """The scores by query of a run, which stand beside its metric file."""
    return f"{metrics.removesuffix('.json')}.queries.csv"
