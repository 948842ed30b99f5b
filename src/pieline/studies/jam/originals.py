"""Filter ID10M's test sentences by recorded decisions to get the originals of ID10M-JAM.

Each row of a decision file states whether to keep, drop or fix one raw sentence (section 3.2). The
row also names the PIE, because the tags of a literal sentence do not identify the PIE. Without a
decision file, decisions are derived from the raw file and the public originals. For languages
without public originals, decisions are derived from ID10M's tags alone.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
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
    """A row of a file of public originals, `id10m_fixed/<language>.json`."""

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
    """Read a file of public originals.

    Raises:
        UserError: The file is not a nonempty JSON array of valid rows. The message states the file
            and, for an invalid row, the number of the row.
    """
    return [
        validated(
            ReleasedRow,
            # In strict mode, only JSON input allows lists for tuples.
            canonical_json(record),
            where=f"{path}: record {number}",
            hint="download the file again",
            is_json=True,
        )
        for number, record in enumerate(read_json_records(path), start=1)
    ]


def read_json_records(path: str | Path) -> list[Any]:
    """Read the records of a JSON array, without validating them.

    Raises:
        UserError: The file is not a nonempty JSON array.
    """
    records = read_json(path)
    if not isinstance(records, list) or not records:
        raise UserError("not a JSON array of records", where=path, hint="download the file again")
    return records


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
the public originals, and `no_known_pie` only in decisions derived from tags. The paper names the
other reasons."""

REQUIRED_COLUMNS = ("sentence_id", "decision", "reason", "pie", "text", "tokens", "tags")
OPTIONAL_COLUMNS = ("is_figurative", "true_idioms")
_JSON_COLUMNS = frozenset({"tokens", "tags", "true_idioms", "is_figurative"})
_SAME_SENTENCE = 60.0
"""Minimum similarity (0-100) between a public original and the raw sentence that it corrects."""
_TYPO_SIMILARITY = 80.0
"""Minimum similarity (0-100) between a sentence and its correction if only typos are corrected."""
_TRANSLATION_MARKS = "(―—"
"""Characters that begin a translation in ID10M's sentences."""


class Decision(Record):
    """Decision to keep, drop or fix one raw sentence.

    Attributes:
        sentence_id: Id of the raw sentence, such as `test-0001`.
        decision: Whether to keep, drop or fix the sentence.
        reason: Reason for dropping or fixing the sentence; null for a kept sentence.
        pie: The PIE; null for a dropped sentence.
        text: Corrected text; only for a fixed sentence.
        tokens: Corrected tokens; only for a fixed sentence.
        tags: Corrected tags; only for a fixed sentence.
        is_figurative: Whether the PIE is used figuratively; null if the tags determine the usage.
        true_idioms: The figurative PIE; null if the tags determine the spelling of the PIE.
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
        """Raise a `ValueError` if the decision lacks a required field, or has a forbidden field."""
        has_reason = self.reason is not None
        needs_reason = self.decision != "keep"
        if has_reason != needs_reason:
            raise ValueError(
                "reason is required for dropped and fixed sentences, and not allowed for kept ones"
            )
        has_pie = self.pie is not None
        needs_pie = self.decision != "drop"
        if has_pie != needs_pie:
            raise ValueError(
                "pie is required for kept and fixed sentences, and not allowed for dropped ones"
            )
        needs_corrections = self.decision == "fix"
        corrections = {"text": self.text, "tokens": self.tokens, "tags": self.tags}
        for name, correction in corrections.items():
            has_correction = correction is not None
            if has_correction != needs_corrections:
                raise ValueError(
                    f"{name} is required for fixed sentences, and not allowed for others"
                )
        return self


def load_decisions(path: str | Path) -> list[Decision]:
    """Read decisions from a tab-separated file with a header.

    The columns `tokens`, `tags`, `true_idioms` and `is_figurative` contain JSON.

    Raises:
        UserError: The header is wrong, a row is invalid, or a sentence occurs twice. The message
            states the file and, for an invalid row, the line.
    """
    hint = f"write all columns ({', '.join(REQUIRED_COLUMNS)}), and leave unused cells empty"
    rows = read_table(
        path, REQUIRED_COLUMNS, more=OPTIONAL_COLUMNS, delimiter="\t", quoted=False, hint=hint
    )
    decisions = [_parse_row(row, where=f"{path}:{line}") for line, row in rows]
    check_unique_ids([decision.sentence_id for decision in decisions], where=path)
    return decisions


def save_decisions(path: str | Path, decisions: Iterable[Decision]) -> None:
    """Write decisions atomically in the format of `load_decisions`.

    Raises:
        UserError: A text contains a tab or a line break.
    """
    columns = REQUIRED_COLUMNS + OPTIONAL_COLUMNS
    lines = ["\t".join(columns)]
    for decision in decisions:
        fields = decision.model_dump(mode="json")
        lines.append("\t".join(_format_cell(column, fields[column]) for column in columns))
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

    Near-duplicate originals with the same usage cause a warning.

    Args:
        sentences: Sentences of the raw test split.
        decisions: One decision per sentence.
        language: Language of the sentences.
        where: Path of the decision file, for error messages.
        raw: Path of the raw split, for error messages.

    Raises:
        UserError: The sentences are in another language or implausible (see `check_sentences`),
            sentences and decisions do not correspond one to one, tags or tokens do not fit the
            text, a PIE is not in its sentence, or no sentence is kept.
    """
    _check_raw_sentences(sentences, language, raw)
    decision_by_id = {decision.sentence_id: decision for decision in decisions}
    _check_correspondence(
        [sentence.id for sentence in sentences], decision_by_id, where=where, raw=raw
    )
    originals = []
    for sentence in sentences:
        decision = decision_by_id[sentence.id]
        if decision.decision == "drop":
            continue
        try:
            originals.append(_make_original(sentence, decision, language))
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
    texts_with_usage = [
        (original.id, original.sentence, original.is_figurative) for original in originals
    ]
    warn_of_near_duplicates(texts_with_usage, raw)
    return originals


def _check_raw_sentences(
    sentences: Sequence[TaggedSentence], language: str, path: str | Path
) -> None:
    """Raise a `UserError` if sentences are in another language or fail `check_sentences`.

    `path` is the path of the raw split, for error messages.
    """
    expected_language = get_language(language)
    all_text = " ".join(sentence.text for sentence in sentences)
    if not is_in_language(all_text, expected_language.code, language_codes()):
        hint = "use the file for this language"
        raise UserError(
            f"the sentences are not in {expected_language.label}", where=path, hint=hint
        )
    check_sentences(
        sentences,
        path=path,
        code=expected_language.code,
        label=expected_language.label,
        codes=language_codes(),
        light_words=expected_language.light_words,
    )


def _check_correspondence(
    sentence_ids: Sequence[str], decided_ids: Collection[str], *, where: str | Path, raw: str | Path
) -> None:
    """Raise a `UserError` unless each sentence has a decision, and each decision a sentence."""
    undecided_ids = [raw_id for raw_id in sentence_ids if raw_id not in decided_ids]
    known_ids = set(sentence_ids)
    unknown_ids = [decided_id for decided_id in decided_ids if decided_id not in known_ids]
    if not undecided_ids and not unknown_ids:
        return
    if undecided_ids:
        problem = f"no decision for {undecided_ids[0]}"
    else:
        problem = f"unknown raw sentence {unknown_ids[0]}"
    hint = (
        f"use decisions for the same version of {raw}: {len(undecided_ids)} of its"
        f" {len(known_ids)} sentences have no decision, and {len(unknown_ids)} decisions have no"
        " sentence"
    )
    raise UserError(problem, where=where, hint=hint)


def derive_decisions(
    sentences: Sequence[TaggedSentence], released: Sequence[ReleasedRow], *, where: str | Path
) -> list[Decision]:
    """Derive the decisions that turn the raw sentences into the public originals.

    The public originals are in raw order. A public row whose text equals a raw sentence belongs to
    this raw sentence. Any other public row is a correction of the most similar raw sentence between
    the raw sentences of the previous and the next row. The reasons for dropping sentences are not
    public (`not_recorded`). The reasons for corrections are inferred from the change.

    Args:
        sentences: Raw sentences.
        released: Rows of the public originals.
        where: Path of the public originals, for error messages.

    Raises:
        UserError: No raw sentence corresponds to a public row, or a row does not have exactly one
            PIE.
    """
    raw_indices = _match_to_raw(
        [row.sentence for row in released], [sentence.text for sentence in sentences], where
    )
    row_by_index = dict(zip(raw_indices, released, strict=True))
    decisions = []
    for index, sentence in enumerate(sentences):
        if index in row_by_index:
            decision = _derive_decision(sentence, row_by_index[index])
        else:
            decision = Decision(sentence_id=sentence.id, decision="drop", reason="not_recorded")
        decisions.append(decision)
    return decisions


def decide_by_tags(
    sentences: Sequence[TaggedSentence], other_sentences: Sequence[TaggedSentence], *, language: str
) -> list[Decision]:
    """Derive decisions from ID10M's tags, for languages without manual filtering.

    A sentence with one tagged idiom is kept as figurative. A sentence without tags is kept as
    literal if it contains PIEs that are tagged in any other sentence, including `other_sentences`.
    Of these PIEs, the one with the most words is used. Sentences with several tagged idioms or
    without a known PIE are dropped. Wrong tags are not corrected.
    """
    pie_by_normalized: dict[str, str] = {}
    for sentence in [*other_sentences, *sentences]:
        for idiom in sentence.idioms:
            pie_by_normalized[normalize(idiom)] = idiom
    longest_first = sorted(pie_by_normalized.values(), key=lambda pie: (-len(pie.split()), pie))
    return [_decide_on_sentence(sentence, longest_first, language) for sentence in sentences]


def _decide_on_sentence(
    sentence: TaggedSentence, known_pies: Sequence[str], language: str
) -> Decision:
    """Derive the decision on one sentence from its tags.

    The first of the known PIEs that an untagged sentence contains is the sentence's literal PIE.
    """
    tagged_idioms = sentence.idioms
    if len(tagged_idioms) > 1:
        return Decision(sentence_id=sentence.id, decision="drop", reason="several_pies")
    if tagged_idioms:
        return Decision(sentence_id=sentence.id, decision="keep", pie=tagged_idioms[0])
    tokens = sentence.tokens
    for known_pie in known_pies:
        if contains_pie(sentence.text, known_pie, language=language):
            pie_in_text = shortest_match(tokens, known_pie, language=language, longest=len(tokens))
            return Decision(sentence_id=sentence.id, decision="keep", pie=pie_in_text)
    return Decision(sentence_id=sentence.id, decision="drop", reason="no_known_pie")


def filtering_report(
    sentences: Sequence[TaggedSentence],
    decisions: Sequence[Decision],
    originals: Sequence[Original],
) -> dict[str, Any]:
    """Return counts of the decisions and originals, and the irregularities of the originals."""
    actions = Counter(decision.decision for decision in decisions)
    drop_reasons = Counter(decision.reason for decision in decisions if decision.decision == "drop")
    fix_reasons = Counter(decision.reason for decision in decisions if decision.decision == "fix")
    return {
        "raw_sentences": len(sentences),
        "raw_with_idiom": sum(bool(sentence.spans) for sentence in sentences),
        "kept": actions["keep"],
        "fixed": actions["fix"],
        "dropped": actions["drop"],
        "reasons": {"drop": dict(drop_reasons), "fix": dict(fix_reasons)},
        "originals": len(originals),
        "figurative": sum(original.is_figurative for original in originals),
        "literal": sum(not original.is_figurative for original in originals),
        "oddities": [oddity for original in originals for oddity in oddities(original)],
    }


def oddities(original: Original) -> list[dict[str, str]]:
    """Return the irregularities of an original, each with the sentence id, a kind and a text.

    The kinds are:

    - `pie_spacing`: The PIE contains repeated spaces ("zur  Genüge"), and the sentence contains the
      PIE only without the repeated spaces.
    - `pie_spelling`: The sentence contains the PIE only with different spelling
      ("achilles ' heel"), case or inflection.
    - `pie_absent`: The sentence does not contain the PIE.
    - `true_idiom_spacing`, `true_idiom_spelling`, `true_idiom_absent`: The same kinds for one of
      `true_idioms` instead of the PIE.
    - `figurative_without_tags`: The sentence is figurative, but all its tags are O.
    """
    problems = []
    for prefix, pies in (("pie", original.pies), ("true_idiom", original.true_idioms)):
        for pie in pies:
            difference = _difference_in_sentence(pie, original)
            if difference:
                problems.append({"kind": f"{prefix}_{difference}", "text": pie})
    if original.is_figurative and not spans_of(original.tags):
        problems.append({"kind": "figurative_without_tags", "text": original.pies[0]})
    return [{"sentence_id": original.id, **problem} for problem in problems]


def _difference_in_sentence(pie: str, original: Original) -> str | None:
    """Return how the words of a PIE in an original deviate; None if it contains the PIE verbatim.

    The deviation is `spacing`, `spelling` or `absent` (see `oddities`).
    """
    if pie in original.sentence:
        return None
    if " ".join(pie.split()) in original.sentence:
        return "spacing"
    if contains_pie(original.sentence, pie, language=original.language):
        return "spelling"
    return "absent"


def _parse_row(row: Mapping[str, str], *, where: str) -> Decision:
    """Parse a row of a decision file; empty cells are ignored.

    Raises:
        UserError: The row is invalid. `where` is its location for the error message.
    """
    fields: dict[str, Any] = {}
    for column, cell in row.items():
        if not cell:
            continue
        if column not in _JSON_COLUMNS:
            fields[column] = cell
            continue
        try:
            fields[column] = parse_json(cell)
        except ValueError:
            hint = "write true or false" if column == "is_figurative" else "write a JSON array"
            raise UserError(f"{column} is not JSON", where=where, hint=hint) from None
    return validated(
        Decision, canonical_json(fields), where=where, hint="correct this row", is_json=True
    )


def _format_cell(column: str, value: Any) -> str:
    """Return the value of a decision's field as the text of a cell; None becomes an empty cell.

    Raises:
        UserError: The text contains a tab or a line break, which the decision file cannot store.
    """
    if value is None:
        return ""
    if column in _JSON_COLUMNS:
        return json.dumps(value, ensure_ascii=False)
    cell = str(value)
    if "\t" in cell or "\n" in cell:
        raise UserError(
            f"{column} contains a tab or a line end", hint="remove it from the sentence"
        )
    return cell


def _make_original(sentence: TaggedSentence, decision: Decision, language: str) -> Original:
    """Apply a keep or fix decision to a raw sentence.

    Raises:
        ValueError: The tags, tokens or PIE do not fit the sentence; or the sentence is figurative,
            but neither the tags nor the decision name the idiom.
    """
    # Only a fix decision has text, tokens and tags.
    text = sentence.text if decision.text is None else decision.text
    tokens = sentence.tokens if decision.tokens is None else decision.tokens
    tags = sentence.tags if decision.tags is None else decision.tags
    tagged_idioms = TaggedSentence(sentence.id, tokens, tags).idioms

    is_figurative = decision.is_figurative
    if is_figurative is None:
        is_figurative = bool(tagged_idioms)
    true_idioms = decision.true_idioms
    if true_idioms is None:
        true_idioms = tuple(tagged_idioms) if is_figurative else ()
        if is_figurative and not tagged_idioms:
            raise ValueError(
                "is_figurative is true, but all tags are O; tag the idiom, or set true_idioms"
            )

    # A decision to keep or fix a sentence always has a PIE.
    pie = decision.pie or ""
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
        is_figurative=is_figurative,
        was_fixed=decision.decision == "fix",
    )


def _derive_decision(sentence: TaggedSentence, row: ReleasedRow) -> Decision:
    """Derive the keep or fix decision on a raw sentence from the sentence's public row."""
    if len(row.PIE) != 1:
        raise UserError(f"{len(row.PIE)} PIEs instead of 1", where=row.sentence)
    fields: dict[str, Any] = {"sentence_id": sentence.id, "pie": row.PIE[0], "decision": "keep"}
    if row.was_fixed:
        fields |= {
            "decision": "fix",
            "reason": _infer_reason(sentence.text, row.sentence),
            "text": row.sentence,
            "tokens": row.tokens,
            "tags": row.tags,
        }
    # As in manual decisions, state only what the tags do not determine.
    tagged_idioms = TaggedSentence(sentence.id, row.tokens, row.tags).idioms
    if row.is_figurative != bool(tagged_idioms):
        fields["is_figurative"] = row.is_figurative
    idioms_by_tags = tagged_idioms if row.is_figurative else []
    if list(row.true_idioms) != idioms_by_tags:
        fields["true_idioms"] = row.true_idioms
    return Decision(**fields)


def _infer_reason(raw_text: str, corrected_text: str) -> Reason:
    """Infer the reason for a correction from the change of the text."""
    if corrected_text == raw_text:
        return "wrong_label"
    if raw_text.startswith(corrected_text):
        removed_text = raw_text.removeprefix(corrected_text)
        if any(mark in removed_text for mark in _TRANSLATION_MARKS):
            return "translation_appended"
    if fuzz.ratio(corrected_text, raw_text) >= _TYPO_SIMILARITY:
        return "typo"
    return "not_recorded"


def _match_to_raw(released: Sequence[str], raw: Sequence[str], where: str | Path) -> list[int]:
    """Return the index of the raw sentence of each public original.

    `released` and `raw` are the texts of the public originals and of the raw sentences. The indices
    ascend, because the public originals are in raw order.

    Raises:
        UserError: A public original has no raw sentence, or is not in raw order.
    """
    index_by_text = {text: index for index, text in enumerate(raw)}
    equal_matches = [index_by_text.get(text) for text in released]
    matches: list[int] = []
    for position, text in enumerate(released):
        first_candidate = matches[-1] + 1 if matches else 0
        match = equal_matches[position]
        if match is None:
            # A correction matches a raw sentence before the next equal match.
            later_matches = [index for index in equal_matches[position:] if index is not None]
            end = later_matches[0] if later_matches else len(raw)
            match = _most_similar(text, raw, range(first_candidate, end))
        if match is None or match < first_candidate:
            raise UserError(
                "no raw sentence corresponds to this row, or it is not in the raw order",
                where=f"{where}: record {position + 1}",
                hint="use ID10M's files and the public originals of the same version",
            )
        matches.append(match)
    return matches


def _most_similar(text: str, raw: Sequence[str], candidates: range) -> int | None:
    """Return the index of the raw sentence that is most similar to a text.

    `candidates` are the indices to consider. If several of them are equally similar, the result is
    the first one. The result is None if no similarity reaches `_SAME_SENTENCE`.
    """
    similarities = [_similarity(text, raw[index]) for index in candidates]
    highest = max(similarities, default=0.0)
    if highest < _SAME_SENTENCE:
        return None
    return candidates[similarities.index(highest)]


def _similarity(released: str, raw: str) -> float:
    """Return the similarity (0-100) of the texts of a public original and a raw sentence.

    If the raw sentence is longer, additional text at its beginning or end is ignored.
    """
    similarity = fuzz.ratio(released, raw)
    if len(released) < len(raw):
        similarity = max(similarity, fuzz.partial_ratio(released, raw))
    return similarity
