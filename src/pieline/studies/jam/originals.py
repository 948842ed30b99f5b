"""Filter ID10M's test sentences by recorded decisions to get the originals of ID10M-JAM.

Each row of a decision file states whether to keep, drop or fix one raw sentence (section 3.2), and
names the PIE, because literal sentences have no tags that identify it. Without a decision file,
decisions are derived from the raw file and the released originals; for languages without a release,
they are derived from ID10M's tags alone.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from rapidfuzz import fuzz

from pieline.core.errors import UserError
from pieline.core.files import canonical_json, parse_json, read_json, write_text
from pieline.core.records import Id, Record, check_unique_ids, explain, validated
from pieline.core.tables import read_table
from pieline.languages.identification import is_in_language
from pieline.languages.matching import contains_pie, shortest_match
from pieline.languages.near_duplicates import warn_of_near_duplicates
from pieline.languages.registry import get_language, language_codes
from pieline.languages.spelling import normalize
from pieline.studies.jam.bio import Tag, spans_of
from pieline.studies.jam.raw.checks import check_sentences
from pieline.studies.jam.raw.id10m import TaggedSentence
from pieline.studies.jam.records import Original


class ReleasedRow(BaseModel):
    """A row of the released originals, `id10m_fixed/<language>.json`."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    sentence: str
    PIE: tuple[str, ...]
    true_idioms: tuple[str, ...]
    is_figurative: bool
    tokens: tuple[str, ...]
    tags: tuple[Tag, ...]
    tag_ids: tuple[int, ...]
    was_fixed: bool


def read_released_originals(path: str | Path) -> list[ReleasedRow]:
    """Read the released originals.

    Raises:
        UserError: The file is not a nonempty JSON array of valid rows; the message states the file
            and, for an invalid row, its number.
    """
    return [
        validated(
            ReleasedRow,
            # In strict mode, only JSON input allows lists for tuples.
            canonical_json(row),
            where=f"{path}: record {number}",
            hint="download the file again",
            is_json=True,
        )
        for number, row in enumerate(read_rows(path), start=1)
    ]


def read_rows(path: str | Path) -> list[Any]:
    """Read the records of a released file.

    Raises:
        UserError: The file is not a nonempty JSON array.
    """
    rows = read_json(path)
    if not isinstance(rows, list) or not rows:
        raise UserError("not a JSON array of records", where=path, hint="download the file again")
    return rows


Reason = Literal[
    "ambiguous",
    "wrong_label",
    "several_pies",
    "translation_appended",
    "typo",
    "not_recorded",
    "no_known_pie",
]
"""Reason for dropping or fixing a sentence. `not_recorded` occurs only in decisions derived from
the release, `no_known_pie` only in decisions derived from tags; the other reasons are the
paper's."""

REQUIRED_COLUMNS = ("sentence_id", "decision", "reason", "pie", "text", "tokens", "tags")
OPTIONAL_COLUMNS = ("is_figurative", "true_idioms")
_LIST_COLUMNS = frozenset({"tokens", "tags", "true_idioms"})
_SAME_SENTENCE = 60.0
"""Minimum similarity (0-100) between a released sentence and the raw sentence that it corrects."""


class Decision(Record):
    """Decision on one raw sentence.

    Attributes:
        sentence_id: Id of the raw sentence, such as `test-0001`.
        decision: Whether to keep, drop or fix the sentence.
        reason: Reason for dropping or fixing; null if the sentence is kept.
        pie: The PIE; null if the sentence is dropped.
        text: Corrected text; null unless the sentence is fixed.
        tokens: Corrected tokens; null unless the sentence is fixed.
        tags: Corrected tags; null unless the sentence is fixed.
        is_figurative: Whether the PIE is used figuratively; null if the tags determine the usage.
        true_idioms: The figurative PIE; null if the tags determine its spelling.
    """

    sentence_id: Id
    decision: Literal["keep", "drop", "fix"]
    reason: Reason | None = None
    pie: str | None = None
    text: str | None = None
    tokens: tuple[str, ...] | None = None
    tags: tuple[Tag, ...] | None = None
    is_figurative: bool | None = None
    true_idioms: tuple[str, ...] | None = None

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        if (self.reason is None) != (self.decision == "keep"):
            raise ValueError(
                "reason is required for dropped and fixed sentences, and not allowed for kept ones"
            )
        if (self.pie is None) != (self.decision == "drop"):
            raise ValueError(
                "pie is required for kept and fixed sentences, and not allowed for dropped ones"
            )
        for name in ("text", "tokens", "tags"):
            if (getattr(self, name) is None) != (self.decision != "fix"):
                raise ValueError(
                    f"{name} is required for fixed sentences, and not allowed for others"
                )
        return self


def load_decisions(path: str | Path) -> list[Decision]:
    """Read decisions from a tab-separated file with a header.

    The columns `tokens`, `tags`, `true_idioms` and `is_figurative` contain JSON.

    Raises:
        UserError: The header is wrong, a row is invalid or a sentence occurs twice; the message
            states the file and, for an invalid row, the line.
    """
    hint = f"write all columns ({', '.join(REQUIRED_COLUMNS)}), and leave unused cells empty"
    rows = read_table(
        path, REQUIRED_COLUMNS, more=OPTIONAL_COLUMNS, delimiter="\t", quoted=False, hint=hint
    )
    decisions = [
        _decision({name: cell for name, cell in row.items() if cell}, where=f"{path}:{line}")
        for line, row in rows
    ]
    check_unique_ids([item.sentence_id for item in decisions], where=path)
    return decisions


def save_decisions(path: str | Path, decisions: Iterable[Decision]) -> None:
    """Write decisions atomically in the format of `load_decisions`.

    Raises:
        UserError: A text contains a tab or a line break.
    """
    columns = REQUIRED_COLUMNS + OPTIONAL_COLUMNS
    lines = ["\t".join(columns)]
    for item in decisions:
        fields = item.model_dump(mode="json", exclude_none=True)
        lines.append("\t".join(_cell(name, fields.get(name)) for name in columns))
    write_text(path, "".join(f"{line}\n" for line in lines))


def apply_decisions(
    sentences: Sequence[TaggedSentence],
    decisions: Sequence[Decision],
    *,
    language: str,
    where: str | Path,
    raw: str | Path = "the raw file",
) -> list[Original]:
    """Return the kept and fixed sentences as originals, in raw order (section 3.2).

    Args:
        sentences: Raw test split.
        decisions: One decision per sentence.
        language: Language of the sentences.
        where: Path of the decision file, for error messages.
        raw: Path of the raw split, for error messages.

    Raises:
        UserError: The sentences are in another language or implausible (see `check_sentences`),
            sentences and decisions do not correspond one to one, tags or tokens do not fit the
            text, a PIE is not in its sentence, or no sentence is kept.
    """
    expected = get_language(language)
    text = " ".join(item.text for item in sentences)
    if not is_in_language(text, expected.code, language_codes()):
        hint = "use the file for this language"
        raise UserError(f"the sentences are not in {expected.label}", where=raw, hint=hint)
    check_sentences(
        sentences,
        path=raw,
        code=expected.code,
        label=expected.label,
        codes=language_codes(),
        light_words=expected.light_words,
    )
    by_id = {item.sentence_id: item for item in decisions}
    _check_correspondence([item.id for item in sentences], by_id, where=where, raw=raw)
    originals = []
    for sentence in sentences:
        decision = by_id[sentence.id]
        if decision.decision == "drop":
            continue
        try:
            originals.append(_original(sentence, decision, language))
        except ValueError as error:
            problem = explain(error) if isinstance(error, ValidationError) else str(error)
            hint = f"correct the sentence ({raw}:{sentence.line}) or the decision"
            raise UserError(problem, where=f"{where}: {sentence.id}", hint=hint) from None
    if not originals:
        raise UserError(
            f"none of the {len(sentences)} sentences of {raw} is kept",
            where=where,
            hint="tag idioms in the test file, or keep sentences in the decisions",
        )
    kinds = [(one.id, one.sentence, one.is_figurative) for one in originals]
    warn_of_near_duplicates(kinds, raw)
    return originals


def _check_correspondence(
    sentences: Sequence[str], decisions: Collection[str], *, where: str | Path, raw: str | Path
) -> None:
    """Raise a `UserError` unless each sentence has a decision, and each decision a sentence."""
    ids = set(sentences)
    missing = [name for name in sentences if name not in decisions]
    extra = [name for name in decisions if name not in ids]
    if missing or extra:
        problem = f"no decision for {missing[0]}" if missing else f"unknown raw sentence {extra[0]}"
        hint = (
            f"use decisions for the same version of {raw}: {len(missing)} of its"
            f" {len(ids)} sentences have no decision, and {len(extra)} decisions have no"
            " sentence"
        )
        raise UserError(problem, where=where, hint=hint)


def derive_decisions(
    sentences: Sequence[TaggedSentence], released: Sequence[ReleasedRow], *, where: str | Path
) -> list[Decision]:
    """Derive the decisions that turn the raw sentences into the released originals.

    The release keeps the raw order. A row whose text equals a raw sentence belongs to that
    sentence; any other row is a correction of the most similar raw sentence between its neighbors.
    The reasons for dropping sentences were not published (`not_recorded`); the reasons for
    corrections are inferred from the change. `where` is the path of the released originals, for
    error messages.

    Raises:
        UserError: No raw sentence corresponds to a released row, or a row does not have exactly one
            PIE.
    """
    places = _places([item.text for item in sentences], [row.sentence for row in released], where)
    rows = dict(zip(places, released, strict=True))
    decisions = []
    for place, sentence in enumerate(sentences):
        if place in rows:
            decisions.append(_derived(sentence, rows[place]))
        else:
            decisions.append(
                Decision(sentence_id=sentence.id, decision="drop", reason="not_recorded")
            )
    return decisions


def decisions_by_tags(
    sentences: Sequence[TaggedSentence], others: Sequence[TaggedSentence], *, language: str
) -> list[Decision]:
    """Derive decisions from ID10M's tags for languages without manual filtering.

    A sentence with one tagged idiom is kept as figurative. A sentence without tags is kept as
    literal if it contains PIEs that are tagged in other sentences of `sentences` or `others`; the
    longest of these PIEs is used. Sentences with several idioms or without a known PIE are dropped.
    Wrong tags are not corrected.
    """
    known_pies = {}
    for item in chain(others, sentences):
        for idiom in item.idioms:
            known_pies[normalize(idiom)] = idiom
    longest_first = sorted(known_pies.values(), key=lambda pie: (-len(pie.split()), pie))
    return [_decision_by_tags(item, longest_first, language) for item in sentences]


def _decision_by_tags(
    sentence: TaggedSentence, known_pies: Sequence[str], language: str
) -> Decision:
    """Derive the decision on a sentence; the first known PIE in it counts as its literal PIE."""
    name = sentence.id
    if len(sentence.idioms) > 1:
        return Decision(sentence_id=name, decision="drop", reason="several_pies")
    if sentence.idioms:
        return Decision(sentence_id=name, decision="keep", pie=sentence.idioms[0])
    tokens = sentence.tokens
    for pie in known_pies:
        if contains_pie(sentence.text, pie, language=language):
            words = shortest_match(tokens, pie, language=language, longest=len(tokens))
            return Decision(sentence_id=name, decision="keep", pie=words)
    return Decision(sentence_id=name, decision="drop", reason="no_known_pie")


def filtering_report(
    sentences: Sequence[TaggedSentence],
    decisions: Sequence[Decision],
    originals: Sequence[Original],
) -> dict[str, Any]:
    """Return the counts of the filtering, and the irregularities that remain in the originals."""
    return {
        "raw_sentences": len(sentences),
        "raw_with_idiom": sum(bool(item.spans) for item in sentences),
        "kept": sum(item.decision == "keep" for item in decisions),
        "fixed": sum(item.decision == "fix" for item in decisions),
        "dropped": sum(item.decision == "drop" for item in decisions),
        "reasons": {
            kind: dict(Counter(item.reason for item in decisions if item.decision == kind))
            for kind in ("drop", "fix")
        },
        "originals": len(originals),
        "figurative": sum(item.is_figurative for item in originals),
        "literal": sum(not item.is_figurative for item in originals),
        "oddities": [oddity for item in originals for oddity in oddities(item)],
    }


def oddities(original: Original) -> list[dict[str, str]]:
    """Return the irregularities of an original, each with the sentence id, its kind and a text.

    - `pie_spacing`: The PIE contains repeated spaces ("zur  Genüge"), and occurs in the sentence
      only without them.
    - `pie_spelling`: The PIE occurs only with different spelling ("achilles ' heel"), case or
      inflection.
    - `pie_absent`: The PIE does not occur.
    - `true_idiom_spacing`, `true_idiom_spelling`, `true_idiom_absent`: One of `true_idioms` occurs
      only without its repeated spaces, only with different spelling, or not at all.
    - `figurative_without_tags`: The sentence is figurative, but all its tags are O.
    """
    problems = []
    for name, texts in (("pie", original.pies), ("true_idiom", original.true_idioms)):
        for text in texts:
            kind = _difference(text, original)
            if kind:
                problems.append({"kind": f"{name}_{kind}", "text": text})
    if original.is_figurative and not spans_of(original.tags):
        problems.append({"kind": "figurative_without_tags", "text": original.pies[0]})
    return [{"sentence_id": original.id, **item} for item in problems]


def _difference(text: str, original: Original) -> str | None:
    """Return how a PIE differs from the words in its sentence (see `oddities`), or None."""
    if text in original.sentence:
        return None
    if " ".join(text.split()) in original.sentence:
        return "spacing"
    if contains_pie(original.sentence, text, language=original.language):
        return "spelling"
    return "absent"


def _decision(fields: Mapping[str, str], *, where: str) -> Decision:
    """Parse the nonempty cells of a row."""
    values: dict[str, Any] = dict(fields)
    for name, text in fields.items():
        if name in _LIST_COLUMNS or name == "is_figurative":
            try:
                values[name] = parse_json(text)
            except ValueError:
                hint = "write true or false" if name == "is_figurative" else "write a JSON array"
                raise UserError(f"{name} is not JSON", where=where, hint=hint) from None
    return validated(
        Decision, canonical_json(values), where=where, hint="correct this row", is_json=True
    )


def _cell(name: str, value: Any) -> str:
    if value is None:
        return ""
    if name in _LIST_COLUMNS or name == "is_figurative":
        return json.dumps(value, ensure_ascii=False)
    text = str(value)
    if "\t" in text or "\n" in text:
        raise UserError(f"{name} contains a tab or a line end", hint="remove it from the sentence")
    return text


def _original(sentence: TaggedSentence, decision: Decision, language: str) -> Original:
    """Apply a keep or fix decision to a raw sentence."""
    pie = decision.pie or ""
    tokens = decision.tokens if decision.tokens is not None else sentence.tokens
    tags = decision.tags if decision.tags is not None else sentence.tags
    text = decision.text if decision.text is not None else sentence.text
    idioms = TaggedSentence(sentence.id, tokens, tags).idioms
    figurative = bool(idioms) if decision.is_figurative is None else decision.is_figurative
    true_idioms = decision.true_idioms
    if true_idioms is None:
        true_idioms = tuple(idioms) if figurative else ()
    if figurative and not idioms and decision.true_idioms is None:
        raise ValueError(
            "is_figurative is true, but all tags are O; tag the idiom, or set true_idioms"
        )
    if not contains_pie(text, pie, language=language):
        raise ValueError(f"the PIE {pie!r} is not in the sentence")
    return Original(
        id=sentence.id,
        language=language,
        sentence=text,
        tokens=tokens,
        tags=tags,
        pies=(pie,),
        true_idioms=true_idioms,
        is_figurative=figurative,
        was_fixed=decision.decision == "fix",
    )


def _derived(sentence: TaggedSentence, row: ReleasedRow) -> Decision:
    """Derive the keep or fix decision for a raw sentence from its released row."""
    if len(row.PIE) != 1:
        raise UserError(f"{len(row.PIE)} PIEs instead of 1", where=row.sentence)
    fields: dict[str, Any] = {"sentence_id": sentence.id, "pie": row.PIE[0], "decision": "keep"}
    if row.was_fixed:
        corrected = {"text": row.sentence, "tokens": row.tokens, "tags": row.tags}
        fields |= corrected | {"decision": "fix", "reason": _reason(sentence, row)}
    # As in manual decisions, state only what the tags do not determine.
    idioms = TaggedSentence(sentence.id, row.tokens, row.tags).idioms
    if bool(idioms) != row.is_figurative:
        fields["is_figurative"] = row.is_figurative
    if list(row.true_idioms) != (idioms if row.is_figurative else []):
        fields["true_idioms"] = row.true_idioms
    return Decision(**fields)


def _reason(sentence: TaggedSentence, row: ReleasedRow) -> Reason:
    """Infer the reason for a correction from how the text changed."""
    if row.sentence == sentence.text:
        return "wrong_label"
    if sentence.text.startswith(row.sentence):
        removed = sentence.text.removeprefix(row.sentence)
        if any(mark in removed for mark in "(―—"):
            return "translation_appended"
    return "typo" if fuzz.ratio(row.sentence, sentence.text) >= 80 else "not_recorded"


def _places(raw: Sequence[str], released: Sequence[str], where: str | Path) -> list[int]:
    """Return the ascending indices of the raw sentences that match the released sentences."""
    positions = {text: place for place, text in enumerate(raw)}
    exact = [positions.get(text) for text in released]
    places: list[int] = []
    for number, text in enumerate(released):
        first = places[-1] + 1 if places else 0
        place = exact[number]
        if place is None:
            end = next((later for later in exact[number:] if later is not None), len(raw))
            place = _most_similar(text, raw, range(first, end))
        if place is None or place < first:
            raise UserError(
                "no raw sentence corresponds to this row, or it is not in the raw order",
                where=f"{where}: record {number + 1}",
                hint="use ID10M's files and the public originals of the same version",
            )
        places.append(place)
    return places


def _most_similar(released: str, raw: Sequence[str], places: range) -> int | None:
    """Return the first of the most similar raw sentences; None if none is similar enough."""
    similarities = {place: _similarity(released, raw[place]) for place in places}
    best = max(similarities, key=lambda place: similarities[place], default=None)
    if best is None or similarities[best] < _SAME_SENTENCE:
        return None
    return best


def _similarity(released: str, raw: str) -> float:
    """Return the similarity (0-100) of two sentences, ignoring text appended to the raw one."""
    full = fuzz.ratio(released, raw)
    return max(full, fuzz.partial_ratio(released, raw)) if len(released) < len(raw) else full
