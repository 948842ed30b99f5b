"""Read the raw file of IdioTS (a TSV or a JSON array), and write the dataset."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator

from pieline.core.errors import UserError
from pieline.core.files import read_json, write_json
from pieline.core.measures import Measure
from pieline.core.records import Id, check_unique_ids, save_jsonl, validated
from pieline.core.tables import read_table
from pieline.core.texts import check_texts, quote_both, refuse_above, text_key
from pieline.core.upstream import NOT_VERIFIED, Verification
from pieline.languages.identification import check_language
from pieline.languages.matching import contains_pie, matches_pie
from pieline.languages.near_duplicates import warn_of_near_duplicates
from pieline.languages.registry import get_language
from pieline.languages.spelling import normalize
from pieline.studies.idiots.records import PRINTED_COUNTS, DistractorKind, IdiotsSentence

KINDS: dict[str, DistractorKind] = {kind: kind for kind in get_args(DistractorKind)}
"""Map each kind of distractor to itself, so that a lookup converts a string to the type."""
_HINT = "see data/sample/idiots/README.md"
_MIN_SHARE_WITH_IDIOM = 0.5
"""Minimum share of idiomatic sentences that contain the words of their idiom."""
MOST_MISPLACED = 0.05
"""Maximum share of sentences that contain the idiom of other sentences instead of their own."""
MOST_OTHER_IDS = 0.05
"""Maximum share of sentence ids that do not begin with the idiom id of their row.

The share is only checked if most sentence ids begin with the idiom id.
"""
_FEWEST = 2
"""Minimum number of sentences with the idiom of other sentences for which data is rejected."""
OPENING = re.compile(r"^(?:to|don['’]t|do not)\s+", re.IGNORECASE)
"""Pattern of leading words in a canonical form that are not part of the PIE.

These words are the infinitive marker "to" (section 3.1), and the negation in "don't quote me",
because "quote me" also names this PIE.
"""


class _RawRecord(BaseModel):
    """A record of the raw file: a row of a TSV, or an object in a JSON array."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    idiom_id: Id
    idiom: str = Field(min_length=1)
    sentence_id: Annotated[Id, Field(pattern=r"-(id|di)$")]
    # Literal strings, because bool("False") is true.
    sentence_has_idiom: Literal["True", "False"]
    en: str = Field(min_length=1)
    es: str
    idiom_detection_pattern: str = ""

    @model_validator(mode="after")
    def _label_agrees_with_id(self) -> Self:
        if (self.sentence_has_idiom == "True") != self.sentence_id.endswith("-id"):
            raise ValueError(
                f"sentence_has_idiom {self.sentence_has_idiom!r} contradicts the id's suffix"
            )
        return self


def read_sentences(path: str | Path) -> list[IdiotsSentence]:
    """Read the sentences of IdioTS in file order, and check that they are plausible.

    Args:
        path: Path of the raw file, which is read as a TSV if its name ends in .tsv.

    Raises:
        UserError: The file is not a JSON array or TSV; a record is invalid (the label is not the
            string "True" or "False" or contradicts the id, a field is missing or unknown); an id is
            repeated; or columns are inconsistent (two idioms with one id, most idioms with several
            ids, one text with both labels, sentences without their idiom or with another idiom, ids
            of other idioms, swapped or mixed languages, repeated or damaged texts).
    """
    sentences = _read_raw_file(path)
    check_unique_ids([sentence.id for sentence in sentences], where=path)
    places = [
        f"{path}: record {number} ({sentence.id})"
        for number, sentence in enumerate(sentences, start=1)
    ]
    _check_labels_and_languages(sentences, places)
    _check_idiom_ids(sentences, path)
    _check_idioms_occur(sentences, places)
    _check_columns_belong_together(sentences, places)
    english: list[tuple[str, str]] = []
    spanish: list[tuple[str, str]] = []
    texts_with_class: list[tuple[str, str, tuple[str, bool]]] = []
    for where, sentence in zip(places, sentences, strict=True):
        english.append((where, sentence.sentence))
        spanish.append((where, sentence.translation))
        text_class = (sentence.pie_id, sentence.is_idiomatic)
        texts_with_class.append((sentence.id, sentence.sentence, text_class))
    check_texts(english)
    check_texts(spanish, repeated=False)
    check_language(english)
    warn_of_near_duplicates(texts_with_class, path)
    return sentences


def _read_raw_file(path: str | Path) -> list[IdiotsSentence]:
    """Read the sentences of a TSV or a JSON array, and validate each record on its own.

    Raises:
        UserError: The file contains no sentences, or a record is invalid.
    """
    if Path(path).suffix.lower() == ".tsv":
        records = _read_tsv(path)
    else:
        records = read_json(path)
        if not isinstance(records, list) or not records:
            raise UserError("not a JSON array of sentences", where=path, hint=_HINT)
    sentences = []
    for number, record in enumerate(records, start=1):
        sentence_id = record.get("sentence_id", "?") if isinstance(record, dict) else "?"
        where = f"{path}: record {number} ({sentence_id})"
        raw = validated(_RawRecord, record, where=where, hint=_HINT)
        fields = {
            "id": raw.sentence_id,
            "pie_id": raw.idiom_id,
            "pie": raw.idiom,
            "sentence": raw.en,
            "translation": raw.es,
            "is_idiomatic": raw.sentence_has_idiom == "True",
        }
        sentences.append(validated(IdiotsSentence, fields, where=where, hint=_HINT))
    return sentences


def _check_labels_and_languages(sentences: Sequence[IdiotsSentence], places: Sequence[str]) -> None:
    """Raise a `UserError` if an id has two idioms, a text has two labels or languages are swapped.

    `places` contains the location of each sentence, for error messages.
    """
    idiom_by_id: dict[str, str] = {}
    sentence_by_text: dict[str, IdiotsSentence] = {}
    for where, sentence in zip(places, sentences, strict=True):
        idiom = sentence.pie
        first_idiom = idiom_by_id.setdefault(sentence.pie_id, idiom)
        if idiom != first_idiom and not matches_pie(idiom, first_idiom, language="english"):
            quoted_idiom, quoted_first_idiom = quote_both(idiom, first_idiom)
            raise UserError(
                f"idiom {quoted_idiom} has the id {sentence.pie_id} of {quoted_first_idiom}",
                where=where,
                hint="give each idiom its own id",
            )
        first_sentence = sentence_by_text.setdefault(text_key(sentence.sentence), sentence)
        if first_sentence.is_idiomatic != sentence.is_idiomatic:
            raise UserError(
                f"same text as {first_sentence.id}, but a different label",
                where=where,
                hint="remove one of them",
            )
        if _is_mostly(sentence.sentence, "spanish") and _is_mostly(sentence.translation, "english"):
            raise UserError(
                "en is in Spanish and es in English", where=where, hint="swap the columns"
            )


def _check_idiom_ids(sentences: Sequence[IdiotsSentence], path: str | Path) -> None:
    """Raise a `UserError` if most idioms have several ids."""
    ids_by_idiom: dict[str, set[str]] = defaultdict(set)
    for sentence in sentences:
        ids_by_idiom[normalize(sentence.pie)].add(sentence.pie_id)
    idioms_with_several_ids = sum(len(ids) > 1 for ids in ids_by_idiom.values())
    if idioms_with_several_ids > len(ids_by_idiom) / 2:
        raise UserError(
            "most idioms have several idiom_id values",
            where=path,
            hint="use one idiom_id for all sentences of an idiom",
        )


def _check_idioms_occur(sentences: Sequence[IdiotsSentence], places: Sequence[str]) -> None:
    """Raise a `UserError` if most idiomatic sentences do not contain their idiom."""
    number_of_idiomatic = 0
    number_with_idiom = 0
    places_without_idiom = []
    for where, sentence in zip(places, sentences, strict=True):
        if not sentence.is_idiomatic:
            continue
        number_of_idiomatic += 1
        if _contains(sentence, sentence.pie):
            number_with_idiom += 1
        else:
            places_without_idiom.append(where)
    if number_with_idiom < _MIN_SHARE_WITH_IDIOM * number_of_idiomatic:
        raise UserError(
            f"only {number_with_idiom} of {number_of_idiomatic} idiomatic sentences contain their"
            " idiom",
            where=places_without_idiom[0],
            hint="check that the column idiom belongs to these sentences",
        )


def _check_columns_belong_together(
    sentences: Sequence[IdiotsSentence], places: Sequence[str]
) -> None:
    """Raise a `UserError` if many rows combine columns of different sentences.

    The user may have sorted or shifted only some of the columns.
    """
    hint = "check that all columns of a row belong together"
    pie_by_id = {sentence.pie_id: sentence.pie for sentence in sentences}
    with_other_pie = []
    with_other_id = []
    for where, sentence in zip(places, sentences, strict=True):
        contained_ids = [pie_id for pie_id, pie in pie_by_id.items() if _contains(sentence, pie)]
        if contained_ids and sentence.pie_id not in contained_ids:
            with_other_pie.append((where, f"{sentence.sentence!r} for {sentence.pie!r}"))
        if not sentence.id.startswith(f"{sentence.pie_id}-"):
            with_other_id.append((where, f"{sentence.id} for {sentence.pie_id}"))
    refuse_above(
        MOST_MISPLACED,
        with_other_pie,
        len(sentences),
        "sentences contain the idiom of other sentences instead of their own",
        fewest=_FEWEST,
        hint=hint,
    )
    # In data of your own, sentence ids need not begin with the idiom id.
    most_ids_match = len(with_other_id) < len(sentences) / 2
    if most_ids_match:
        refuse_above(
            MOST_OTHER_IDS,
            with_other_id,
            len(sentences),
            "sentence ids do not begin with their idiom_id",
            hint=hint,
        )


def _contains(sentence: IdiotsSentence, pie: str) -> bool:
    """Return whether a sentence contains a PIE, given in canonical form."""
    return contains_pie(sentence.sentence, OPENING.sub("", pie), language="english")


def _is_mostly(text: str, language: Literal["english", "spanish"]) -> bool:
    """Return whether a text has more function words of `language` than of the other language."""
    other_language = "spanish" if language == "english" else "english"
    words = normalize(text).split()
    stop_words = sum(word in get_language(language).stop_words for word in words)
    other_stop_words = sum(word in get_language(other_language).stop_words for word in words)
    return stop_words > other_stop_words


def _read_tsv(path: str | Path) -> list[dict[str, str]]:
    """Read the rows of a TSV file; the fields may be quoted as in a CSV file.

    Raises:
        UserError: The file has no rows, or it cannot be read.
    """
    try:
        numbered_rows = read_table(path, [], delimiter="\t", hint=_HINT)
    except UserError:
        # In a file without quoted fields, a single quotation mark is part of the text.
        numbered_rows = read_table(path, [], delimiter="\t", quoted=False, hint=_HINT)
    if not numbered_rows:
        raise UserError("no sentences", where=path, hint=_HINT)
    return [row for _, row in numbered_rows]


def mark_distractors(sentences: Iterable[IdiotsSentence], path: str | Path) -> list[IdiotsSentence]:
    """Return all sentences, with `distractor_kind` (section 3.3) set as listed in a file.

    Args:
        sentences: Sentences whose `distractor_kind` is not set.
        path: Path of a CSV file with the columns `sentence_id` and `kind`.

    Raises:
        UserError: The columns are wrong, a kind is unknown, a sentence is repeated, or a sentence
            is not a distractor.
    """
    sentence_by_id = {sentence.id: sentence for sentence in sentences}
    for line_number, row in read_table(path, ["sentence_id", "kind"], more=[], hint=_HINT):
        where = f"{path}:{line_number}"
        sentence_id, kind = row["sentence_id"], row["kind"]
        if kind not in KINDS:
            raise UserError(
                f"unknown kind {kind!r}", where=where, hint=f"use one of {', '.join(KINDS)}"
            )
        sentence = sentence_by_id.get(sentence_id)
        if sentence is None or sentence.is_idiomatic:
            problem = "is not in the data" if sentence is None else "is idiomatic"
            raise UserError(
                f"sentence {sentence_id!r} {problem}",
                where=where,
                hint="list only distractors in the data",
            )
        if sentence.distractor_kind:
            raise UserError(
                f"sentence {sentence_id!r} occurs twice",
                where=where,
                hint="remove one of the lines",
            )
        sentence_by_id[sentence_id] = sentence.model_copy(update={"distractor_kind": KINDS[kind]})
    return list(sentence_by_id.values())


Origin = Literal["sample", "released", "unverified", "own"]
"""Origin of the sentences.

The sentences are this repository's sample, the verified public data ("released"), a file with the
name of the public data that could not be verified, or the user's own data.
"""


class IdiotsManifest(Verification):
    """Manifest of an IdioTS dataset: its origin, and its numbers of sentences and PIEs."""

    origin: Origin
    sentences: int
    idiomatic: int
    distractors: int
    distractors_by_kind: dict[str, int]
    pies: int


COUNTS = (
    Measure[IdiotsManifest]("idioms", lambda manifest: manifest.pies, decimals=0),
    Measure[IdiotsManifest]("sentences", lambda manifest: manifest.sentences, decimals=0),
    Measure[IdiotsManifest]("idiomatic", lambda manifest: manifest.idiomatic, decimals=0),
    Measure[IdiotsManifest]("distractors", lambda manifest: manifest.distractors, decimals=0),
)
"""Measures of the counts that section 3 reports."""


def save_dataset(
    folder: str | Path,
    sentences: Sequence[IdiotsSentence],
    *,
    origin: Origin,
    verification: Verification = NOT_VERIFIED,
    limit: int | None = None,
) -> None:
    """Write sentences.jsonl and manifest.json to a folder.

    Args:
        folder: Folder of the dataset.
        sentences: All sentences; the manifest counts all of them, even if `limit` is set.
        origin: Origin of the sentences.
        verification: Result of comparing the raw file with the public data.
        limit: Number of sentences to write; None for all.
    """
    idiomatic = sum(sentence.is_idiomatic for sentence in sentences)
    kinds = Counter(sentence.distractor_kind for sentence in sentences if sentence.distractor_kind)
    manifest = IdiotsManifest(
        **verification.model_dump(),
        origin=origin,
        sentences=len(sentences),
        idiomatic=idiomatic,
        distractors=len(sentences) - idiomatic,
        distractors_by_kind=dict(kinds),
        pies=len({sentence.pie_id for sentence in sentences}),
    )
    save_jsonl(Path(folder, "sentences.jsonl"), sentences[:limit])
    write_json(Path(folder, "manifest.json"), manifest.model_dump())


def count_problem(sentences: Sequence[IdiotsSentence]) -> str:
    """Describe the first count that differs from the paper; "" if all counts agree."""
    idiomatic = sum(sentence.is_idiomatic for sentence in sentences)
    counts = {
        "idioms": len({sentence.pie_id for sentence in sentences}),
        "idiomatic sentences": idiomatic,
        "distractors": len(sentences) - idiomatic,
    }
    for name, printed_count in PRINTED_COUNTS.items():
        if counts[name] != printed_count:
            return f"{counts[name]} {name}, the paper {printed_count}"
    return ""
