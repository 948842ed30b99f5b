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
_HINT = "see data/sample/idiots/README.md"
_MIN_SHARE_WITH_IDIOM = 0.5
"""Minimum share of idiomatic sentences that contain the words of their idiom."""
MOST_MISPLACED = 0.05
"""Maximum share of sentences that contain the idiom of other sentences instead of their own."""
MOST_OTHER_IDS = 0.05
"""Maximum share of sentence ids that begin with another idiom id, if most begin with their own."""
_FEWEST = 2
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
    _check_columns(sentences, path)
    return sentences


def _check_columns(sentences: Sequence[IdiotsSentence], path: str | Path) -> None:
    """Raise a `UserError` for inconsistent columns."""
    idioms: dict[str, str] = {}
    ids: dict[str, set[str]] = {}
    texts: dict[str, IdiotsSentence] = {}
    missing = []
    for number, sentence in enumerate(sentences, start=1):
        where = f"{path}: record {number} ({sentence.id})"
        first = idioms.setdefault(sentence.pie_id, sentence.pie)
        if first != sentence.pie and not matches_pie(sentence.pie, first, language="english"):
            pie, other = quote_both(sentence.pie, first)
            raise UserError(
                f"idiom {pie} has the id {sentence.pie_id} of {other}",
                where=where,
                hint="give each idiom its own id",
            )
        ids.setdefault(normalize(sentence.pie), set()).add(sentence.pie_id)
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
        pie = OPENING.sub("", sentence.pie)
        if sentence.is_idiomatic and not contains_pie(sentence.sentence, pie, language="english"):
            missing.append(where)
    if 2 * sum(len(of_one) > 1 for of_one in ids.values()) > len(ids):
        raise UserError(
            "most idioms have several idiom_id values",
            where=path,
            hint="use one idiom_id for all sentences of an idiom",
        )
    idiomatic = sum(sentence.is_idiomatic for sentence in sentences)
    if idiomatic - len(missing) < _MIN_SHARE_WITH_IDIOM * idiomatic:
        raise UserError(
            f"only {idiomatic - len(missing)} of {idiomatic} idiomatic sentences contain their"
            " idiom",
            where=missing[0],
            hint="check that the column idiom belongs to these sentences",
        )
    _check_rows(sentences, path)


def _check_rows(sentences: Sequence[IdiotsSentence], path: str | Path) -> None:
    """Raise a `UserError` if many rows are implausible, as after a shift of some columns."""
    places = [
        f"{path}: record {number} ({sentence.id})"
        for number, sentence in enumerate(sentences, start=1)
    ]
    pies = {sentence.pie_id: OPENING.sub("", sentence.pie) for sentence in sentences}
    contained = [
        {
            name
            for name, pie in pies.items()
            if contains_pie(sentence.sentence, pie, language="english")
        }
        for sentence in sentences
    ]
    refuse_above(
        MOST_MISPLACED,
        [
            (where, f"{sentence.sentence!r} for {sentence.pie!r}")
            for where, sentence, names in zip(places, sentences, contained, strict=True)
            if names and sentence.pie_id not in names
        ],
        len(sentences),
        "sentences contain the idiom of other sentences instead of their own",
        fewest=_FEWEST,
        hint="check that all columns of a row belong together",
    )
    others = [
        (where, f"{sentence.id} for {sentence.pie_id}")
        for where, sentence in zip(places, sentences, strict=True)
        if not sentence.id.startswith(f"{sentence.pie_id}-")
    ]
    if 2 * len(others) < len(sentences):
        refuse_above(
            MOST_OTHER_IDS,
            others,
            len(sentences),
            "sentence ids do not begin with their idiom_id",
            hint="check that all columns of a row belong together",
        )
    check_texts([*zip(places, (sentence.sentence for sentence in sentences), strict=True)])
    translations = (sentence.translation for sentence in sentences)
    check_texts([*zip(places, translations, strict=True)], repeated=False)
    check_language([*zip(places, (sentence.sentence for sentence in sentences), strict=True)])
    kinds = [(one.id, one.sentence, (one.pie_id, one.is_idiomatic)) for one in sentences]
    warn_of_near_duplicates(kinds, path)


def _is_rather(text: str, language: Literal["english", "spanish"]) -> bool:
    """Return whether a text has more function words of this language than of the other."""
    other = "spanish" if language == "english" else "english"
    words = normalize(text).split()
    counts = [
        sum(word in get_language(name).stop_words for word in words) for name in (language, other)
    ]
    return counts[0] > counts[1]


def _table(path: str | Path) -> list[dict[str, str]]:
    """Return the rows of a TSV, whose fields may be quoted as in CSV."""
    try:
        rows = read_table(path, [], delimiter="\t", hint=_HINT)
    except UserError:
        rows = read_table(path, [], delimiter="\t", quoted=False, hint=_HINT)
    if not rows:
        raise UserError("no sentences", where=path, hint=_HINT)
    return [row for _, row in rows]


def mark_distractors(sentences: Iterable[IdiotsSentence], path: str | Path) -> list[IdiotsSentence]:
    """Return the sentences with kinds of distractors (section 3.3) from a CSV (`sentence_id,kind`).

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
