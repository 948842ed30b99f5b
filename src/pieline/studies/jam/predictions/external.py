"""Read external predictions for ID10M-JAM: the idioms or the BIO tags of each sentence."""

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
_LIST_OF_TEXTS_START = re.compile(r"\[\s*[\"'\]]")
"""Beginning of a list whose first item is quoted, or of an empty list."""
_HINT = "separate idioms by semicolons and tags by spaces"


def _split_cell(cell: Any, *, separator: str | None) -> Any:
    """Return the nonblank texts in a table cell.

    A cell is split at the separator (None: white space), unless the cell is a list in the notation
    of JSON or of Python, which pandas writes. A value that is neither a text nor a list of texts is
    returned unchanged, so that the field's type rejects the value.
    """
    if not isinstance(cell, str):
        value = cell
    elif _BRACKETED.fullmatch(cell):
        value = _parse_list(cell.strip())
    else:
        value = cell.split(separator)
    if not _is_list_of_texts(value):
        return value
    for text in value:
        if _BRACKETED.fullmatch(text):
            raise ValueError(f"{text!r} is not a valid list item; {_HINT}")
    return [text.strip() for text in value if text.strip()]


def _parse_list(text: str) -> list[str]:
    """Parse a list of texts in the notation of JSON or Python.

    Raises:
        ValueError: The text is not a list of texts.
    """
    parsed = json_at(text, 0)
    is_complete = parsed.end == len(text)
    # The parser also accepts texts without quotes.
    is_quoted_or_empty = _LIST_OF_TEXTS_START.match(text)
    if not (is_complete and is_quoted_or_empty and _is_list_of_texts(parsed.value)):
        raise ValueError(f"{text!r} is not a list of texts; {_HINT}")
    texts: list[str] = parsed.value
    return texts


def _is_list_of_texts(value: Any) -> bool:
    """Return whether a value is a list that contains only texts."""
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


class ExternalIdioms(ExternalRow):
    """External prediction for one sentence, with either `idioms` or `tags`.

    Attributes:
        idioms: Idioms as spelled in the sentence; null means no answer. In a table, idioms are
            separated by semicolons or written as a list.
        tags: One BIO tag per token. In a table, tags are separated by spaces.
    """

    idioms: Annotated[list[str] | None, BeforeValidator(partial(_split_cell, separator=";"))] = None
    tags: Annotated[list[Tag] | None, BeforeValidator(partial(_split_cell, separator=None))] = None

    @model_validator(mode="after")
    def _has_one_field(self) -> Self:
        if len(self.model_fields_set & {"idioms", "tags"}) != 1:
            raise ValueError("exactly one of idioms and tags is required")
        return self


def read_predictions(path: str | Path, sentences: Sequence[JamSentence]) -> list[IdiomPrediction]:
    """Read external predictions, one per sentence, in the order of the sentences.

    Raises:
        UserError: Sentence ids are missing or unknown; no row has an answer; tags do not fit the
            tokens or are shifted; an idiom is a word such as "none"; most idioms are complete
            sentences; or many idioms are not in their sentences. The message states the file and,
            if known, the line.
    """
    texts = {sentence.id: sentence.sentence for sentence in sentences}
    aligned_rows = align_rows(read_rows(path, ExternalIdioms), texts, where=path)
    answers = []
    for (line, row), sentence in zip(aligned_rows, sentences, strict=True):
        answers.append(_ExternalAnswer(sentence, row.idioms, row.tags, where=f"{path}:{line}"))
    if all(answer.idioms is None and answer.tags is None for answer in answers):
        raise UserError(
            "idioms is null in every row", where=path, hint="write an empty list for no idiom"
        )
    _check_idioms(answers)
    _check_tags(answers, path)
    return [_to_prediction(answer) for answer in answers]


@dataclass(frozen=True)
class _ExternalAnswer:
    """External idioms or tags of a sentence.

    `where` is the file and line of the idioms or tags, for error messages.
    """

    sentence: JamSentence
    idioms: list[str] | None
    tags: list[Tag] | None
    where: str


def _check_idioms(answers: Sequence[_ExternalAnswer]) -> None:
    """Raise a `UserError` for implausible idioms.

    An idiom must not be a word such as "none". Most idioms must not be complete sentences, and
    almost all idioms must be in their sentences.
    """
    idiom_count = 0
    lines_with_full_sentence = []
    absent_idioms = []
    for answer in answers:
        sentence = answer.sentence
        for idiom in answer.idioms or ():
            if is_none_answer(idiom):
                raise UserError(
                    f"{idiom!r} is not an idiom",
                    where=answer.where,
                    hint="leave the list or cell empty, or write null if there is no answer",
                )
            idiom_count += 1
            if normalize(idiom) == normalize(sentence.sentence):
                lines_with_full_sentence.append(answer.where)
            if not occurs_in(idiom, sentence.sentence, language=sentence.language):
                example = f"{idiom!r} in {sentence.sentence!r} ({sentence.id})"
                absent_idioms.append((answer.where, example))
    if len(lines_with_full_sentence) > idiom_count / 2:
        raise UserError(
            f"{len(lines_with_full_sentence)} of {idiom_count} idioms are complete sentences",
            where=lines_with_full_sentence[0],
            hint="write only the words of the idiom",
        )
    check_named_idioms(absent_idioms, idiom_count)


def _check_tags(answers: Sequence[_ExternalAnswer], path: str | Path) -> None:
    """Raise a `UserError` if shifting all tags by one token makes clearly more sentences correct.

    A likely cause is an additional tag for a special token such as [CLS].
    """
    fits = []
    fits_shifted_left = []
    fits_shifted_right = []
    for answer in answers:
        tags, gold_tags = answer.tags, list(answer.sentence.tags)
        if tags is not None and len(tags) == len(gold_tags):
            fits.append(tags == gold_tags)
            fits_shifted_left.append([*tags[1:], OUTSIDE] == gold_tags)
            fits_shifted_right.append([OUTSIDE, *tags[:-1]] == gold_tags)
    for fits_shifted in (fits_shifted_left, fits_shifted_right):
        if fits_better(fits_shifted, fits):
            raise UserError(
                f"shifted by one token, the tags of {sum(fits_shifted)} of {len(fits)} sentences"
                f" are correct, but as they are, only of {sum(fits)}",
                where=path,
                hint="write one tag per token, without special tokens such as [CLS]",
            )


def _to_prediction(answer: _ExternalAnswer) -> IdiomPrediction:
    """Convert external idioms or tags to a prediction."""
    sentence, tags = answer.sentence, answer.tags
    if tags is not None:
        idioms = tuple(_tagged_idioms(tags, sentence, answer.where))
        return IdiomPrediction(id=sentence.id, outcome="ok", idioms=idioms, tags=tuple(tags))
    if answer.idioms is None:
        return IdiomPrediction(id=sentence.id, outcome="empty", idioms=None)
    return IdiomPrediction(id=sentence.id, outcome="ok", idioms=tuple(answer.idioms))


def _tagged_idioms(tags: Sequence[Tag], sentence: JamSentence, where: str) -> list[str]:
    """Return the texts of the tagged idioms in a sentence.

    `where` is the location of the tags, for error messages.

    Raises:
        UserError: The tags are invalid, or the number of tags is not the number of tokens.
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
