"""Read validated hard variants in the format of the public data."""

import ast
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationError
from rapidfuzz import fuzz, process
from rapidfuzz.distance import Levenshtein

from pieline.core.errors import UserError
from pieline.core.records import Frozen, explain, validated
from pieline.core.texts import check_texts, nfc
from pieline.languages.registry import get_language
from pieline.languages.spelling import normalize
from pieline.studies.jam.originals import read_json_records
from pieline.studies.jam.records import PRINTED_COUNTS, Original, Variant, VariantSource
from pieline.studies.jam.variants.projection import find_original
from pieline.studies.jam.variants.validation import make_variant

_HINT = "correct this record"
_PER_ORIGINAL = 3
"""Number of variants per original in the paper."""
_KNOWN_EDITS = frozenset({"can → could"})
"""Known edits of originals in the public variants."""
_MAX_FAULTS = 3
"""Maximum number of variants with the same fault, whatever their share of the file."""
_MAX_FAULTY_SHARE = 1 / 3
"""Maximum share of variants with the same fault, if their number exceeds `_MAX_FAULTS`."""
_EDITED = 75.0
"""Minimum similarity (0-100) between an edited original and the original."""


def read_variants(
    path: str | Path, originals: Sequence[Original], *, source: VariantSource
) -> list[Variant]:
    """Read validated variants in the format of the public data, a JSON array of records.

    The field `sentence_id` (sample) or `sentence` (public data) of a record identifies the
    original. If a variant contains its original, the tokens and tags are projected from the
    original. The public data also has variants with an edited original ("could" for "can"). Such a
    variant belongs to the most similar original, and keeps the tokens and tags of its record. All
    variants count as valid by human review.

    Raises:
        UserError: The format is wrong, a variant has no original or a different usage, a variant
            contains neither its original nor tokens and tags of an edited original, many variants
            have a different PIE than their originals or damaged texts, or two variants of an
            original have the same number. The message states the file and, if possible, the record.
    """
    original_by_id = {original.id: original for original in originals}
    original_by_text = {original.sentence: original for original in originals}
    variants = []
    records_with_other_pie = []
    for number, fields in enumerate(read_json_records(path), start=1):
        where = f"{path}: record {number}"
        record = validated(_VariantRecord, fields, where=where, hint=_HINT)
        if record.sentence_id in original_by_id:
            original = original_by_id[record.sentence_id]
        else:
            original = _find_by_text(record.sentence, original_by_text, where)
        if record.is_figurative != original.is_figurative:
            hint = "use the original's is_figurative"
            raise UserError("is_figurative differs from the original's", where=where, hint=hint)
        if _has_other_pie(record, original):
            records_with_other_pie.append(where)
        variants.append(_to_variant(record, original, source, where))
    texts = [(f"{path}: {variant.id}", variant.sentence) for variant in variants]
    check_texts(texts, repeated=False)
    fault_count = len(records_with_other_pie)
    if _are_too_many(fault_count, variants):
        problem = f"the PIE differs from the original's ({fault_count} of {len(variants)} records)"
        raise UserError(problem, where=records_with_other_pie[0], hint="check PIE and true_idioms")
    _check_numbers(variants, path)
    return variants


def _find_by_text(text: str, original_by_text: Mapping[str, Original], where: str) -> Original:
    """Return the original with a text; for an edited text, the most similar original.

    Raises:
        UserError: The similarity of all originals is below `_EDITED`.
    """
    if text in original_by_text:
        return original_by_text[text]
    best_match = process.extractOne(
        text, list(original_by_text), scorer=fuzz.ratio, score_cutoff=_EDITED
    )
    if best_match is None:
        hint = "use variants and originals of the same version"
        raise UserError("unknown original", where=where, hint=hint)
    best_text, _, _ = best_match
    return original_by_text[best_text]


def _are_too_many(fault_count: int, variants: Sequence[Variant]) -> bool:
    """Return whether so many variants have the same fault that their file is rejected."""
    return fault_count > _MAX_FAULTS and fault_count > len(variants) * _MAX_FAULTY_SHARE


def _check_numbers(variants: Sequence[Variant], path: str | Path) -> None:
    """Raise a `UserError` if two variants of an original have the same number."""
    for variant_id, count in Counter(variant.id for variant in variants).items():
        if count > 1:
            hint = "give the variants of an original different numbers"
            raise UserError(f"{variant_id} occurs more than once", where=path, hint=hint)


def _to_variant(
    record: "_VariantRecord", original: Original, source: VariantSource, where: str
) -> Variant:
    """Convert a record to a variant of an original.

    Raises:
        UserError: The record is invalid, or contains neither its original nor tokens and tags of an
            edited original.
    """
    text = record.variant_sentence
    # The variant and the original may be in different Unicode normalization forms.
    if find_original(original.sentence, text) is None:
        text = nfc(text)
    true_idioms = original.true_idioms if record.true_idioms is None else record.true_idioms
    try:
        variant = make_variant(
            original,
            text,
            true_idioms=true_idioms,
            number=record.variant_number,
            source=source,
            verdict="valid",
        )
    except ValidationError as error:
        raise UserError(explain(error), where=where, hint=_HINT) from None
    if find_original(original.sentence, text) is not None:
        return variant

    # The original was edited, so use the tokens and tags of the record.
    tokens = _tokens_with_spaces(record)
    if tokens is None or fuzz.partial_ratio(original.sentence, text) < _EDITED:
        hint = "include the original sentence"
        raise UserError("the original is not in the variant", where=where, hint=hint)
    fields = {**variant.model_dump(), "tokens": tokens, "tags": tuple(record.tags)}
    return validated(Variant, fields, where=where, hint=_HINT)


def _has_other_pie(record: "_VariantRecord", original: Original) -> bool:
    """Return whether a record names a PIE or figurative idiom that its original does not have."""
    names_other_pie = bool(record.PIE) and not _contains_all(record.PIE, original.pies)
    names_other_idiom = bool(record.true_idioms) and not _contains_all(
        record.true_idioms, original.true_idioms
    )
    return names_other_pie or names_other_idiom


def check_contexts(variants: Sequence[Variant], *, where: str | Path) -> None:
    """Raise a `UserError` if many variants lack a context of their own in the right language.

    A likely cause is that a wrong field was used as the text.
    """
    flag_counts = Counter(flag for variant in variants for flag in variant.flags)
    different_texts = {variant.sentence for variant in variants}
    fault_counts = {
        "no context": flag_counts["context_empty"],
        "a context in another language": flag_counts["wrong_language"],
        "the text of another variant": len(variants) - len(different_texts),
    }
    for fault, count in fault_counts.items():
        if _are_too_many(count, variants):
            problem = f"{fault} in {count} of {len(variants)} variants"
            hint = "write a different context followed by the original in each variant_sentence"
            raise UserError(problem, where=where, hint=hint)


def _contains_all(value: Any, pies: Iterable[str]) -> bool:
    """Return whether a text or list contains all PIEs, ignoring case, spacing and punctuation."""
    normalized_text = normalize(str(value))
    return all(normalize(pie) in normalized_text for pie in pies)


def count_problem(originals: Sequence[Original], variants: Sequence[Variant]) -> str:
    """Return the first difference between the variants and the paper's; empty if there is none.

    The paper states the numbers of originals and variants, and three variants per original. Each
    variant of the paper contains its original with only minor punctuation differences (sections 3.3
    and 3.4). Known edits of originals do not count as differences.
    """
    language = originals[0].language
    if language not in PRINTED_COUNTS:
        return f"the paper has no variants in {get_language(language).label}"
    printed_originals, printed_variants = PRINTED_COUNTS[language]
    if len(originals) != printed_originals:
        return f"{len(originals)} originals, the paper {printed_originals}"
    if len(variants) != printed_variants:
        return f"{len(variants)} variants, the paper {printed_variants}"
    variant_counts = Counter(variant.original_id for variant in variants)
    for original in originals:
        count = variant_counts[original.id]
        if count != _PER_ORIGINAL:
            return f"{count} variants of {original.id}, the paper {_PER_ORIGINAL}"
    for variant_id, edits in edited_originals(originals, variants).items():
        if not _KNOWN_EDITS.issuperset(edits):
            return f"{variant_id} lacks its original, which the paper's contain: {', '.join(edits)}"
    return ""


def _parse_python_list(value: Any) -> Any:
    """Parse a list in Python notation, as in the public German data; return other values as is.

    Raises:
        ValueError: A text is not in Python notation.
    """
    if not isinstance(value, str):
        return value
    try:
        return ast.literal_eval(value)
    except (SyntaxError, ValueError):
        raise ValueError("not a list in Python notation") from None


def edited_originals(
    originals: Iterable[Original], variants: Iterable[Variant]
) -> dict[str, list[str]]:
    """Return the edits of originals ("can → could"), by id of the variant with an edited original.

    Variants that contain their original are left out.
    """
    original_texts = {original.id: original.sentence for original in originals}
    edits_by_variant = {}
    for variant in variants:
        original_text = original_texts[variant.original_id]
        if find_original(original_text, variant.sentence) is None:
            edits_by_variant[variant.id] = _find_edits(original_text, variant.sentence)
    return edits_by_variant


def _find_edits(original: str, variant: str) -> list[str]:
    """Return the edits ("old → new") that turn an original into its edited form in a variant.

    The edited form is the end of the variant that is most similar to the original.
    """
    original_words, variant_words = original.split(), variant.split()
    ends_of_variant = [variant_words[start:] for start in range(len(variant_words))]
    edited_words = min(ends_of_variant, key=lambda end: Levenshtein.distance(original_words, end))
    edits = []
    for change in Levenshtein.opcodes(original_words, edited_words):
        if change.tag != "equal":
            old = " ".join(original_words[change.src_start : change.src_end])
            new = " ".join(edited_words[change.dest_start : change.dest_end])
            edits.append(f"{old or '-'} → {new or '-'}")
    return edits


def _tokens_with_spaces(record: "_VariantRecord") -> tuple[str, ...] | None:
    """Return the tokens of a record, each with its trailing space in the variant's text.

    The result is None if the record lacks tokens or tags, or if the tokens do not add up to the
    text.
    """
    if not isinstance(record.tokens, list) or not isinstance(record.tags, list):
        return None
    pattern = "".join(rf"({re.escape(str(token).strip())}\s*)" for token in record.tokens)
    match = re.fullmatch(pattern, record.variant_sentence)
    return match.groups() if match else None


class _VariantRecord(Frozen):
    """Record of a variant in the public data or in the sample.

    The sample identifies the original by `sentence_id`, and the public data by `sentence`.
    """

    sentence_id: str | None = None
    sentence: str
    PIE: Any
    is_figurative: bool
    variant_number: int = Field(ge=1)
    variant_sentence: str = Field(min_length=1)
    tokens: Any = None
    tags: Any = None
    tag_ids: Any = None
    true_idioms: Annotated[tuple[str, ...] | None, BeforeValidator(_parse_python_list)] = None
