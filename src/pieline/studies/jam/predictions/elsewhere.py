"""Predictions made elsewhere for ID10M-JAM: the idioms of each sentence, or its BIO tags."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, model_validator

from pieline.core.elsewhere import ForeignRow, one_each, read_rows
from pieline.core.errors import UserError
from pieline.studies.jam.bio import Tag, span_text, spans_of
from pieline.studies.jam.predictions.records import IdiomPrediction
from pieline.studies.jam.records import JamSentence


def _split(separator: str | None) -> BeforeValidator:
    """A list from the text that a cell of a table holds."""

    def split(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        return [part for one in value.split(separator) if (part := one.strip())]

    return BeforeValidator(split)


class ForeignIdioms(ForeignRow):
    """What a system found in a sentence.

    Either the idioms as they stand there (in a table parted by semicolons; null is no answer), or
    one BIO tag a token (in a table parted by spaces).
    """

    idioms: Annotated[list[str] | None, _split(";")] = None
    tags: Annotated[list[Tag] | None, _split(None)] = None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if len(self.model_fields_set & {"idioms", "tags"}) != 1:
            raise ValueError("either idioms or tags")
        return self


def read_predictions(path: str | Path, sentences: Sequence[JamSentence]) -> list[IdiomPrediction]:
    """One prediction a sentence, in their order.

    Raises:
        UserError: ids are missing or unknown, or tags do not fit the tokens; names file and line.
    """
    rows = one_each(read_rows(path, ForeignIdioms), [one.id for one in sentences], where=path)
    return [
        _prediction(row, sentence, f"{path}:{line}")
        for (line, row), sentence in zip(rows, sentences, strict=True)
    ]


def _prediction(row: ForeignIdioms, sentence: JamSentence, where: str) -> IdiomPrediction:
    if row.tags is not None:
        try:
            spans = spans_of(row.tags)
        except ValueError as error:
            raise UserError(str(error), where=where, mend="correct the tags") from None
        if len(row.tags) != len(sentence.tokens):
            raise UserError(
                f"{len(row.tags)} tags for the {len(sentence.tokens)} tokens of {sentence.id}",
                where=where,
                mend="tag the tokens of the data set",
            )
        named = [span_text(sentence.tokens, span) for span in spans]
    elif row.idioms is None:
        return IdiomPrediction(id=sentence.id, outcome="empty", idioms=None)
    else:
        named = row.idioms
    tags = None if row.tags is None else tuple(row.tags)
    return IdiomPrediction(id=sentence.id, outcome="ok", idioms=tuple(named), tags=tags)
