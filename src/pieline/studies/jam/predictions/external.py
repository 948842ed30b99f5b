"""Read external predictions for ID10M-JAM: idioms or BIO tags of each sentence."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, model_validator

from pieline.core.errors import UserError
from pieline.core.external import ExternalRow, align_rows, read_rows
from pieline.core.texts import fits_better
from pieline.languages.denial import is_none_answer
from pieline.languages.matching import occurs_in
from pieline.languages.spelling import normalize
from pieline.llm.parsing import json_at
from pieline.models.predictions import check_named_idioms
from pieline.studies.jam.bio import OUTSIDE, Tag, span_text, spans_of
from pieline.studies.jam.predictions.records import IdiomPrediction
from pieline.studies.jam.records import JamSentence

_BRACKETED = re.compile(r"\s*(?:\[.*\]|\{.*\}|\(.*\))\s*", re.DOTALL)
_SEPARATE = "separate idioms by semicolons and tags by spaces"


def _split(value: Any, *, separator: str | None) -> Any:
    """Split a table cell into a list and drop blank items.

    A cell may also contain a list in JSON or Python, which is how pandas writes lists. Values that
    are not texts or lists of texts are unchanged, so that the field's type rejects them.
    """
    items = value
    if isinstance(value, str):
        items = (
            _parse_list(value.strip()) if _BRACKETED.fullmatch(value) else value.split(separator)
        )
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        return items
    for item in items:
        if _BRACKETED.fullmatch(item):
            raise ValueError(f"{item!r} is not a valid list item; {_SEPARATE}")
    return [part for item in items if (part := item.strip())]


def _parse_list(text: str) -> list[str]:
    """Parse a list of texts in JSON or Python.

    Raises:
        ValueError: The text is not a list of texts.
    """
    piece = json_at(text, 0)
    items = piece.value if piece.end == len(text) and re.match(r"\[\s*[\"'\]]", text) else None
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        raise ValueError(f"{text!r} is not a list of texts; {_SEPARATE}")
    return items


class ExternalIdioms(ExternalRow):
    """External prediction for one sentence: either `idioms` or `tags`.

    Attributes:
        idioms: Idioms as spelled in the sentence; null means no answer. In a table, they are
            separated by semicolons or written as a list.
        tags: One BIO tag per token; in a table, separated by spaces.
    """

    idioms: Annotated[list[str] | None, BeforeValidator(partial(_split, separator=";"))] = None
    tags: Annotated[list[Tag] | None, BeforeValidator(partial(_split, separator=None))] = None

    @model_validator(mode="after")
    def _has_one_field(self) -> Self:
        if len(self.model_fields_set & {"idioms", "tags"}) != 1:
            raise ValueError("exactly one of idioms and tags is required")
        return self


def read_predictions(path: str | Path, sentences: Sequence[JamSentence]) -> list[IdiomPrediction]:
    """Read one prediction per sentence, in the order of the sentences.

    Raises:
        UserError: Ids are missing or unknown; no row has an answer; tags do not fit the tokens or
            are shifted; an idiom is a word such as "none"; most idioms are complete sentences; or
            many idioms are not in their sentences. The message states the file and, if known, the
            line.
    """
    texts = {one.id: one.sentence for one in sentences}
    rows = align_rows(read_rows(path, ExternalIdioms), texts, where=path)
    placed = [
        _PlacedRow(row, sentence, f"{path}:{line}")
        for (line, row), sentence in zip(rows, sentences, strict=True)
    ]
    if all(each.row.tags is None and each.row.idioms is None for each in placed):
        raise UserError(
            "idioms is null in every row", where=path, hint="write an empty list for no idiom"
        )
    _check_idioms(placed, path)
    _check_tags(placed, path)
    return [_prediction(each.row, each.sentence, each.where) for each in placed]


@dataclass(frozen=True)
class _PlacedRow:
    """A row with its sentence, and its file and line for error messages."""

    row: ExternalIdioms
    sentence: JamSentence
    where: str


def _check_idioms(placed: Sequence[_PlacedRow], path: str | Path) -> None:
    """Raise a `UserError` for implausible idioms.

    An idiom must not be a word such as "none", most idioms must not be complete sentences, and
    almost all idioms must be in their sentences.
    """
    total = 0
    absent, full_sentences = [], []
    for each in placed:
        sentence = each.sentence
        for idiom in each.row.idioms or ():
            if is_none_answer(idiom):
                raise UserError(
                    f"{idiom!r} is not an idiom",
                    where=each.where,
                    hint="leave the list or cell empty, or write null if there is no answer",
                )
            total += 1
            if normalize(idiom) == normalize(sentence.sentence):
                full_sentences.append(each.where)
            if not occurs_in(idiom, sentence.sentence, language=sentence.language):
                example = f"{idiom!r} in {sentence.sentence!r} ({sentence.id})"
                absent.append((each.where, example))
    if 2 * len(full_sentences) > total:
        raise UserError(
            f"{len(full_sentences)} of {total} idioms are complete sentences",
            where=full_sentences[0],
            hint="write only the words of the idiom",
        )
    check_named_idioms(absent, total)


def _check_tags(placed: Sequence[_PlacedRow], path: str | Path) -> None:
    """Raise a `UserError` if more tags fit after a shift by one token, as with a [CLS] token."""
    fits, fits_shifted_left, fits_shifted_right = [], [], []
    for each in placed:
        tags, gold = each.row.tags, list(each.sentence.tags)
        if tags is not None and len(tags) == len(gold):
            fits.append(tags == gold)
            fits_shifted_left.append([*tags[1:], OUTSIDE] == gold)
            fits_shifted_right.append([OUTSIDE, *tags[:-1]] == gold)
    for shifted in (fits_shifted_left, fits_shifted_right):
        if fits_better(shifted, fits):
            raise UserError(
                f"shifted by one token, the tags of {sum(shifted)} of {len(fits)} sentences are"
                f" correct, but as they are, only of {sum(fits)}",
                where=path,
                hint="write one tag per token, without special tokens such as [CLS]",
            )


def _prediction(row: ExternalIdioms, sentence: JamSentence, where: str) -> IdiomPrediction:
    if row.tags is not None:
        idioms = tuple(_tagged_idioms(row.tags, sentence, where))
        return IdiomPrediction(id=sentence.id, outcome="ok", idioms=idioms, tags=tuple(row.tags))
    if row.idioms is None:
        return IdiomPrediction(id=sentence.id, outcome="empty", idioms=None)
    return IdiomPrediction(id=sentence.id, outcome="ok", idioms=tuple(row.idioms))


def _tagged_idioms(tags: Sequence[Tag], sentence: JamSentence, where: str) -> list[str]:
    """Return the tagged idioms.

    Raises:
        UserError: The tags are invalid, or their number differs from that of the tokens.
    """
    try:
        spans = spans_of(tags)
    except ValueError as error:
        raise UserError(str(error), where=where, hint="correct the tags") from None
    if len(tags) != len(sentence.tokens):
        raise UserError(
            f"{len(tags)} tags for the {len(sentence.tokens)} tokens of {sentence.id}",
            where=where,
            hint="write one tag per token of the dataset",
        )
    return [span_text(sentence.tokens, span) for span in spans]
