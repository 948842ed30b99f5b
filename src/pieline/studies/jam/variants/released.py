"""Read validated hard variants in the released format."""

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
"""Known edits of originals in the released variants."""
_FEW, _MOST_ODD = 3, 1 / 3
"""Number and share of variants with the same fault; a file that exceeds both is rejected."""
_EDITED = 75.0
"""Minimum similarity (0-100) between a sentence and the original that it was edited from."""


def read_variants(
    path: str | Path, originals: Sequence[Original], *, source: VariantSource
) -> list[Variant]:
    """Read validated variants in the released format, a JSON array of records.

    A record belongs to the original identified by its `sentence_id` (sample) or `sentence`
    (release). If the variant contains the original, its tokens and tags are projected again from
    the original. The release also has records with an edited original ("could" for "can"), which
    belong to the most similar original and keep their own tokens and tags. All variants count as
    valid by human review.

    Raises:
        UserError: The format is wrong, a variant has no original or a different usage, a variant
            contains neither its original nor tokens and tags of an edited one, many variants have a
            different PIE than their originals or damaged texts, or two variants of an original have
            the same number; the message states the file and, if possible, the record.
    """
    by_id = {item.id: item for item in originals}
    by_text = {item.sentence: item for item in originals}
    variants, with_other_pie = [], []
    for number, row in enumerate(read_json_records(path), start=1):
        where = f"{path}: record {number}"
        record = validated(_ReleasedVariant, row, where=where, hint=_HINT)
        original = by_id.get(record.sentence_id or "") or by_text.get(record.sentence)
        if original is None:
            original = _most_similar(record.sentence, by_text, where=where)
        if record.is_figurative != original.is_figurative:
            hint = "use the original's is_figurative"
            raise UserError("is_figurative differs from the original's", where=where, hint=hint)
        if _has_other_pie(record, original):
            with_other_pie.append(where)
        variants.append(_to_variant(record, original, source, where))
    texts = [(f"{path}: {item.id}", item.sentence) for item in variants]
    check_texts(texts, repeated=False)
    differing = len(with_other_pie)
    if differing > max(_FEW, len(variants) * _MOST_ODD):
        problem = f"the PIE differs from the original's ({differing} of {len(variants)} records)"
        raise UserError(problem, where=with_other_pie[0], hint="check PIE and true_idioms")
    counts = Counter(item.id for item in variants)
    if repeated := [name for name, count in counts.items() if count > 1]:
        hint = "give the variants of an original different numbers"
        raise UserError(f"{repeated[0]} occurs more than once", where=path, hint=hint)
    return variants


def _to_variant(
    record: "_ReleasedVariant", original: Original, source: VariantSource, where: str
) -> Variant:
    """Convert a record to a variant of an original.

    Raises:
        UserError: The record is invalid, or has neither its original nor tokens and tags of an
            edited original.
    """
    text = record.variant_sentence
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
    tokens = _tokens(record)
    if tokens is None or fuzz.partial_ratio(original.sentence, text) < _EDITED:
        hint = "include the original sentence"
        raise UserError("the original is not in the variant", where=where, hint=hint)
    own = {"tokens": tokens, "tags": tuple(record.tags)}
    return validated(Variant, variant.model_dump() | own, where=where, hint=_HINT)


def _has_other_pie(record: "_ReleasedVariant", original: Original) -> bool:
    """Return whether a record names another PIE, or other figurative PIEs, than its original."""
    if record.PIE and not _names(record.PIE, original.pies):
        return True
    return bool(record.true_idioms) and not _names(record.true_idioms, original.true_idioms)


def _most_similar(text: str, by_text: Mapping[str, Original], *, where: str) -> Original:
    """Return the original from which a sentence was edited: the most similar one.

    Raises:
        UserError: No original is similar enough.
    """
    similar = process.extractOne(text, list(by_text), scorer=fuzz.ratio, score_cutoff=_EDITED)
    if similar is None:
        hint = "use variants and originals of the same version"
        raise UserError("unknown original", where=where, hint=hint)
    return by_text[similar[0]]


def check_contexts(variants: Sequence[Variant], *, where: str | Path) -> None:
    """Raise a `UserError` if many variants lack a usable context, as with a wrong column."""
    flags = Counter(flag for item in variants for flag in item.flags)
    faults = {
        "no context": flags["context_empty"],
        "a context in another language": flags["wrong_language"],
        "the text of another variant": len(variants) - len({item.sentence for item in variants}),
    }
    for fault, count in faults.items():
        if count > max(_FEW, len(variants) * _MOST_ODD):
            problem = f"{fault} in {count} of {len(variants)} variants"
            hint = "write a different context followed by the original in each variant_sentence"
            raise UserError(problem, where=where, hint=hint)


def _names(value: Any, pies: Iterable[str]) -> bool:
    """Return whether a value of any type contains all PIEs, apart from spelling details."""
    return all(normalize(pie) in normalize(str(value)) for pie in pies)


def count_problem(originals: Sequence[Original], variants: Sequence[Variant]) -> str:
    """Return the first difference from the paper's description of variants; empty if there is none.

    The paper states the numbers of originals and variants, three variants per original, and that
    each variant contains its original with only minor punctuation differences (sections 3.3 and
    3.4). Known edits are no difference.
    """
    language = originals[0].language
    if language not in PRINTED_COUNTS:
        return f"the paper has no variants in {get_language(language).label}"
    for items, printed, kind in zip(
        (originals, variants), PRINTED_COUNTS[language], ("originals", "variants"), strict=True
    ):
        if len(items) != printed:
            return f"{len(items)} {kind}, the paper {printed}"
    counts = Counter(item.original_id for item in variants)
    for item in originals:
        if counts[item.id] != _PER_ORIGINAL:
            return f"{counts[item.id]} variants of {item.id}, the paper {_PER_ORIGINAL}"
    for name, edits in edited_originals(originals, variants).items():
        if not _KNOWN_EDITS.issuperset(edits):
            return f"{name} lacks its original, which the paper's contain: {', '.join(edits)}"
    return ""


def _as_list(value: Any) -> Any:
    """Parse a list written in Python notation, as in the German release; keep other values."""
    if not isinstance(value, str):
        return value
    try:
        return ast.literal_eval(value)
    except (SyntaxError, ValueError):
        raise ValueError("not a list in Python notation") from None


def edited_originals(
    originals: Iterable[Original], variants: Iterable[Variant]
) -> dict[str, list[str]]:
    """Return the edits ("can → could") by id of each variant that does not contain its original."""
    by_id = {item.id: item.sentence for item in originals}
    return {
        item.id: _edits(by_id[item.original_id], item.sentence)
        for item in variants
        if find_original(by_id[item.original_id], item.sentence) is None
    }


def _edits(original: str, variant: str) -> list[str]:
    """Return edits ("old → new") from the original to the most similar suffix of the variant."""
    old, all_words = original.split(), variant.split()
    suffixes = (all_words[start:] for start in range(len(all_words)))
    new = min(suffixes, key=lambda words: Levenshtein.distance(old, words))
    edits = []
    for change in Levenshtein.opcodes(old, new):
        if change.tag != "equal":
            before = " ".join(old[change.src_start : change.src_end])
            after = " ".join(new[change.dest_start : change.dest_end])
            edits.append(f"{before or '-'} → {after or '-'}")
    return edits


def _tokens(record: "_ReleasedVariant") -> tuple[str, ...] | None:
    """Return the tokens with their trailing spaces; None if they do not match the variant."""
    if not (isinstance(record.tokens, list) and isinstance(record.tags, list)):
        return None
    pattern = "".join(rf"({re.escape(str(token).strip())}\s*)" for token in record.tokens)
    match = re.fullmatch(pattern, record.variant_sentence)
    return match and match.groups()


class _ReleasedVariant(Frozen):
    """Record of the released variants, or of the sample's, which identify originals by id."""

    sentence_id: str | None = None
    sentence: str
    PIE: Any
    is_figurative: bool
    variant_number: int = Field(ge=1)
    variant_sentence: str = Field(min_length=1)
    tokens: Any = None
    tags: Any = None
    tag_ids: Any = None
    true_idioms: Annotated[tuple[str, ...] | None, BeforeValidator(_as_list)] = None
