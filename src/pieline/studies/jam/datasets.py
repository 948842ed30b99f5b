"""Build the dataset of ID10M-JAM: originals with enough valid variants, and a manifest of counts.

The dataset file `<language>.jsonl` has one line per sentence, and the selected variants of an
original follow the original. The manifest in the same folder states the sources of the originals
and variants, and the numbers of originals, variants and PIEs.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from pieline.core.errors import UserError
from pieline.core.upstream import NOT_VERIFIED, Verification
from pieline.languages.spelling import normalize
from pieline.studies.jam.records import JamSentence, Original, Variant, VariantSource, as_sentence
from pieline.studies.jam.variants.validation import (
    Review,
    apply_reviews,
    check_reviews,
    settle_reviews,
)

KEPT_VARIANTS = 3
"""Number of valid variants kept per original; originals with fewer are dropped (section 3.4)."""
SEED = 42
"""Seed for choosing among the valid variants of an original."""
Reviewer = Literal["human", "automatic"]
"""Handling of variants without a human verdict: `human` treats them as invalid; `automatic` treats
them as valid unless a check flags them."""


class JamManifest(Verification):
    """Sources and counts of an ID10M-JAM dataset, and whether its variants are the public ones.

    Attributes:
        language: Language of the sentences.
        originals_are_released: Whether the originals equal the public originals, by digest.
        variants_source: Source of the variants.
        review: Handling of variants without a human verdict.
        originals: Number of originals in the dataset.
        figurative: Number of figurative originals in the dataset.
        literal: Number of literal originals in the dataset.
        variants: Number of variants in the dataset.
        unique_pies: Number of distinct PIEs, ignoring case, spacing and punctuation.
        dropped_originals: Ids of originals with too few valid variants.
        candidate_variants: Number of variants before selection.
        valid_variants: Number of valid variants before selection.
        disputed: Ids of variants with an unresolved disagreement between annotators.
        verdicts: Number of candidate variants by human verdict.
        flags: Number of candidate variants by automatic flag.
    """

    language: str
    originals_are_released: bool
    variants_source: VariantSource
    review: Reviewer
    originals: int
    figurative: int
    literal: int
    variants: int
    unique_pies: int
    dropped_originals: list[str]
    candidate_variants: int
    valid_variants: int
    disputed: list[str]
    verdicts: dict[str, int]
    flags: dict[str, int]

    @property
    def is_released(self) -> bool:
        """Return whether the dataset is the public one, on which the paper's numbers are based."""
        return self.originals_are_released and self.verified is not None


def is_valid(variant: Variant, *, review: Reviewer) -> bool:
    """Return whether a variant is valid by its human verdict or, without one, by automatic checks.

    An unreviewed variant is valid only if `review` is `automatic` and no check flagged the variant.
    """
    if variant.verdict == "unreviewed":
        return review == "automatic" and not variant.flags
    return variant.verdict in ("valid", "corrected")


def select_variants(
    originals: Iterable[Original],
    variants: Iterable[Variant],
    *,
    review: Reviewer,
    seed: int = SEED,
) -> list[JamSentence]:
    """Return originals with enough valid variants, each followed by `KEPT_VARIANTS` valid variants.

    The variants are chosen at random, with a seed per original. Therefore, an added original does
    not change the chosen variants of other originals.
    """
    valid_by_original: dict[str, list[Variant]] = defaultdict(list)
    # The random choice must not depend on the order in which the variants are passed.
    for variant in sorted(variants, key=lambda variant: variant.number):
        if is_valid(variant, review=review):
            valid_by_original[variant.original_id].append(variant)
    sentences = []
    for original in originals:
        candidates = valid_by_original[original.id]
        if len(candidates) < KEPT_VARIANTS:
            continue
        chooser = random.Random(f"{seed}:{original.id}")  # noqa: S311 - not for secrets
        chosen = chooser.sample(candidates, KEPT_VARIANTS)
        chosen.sort(key=lambda variant: variant.number)
        sentences.append(as_sentence(original))
        sentences += [as_sentence(variant) for variant in chosen]
    return sentences


def make_manifest(
    sentences: Sequence[JamSentence],
    originals: Sequence[Original],
    variants: Sequence[Variant],
    *,
    review: Reviewer,
    disputed: Sequence[str] = (),
    originals_are_released: bool,
    verification: Verification,
) -> JamManifest:
    """Return the manifest of a dataset, which counts sentences, verdicts and flags.

    Args:
        sentences: Sentences of the dataset.
        originals: Originals before the selection.
        variants: Variants before the selection.
        review: Handling of variants without a human verdict.
        disputed: Ids of variants on which annotators disagree.
        originals_are_released: Whether the originals equal the public originals, by digest.
        verification: Whether the variants are the public ones, and how this was verified.

    Raises:
        UserError: The dataset is empty.
    """
    kept_originals = [sentence for sentence in sentences if sentence.is_original]
    if not kept_originals:
        raise UserError(
            f"no original has enough valid variants ({len(variants)} variants, review: {review})",
            hint="have the tasks annotated and name the export in jam.variants.annotations, or set"
            " jam.variants.review to automatic",
        )
    kept_ids = {original.id for original in kept_originals}
    figurative_count = sum(original.is_figurative for original in kept_originals)
    verdict_counts = Counter(variant.verdict for variant in variants)
    flag_counts = Counter(flag for variant in variants for flag in variant.flags)
    return JamManifest(
        **verification.model_dump(),
        language=kept_originals[0].language,
        originals_are_released=originals_are_released,
        variants_source=variants[0].source,
        review=review,
        originals=len(kept_originals),
        figurative=figurative_count,
        literal=len(kept_originals) - figurative_count,
        variants=len(sentences) - len(kept_originals),
        unique_pies=count_pies(kept_originals),
        dropped_originals=[original.id for original in originals if original.id not in kept_ids],
        candidate_variants=len(variants),
        valid_variants=sum(is_valid(variant, review=review) for variant in variants),
        disputed=sorted(disputed),
        verdicts=dict(sorted(verdict_counts.items())),
        flags=dict(sorted(flag_counts.items())),
    )


@dataclass(frozen=True)
class JamDataset:
    """Sentences of an ID10M-JAM dataset and their manifest."""

    sentences: list[JamSentence]
    manifest: JamManifest


@dataclass(frozen=True)
class JudgedVariants:
    """Variants with the verdicts of human reviews, and the ids of the disputed variants.

    A variant is disputed if reviewers disagree on it and no adjudication settles the disagreement.
    """

    variants: Sequence[Variant]
    disputed: Sequence[str] = ()


def judge_variants(
    originals: Sequence[Original],
    variants: Sequence[Variant],
    *,
    reviews: Sequence[Review],
    adjudications: Sequence[Review],
    where: str,
) -> JudgedVariants:
    """Return the variants with the verdicts and corrections of human reviews (section 3.4).

    Variants on which the reviews disagree, and which no adjudication settles, are invalid.

    `where` names the review files in error messages.

    Raises:
        UserError: Reviews do not match the variants, or a variant accepted or corrected by
            reviewers is unusable.
    """
    check_reviews(variants, [*reviews, *adjudications], where=where)
    final_reviews, disputed = settle_reviews(reviews, adjudications)
    judged = []
    for variant in apply_reviews(originals, variants, final_reviews, where=where):
        # A verdict from before these reviews does not count for a disputed variant.
        is_disputed = variant.id in disputed
        judged.append(variant.model_copy(update={"verdict": "invalid"}) if is_disputed else variant)
    return JudgedVariants(judged, disputed)


def build_dataset(
    originals: Sequence[Original],
    judged: JudgedVariants,
    *,
    originals_are_released: bool,
    verification: Verification = NOT_VERIFIED,
    review: Reviewer,
    limit: int | None = None,
) -> JamDataset:
    """Select originals and their valid variants, and return them with a manifest (section 3.4).

    With `limit`, the dataset has at most this number of originals, each with its variants.

    Raises:
        UserError: The dataset is empty.
    """
    sentences = select_variants(originals, judged.variants, review=review)
    if limit:
        original_ids = [sentence.id for sentence in sentences if sentence.is_original]
        kept_ids = set(original_ids[:limit])
        sentences = [sentence for sentence in sentences if sentence.original_id in kept_ids]
    manifest = make_manifest(
        sentences,
        originals,
        judged.variants,
        review=review,
        disputed=judged.disputed,
        originals_are_released=originals_are_released,
        verification=verification,
    )
    return JamDataset(sentences, manifest)


def count_pies(sentences: Iterable[JamSentence | Original]) -> int:
    """Return the number of distinct PIEs in sentences, ignoring case, spacing and punctuation."""
    return len({normalize(pie) for sentence in sentences for pie in sentence.pies})
