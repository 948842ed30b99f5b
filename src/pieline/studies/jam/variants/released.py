"""Validated hard variants in the released format."""

import ast
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from pieline.core.errors import UserError
from pieline.core.records import Frozen, validated
from pieline.studies.jam.raw.released import read_rows
from pieline.studies.jam.records import Original, Variant, VariantSource
from pieline.studies.jam.variants.projection import context_of
from pieline.studies.jam.variants.validation import make_variant


def read_variants(
    path: str | Path, originals: Sequence[Original], *, source: VariantSource
) -> list[Variant]:
    """Read validated variants in the released format: a JSON array of records.

    A record belongs to the original that its `sentence_id` (the sample) or its `sentence` (the
    release) names. Tokens and tags are projected anew, so that they fit the originals; the record's
    own are not needed. All variants count as judged valid by people.

    Raises:
        UserError: not such a file, a variant of no original (in the sample), a variant without its
            original's sentence, or two variants of one number; names file and record.
    """
    by_id = {item.id: item for item in originals}
    by_text = {item.sentence: item for item in originals}
    variants = []
    for number, row in enumerate(read_rows(path), start=1):
        where, mend = f"{path}: record {number}", "correct this record"
        record = validated(_ReleasedVariant, row, where=where, mend=mend)
        original = by_id.get(record.sentence_id or "") or by_text.get(record.sentence)
        if original is None:
            mend = "take variants and originals of one version"
            raise UserError("no such original", where=where, mend=mend)
        if context_of(original.sentence, record.variant_sentence) is None:
            mend = "keep the original sentence in it"
            raise UserError("the original is not in the variant", where=where, mend=mend)
        if record.is_figurative != original.is_figurative:
            mend = "give it the original's reading"
            raise UserError("another reading than its original's", where=where, mend=mend)
        fields = {"number": record.variant_number, "source": source, "verdict": "valid"}
        own = original.true_idioms if record.true_idioms is None else record.true_idioms
        variants.append(make_variant(original, record.variant_sentence, true_idioms=own, **fields))
    counts = Counter(item.id for item in variants)
    if repeated := [name for name, count in counts.items() if count > 1]:
        mend = "number the variants of each original"
        raise UserError(f"{repeated[0]} stands more than once", where=path, mend=mend)
    return variants


def _as_list(value: Any) -> Any:
    """The German file of the release has lists as Python writes them."""
    if not isinstance(value, str):
        return value
    try:
        return ast.literal_eval(value)
    except (SyntaxError, ValueError):
        raise ValueError("not a list, nor one as Python writes it") from None


class _ReleasedVariant(Frozen):
    """A record of the released variants (and of the sample, which names its original by id)."""

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
