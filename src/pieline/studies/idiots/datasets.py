"""Read IdioTS in its released formats (a TSV, or a JSON array), and write its dataset."""

import re
from collections import Counter
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
"""Kinds of distractors; a lookup turns a text into the type `DistractorKind`."""
_HINT = "see data/sample/idiots/README.md"
_MIN_SHARE_WITH_IDIOM = 0.5
"""Minimum share of idiomatic sentences that contain the words of their idiom."""
MOST_MISPLACED = 0.05
"""Maximum share of sentences that contain the idiom of other sentences instead of their own."""
MOST_OTHER_IDS = 0.05
"""Maximum share of sentence ids that begin with another idiom id, if most begin with their own."""
_FEWEST = 2
"""Minimum number of sentences with the idiom of other sentences that are reported."""
OPENING = re.compile(r"^(?:to|don['’]t|do not)\s+", re.IGNORECASE)
"""Pattern of leading words in a canonical form that are not part of the PIE: the infinitive marker
"to" (section 3.1), and the negation in "don't quote me", because "quote me" also names this PIE.
"""


class _Released(BaseModel):
    """A row of the table, or an object in the array."""

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
    """Read the sentences of IdioTS in file order.

    Args:
        path: Path of the released file, which is read as a TSV if its name ends in .tsv.

    Raises:
        UserError: The file is not a JSON array or TSV; a record is invalid (the label is not the
            string "True" or "False" or contradicts the id, a field is missing or unknown); an id is
            repeated; or columns are inconsistent (two idioms with one id, most idioms with several
            ids, one text with both labels, sentences without their idiom or with another one, ids
            of other idioms, swapped or mixed languages, repeated or damaged texts).
    """
    if Path(path).suffix.lower() == ".tsv":
        rows = _table(path)
    else:
        rows = read_json(path)
        if not isinstance(rows, list) or not rows:
            raise UserError("not a JSON array of sentences", where=path, hint=_HINT)
    sentences = []
    for number, row in enumerate(rows, start=1):
        name = row.get("sentence_id", "?") if isinstance(row, dict) else "?"
        where = f"{path}: record {number} ({name})"
        released = validated(_Released, row, where=where, hint=_HINT)
        fields = {
            "id": released.sentence_id,
            "pie_id": released.idiom_id,
            "pie": released.idiom,
            "sentence": released.en,
            "translation": released.es,
            "is_idiomatic": released.sentence_has_idiom == "True",
        }
        sentences.append(validated(IdiotsSentence, fields, where=where, hint=_HINT))
    check_unique_ids([sentence.id for sentence in sentences], where=path)
    places = [
        f"{path}: record {number} ({sentence.id})"
        for number, sentence in enumerate(sentences, start=1)
    ]
    _check_labels_and_languages(sentences, places)
    _check_idiom_ids(sentences, path)
    _check_idioms_occur(sentences, places)
    _check_columns_belong_together(sentences, places)
    english = [(where, one.sentence) for where, one in zip(places, sentences, strict=True)]
    spanish = [(where, one.translation) for where, one in zip(places, sentences, strict=True)]
    check_texts(english)
    check_texts(spanish, repeated=False)
    check_language(english)
    kinds = [(one.id, one.sentence, (one.pie_id, one.is_idiomatic)) for one in sentences]
    warn_of_near_duplicates(kinds, path)
    return sentences


def _check_labels_and_languages(sentences: Sequence[IdiotsSentence], places: Sequence[str]) -> None:
    """Raise a `UserError` for an id with two idioms, a text with two labels or swapped languages.

    `places` are the places of the sentences, for error messages.
    """
    idioms: dict[str, str] = {}
    texts: dict[str, IdiotsSentence] = {}
    for where, sentence in zip(places, sentences, strict=True):
        first = idioms.setdefault(sentence.pie_id, sentence.pie)
        if first != sentence.pie and not matches_pie(sentence.pie, first, language="english"):
            pie, other = quote_both(sentence.pie, first)
            raise UserError(
                f"idiom {pie} has the id {sentence.pie_id} of {other}",
                where=where,
                hint="give each idiom its own id",
            )
        same = texts.setdefault(text_key(sentence.sentence), sentence)
        if same.is_idiomatic != sentence.is_idiomatic:
            raise UserError(
                f"same text as {same.id}, but a different label",
                where=where,
                hint="remove one of them",
            )
        if _is_rather(sentence.sentence, "spanish") and _is_rather(sentence.translation, "english"):
            raise UserError(
                "en is in Spanish and es in English", where=where, hint="swap the columns"
            )


def _check_idiom_ids(sentences: Sequence[IdiotsSentence], path: str | Path) -> None:
    """Raise a `UserError` if most idioms have several ids."""
    ids: dict[str, set[str]] = {}
    for sentence in sentences:
        ids.setdefault(normalize(sentence.pie), set()).add(sentence.pie_id)
    ambiguous = sum(len(ids_of_idiom) > 1 for ids_of_idiom in ids.values())
    if 2 * ambiguous > len(ids):
        raise UserError(
            "most idioms have several idiom_id values",
            where=path,
            hint="use one idiom_id for all sentences of an idiom",
        )


def _check_idioms_occur(sentences: Sequence[IdiotsSentence], places: Sequence[str]) -> None:
    """Raise a `UserError` if most idiomatic sentences do not contain their idiom."""
    idiomatic = sum(sentence.is_idiomatic for sentence in sentences)
    without_idiom = [
        where
        for where, sentence in zip(places, sentences, strict=True)
        if sentence.is_idiomatic and not _contains(sentence, sentence.pie)
    ]
    with_idiom = idiomatic - len(without_idiom)
    if with_idiom < _MIN_SHARE_WITH_IDIOM * idiomatic:
        raise UserError(
            f"only {with_idiom} of {idiomatic} idiomatic sentences contain their idiom",
            where=without_idiom[0],
            hint="check that the column idiom belongs to these sentences",
        )


def _check_columns_belong_together(
    sentences: Sequence[IdiotsSentence], places: Sequence[str]
) -> None:
    """Raise a `UserError` if many rows are implausible, as after a shift of some columns."""
    hint = "check that all columns of a row belong together"
    pies = {sentence.pie_id: sentence.pie for sentence in sentences}
    misplaced = []
    other_ids = []
    for where, sentence in zip(places, sentences, strict=True):
        contained = [name for name, pie in pies.items() if _contains(sentence, pie)]
        if contained and sentence.pie_id not in contained:
            misplaced.append((where, f"{sentence.sentence!r} for {sentence.pie!r}"))
        if not sentence.id.startswith(f"{sentence.pie_id}-"):
            other_ids.append((where, f"{sentence.id} for {sentence.pie_id}"))
    refuse_above(
        MOST_MISPLACED,
        misplaced,
        len(sentences),
        "sentences contain the idiom of other sentences instead of their own",
        fewest=_FEWEST,
        hint=hint,
    )
    if 2 * len(other_ids) < len(sentences):
        refuse_above(
            MOST_OTHER_IDS,
            other_ids,
            len(sentences),
            "sentence ids do not begin with their idiom_id",
            hint=hint,
        )


def _contains(sentence: IdiotsSentence, pie: str) -> bool:
    return contains_pie(sentence.sentence, OPENING.sub("", pie), language="english")


def _is_rather(text: str, language: Literal["english", "spanish"]) -> bool:
    """Return whether a text has more function words of this language than of the other."""
    other = "spanish" if language == "english" else "english"
    words = normalize(text).split()
    own_words = sum(word in get_language(language).stop_words for word in words)
    other_words = sum(word in get_language(other).stop_words for word in words)
    return own_words > other_words


def _table(path: str | Path) -> list[dict[str, str]]:
    """Return the rows of a TSV file; its fields may be quoted as in CSV."""
    try:
        rows = read_table(path, [], delimiter="\t", hint=_HINT)
    except UserError:
        rows = read_table(path, [], delimiter="\t", quoted=False, hint=_HINT)
    if not rows:
        raise UserError("no sentences", where=path, hint=_HINT)
    return [row for _, row in rows]


def mark_distractors(sentences: Iterable[IdiotsSentence], path: str | Path) -> list[IdiotsSentence]:
    """Set the kind of each distractor (section 3.3) that a CSV file (`sentence_id,kind`) lists.

    Raises:
        UserError: The columns are wrong, a kind is unknown, a sentence is repeated, or a sentence
            is not a distractor.
    """
    marked = {sentence.id: sentence for sentence in sentences}
    for line, row in read_table(path, ["sentence_id", "kind"], more=[], hint=_HINT):
        where, name, kind = f"{path}:{line}", row["sentence_id"], row["kind"]
        if kind not in KINDS:
            raise UserError(
                f"unknown kind {kind!r}", where=where, hint=f"use one of {', '.join(KINDS)}"
            )
        if name not in marked or marked[name].is_idiomatic:
            wrong = "is idiomatic" if name in marked else "is not in the data"
            raise UserError(
                f"sentence {name!r} {wrong}", where=where, hint="list only distractors in the data"
            )
        if marked[name].distractor_kind:
            raise UserError(
                f"sentence {name!r} occurs twice", where=where, hint="remove one of the lines"
            )
        marked[name] = marked[name].model_copy(update={"distractor_kind": KINDS[kind]})
    return list(marked.values())


Origin = Literal["sample", "released", "unverified", "own"]
"""Origin of the sentences: this repository's sample, the paper's file, a file of the same name that
could not be verified, or the user's own data.
"""


class IdiotsManifest(Verification):
    """Description of an IdioTS dataset."""

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
"""Counts of section 3."""


def save_dataset(
    folder: str | Path,
    sentences: Sequence[IdiotsSentence],
    *,
    origin: Origin,
    verification: Verification = NOT_VERIFIED,
    limit: int | None = None,
) -> None:
    """Write sentences.jsonl and manifest.json to a folder.

    `limit` is the number of sentences to write (None for all); the manifest describes all.
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
    """Return the first difference from the counts in the paper, or "" if they agree."""
    idiomatic = sum(sentence.is_idiomatic for sentence in sentences)
    idioms = len({sentence.pie_id for sentence in sentences})
    counts = (idioms, idiomatic, len(sentences) - idiomatic)
    for count, (kind, printed) in zip(counts, PRINTED_COUNTS.items(), strict=True):
        if count != printed:
            return f"{count} {kind}, the paper {printed}"
    return ""
