"""Build the dataset of ID10M-JAM: originals with enough valid variants, and a manifest of counts.

`<language>.jsonl` has one line per input sentence; each original is followed by its selected
variants. The manifest in the same folder states sources and counts.
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
from pieline.studies.jam.variants.validation import Review, apply_reviews, check_reviews, settle

KEPT = 3
"""Valid variants of each original that are kept; originals with fewer are dropped (section 3.4)."""
SEED = 42
"""Seed for choosing among valid variants."""
Reviewer = Literal["human", "automatic"]
"""Handling of variants without a human verdict: `human` treats them as invalid; `automatic` treats
them as valid unless a check flags them."""


class JamManifest(Verification):
    """Description of an ID10M-JAM dataset; inherited fields state how variants were verified.

    Attributes:
        language: Language of the sentences.
        originals_are_released: Whether the originals match the released digest.
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
        """Return whether this is the published dataset, as needed for the paper's numbers."""
        return self.originals_are_released and self.verified is not None


def is_valid(variant: Variant, *, review: Reviewer) -> bool:
    """Return whether a variant may be in the dataset.

    Human verdicts take precedence. An unreviewed variant is valid only if `review` is `automatic`
    and no check flagged it.
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
    """Return the originals with at least `KEPT` valid variants, each with `KEPT` of them.

    The random choice is seeded per original, so an added original does not change the variants of
    the others.
    """
    valid: dict[str, list[Variant]] = defaultdict(list)
    for item in variants:
        if is_valid(item, review=review):
            valid[item.original_id].append(item)
    sentences = []
    for original in originals:
        candidates = sorted(valid[original.id], key=lambda item: item.number)
        if len(candidates) < KEPT:
            continue
        chooser = random.Random(f"{seed}:{original.id}")  # noqa: S311 - not for secrets
        chosen = chooser.sample(candidates, KEPT)
        sentences.append(as_sentence(original))
        sentences += [as_sentence(item) for item in sorted(chosen, key=lambda item: item.number)]
    return sentences


def describe(
    sentences: Sequence[JamSentence],
    originals: Sequence[Original],
    variants: Sequence[Variant],
    *,
    review: Reviewer,
    disputed: Sequence[str] = (),
    originals_are_released: bool,
    verification: Verification,
) -> JamManifest:
    """Return the manifest of a dataset.

    Args:
        sentences: Sentences of the dataset.
        originals: Originals before the selection.
        variants: Variants before the selection.
        review: Handling of variants without a human verdict.
        disputed: Ids of variants on which annotators disagree.
        originals_are_released: Whether the originals match the released digest.
        verification: How the variants were verified.

    Raises:
        UserError: The dataset is empty.
    """
    kept = [item for item in sentences if item.is_original]
    if not kept:
        raise UserError(
            f"no original has enough valid variants ({len(variants)} variants, review: {review})",
            hint="have the tasks annotated and name the export in jam.variants.annotations, or set"
            " jam.variants.review to automatic",
        )
    ids = {item.id for item in kept}
    return JamManifest(
        **verification.model_dump(),
        language=kept[0].language,
        originals_are_released=originals_are_released,
        variants_source=variants[0].source,
        review=review,
        originals=len(kept),
        figurative=sum(item.is_figurative for item in kept),
        literal=sum(not item.is_figurative for item in kept),
        variants=len(sentences) - len(kept),
        unique_pies=count_pies(kept),
        dropped_originals=[item.id for item in originals if item.id not in ids],
        candidate_variants=len(variants),
        valid_variants=sum(is_valid(item, review=review) for item in variants),
        disputed=sorted(disputed),
        verdicts=dict(sorted(Counter(item.verdict for item in variants).items())),
        flags=dict(sorted(Counter(flag for item in variants for flag in item.flags).items())),
    )


@dataclass(frozen=True)
class JamDataset:
    """Sentences of an ID10M-JAM dataset and their manifest."""

    sentences: list[JamSentence]
    manifest: JamManifest


@dataclass(frozen=True)
class JudgedVariants:
    """Variants with the verdicts of human reviews, and the ids of the disputed variants."""

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
    """Apply human reviews to the variants (section 3.4); disputed variants become invalid.

    `where` names the review files in error messages.

    Raises:
        UserError: Reviews do not match the variants, or a variant accepted or corrected by
            reviewers is unusable.
    """
    check_reviews(variants, [*reviews, *adjudications], where=where)
    settled, disputed = settle(reviews, adjudications)
    judged = [
        # Disputed variants have no final verdict, regardless of any earlier one.
        item.model_copy(update={"verdict": "invalid"}) if item.id in disputed else item
        for item in apply_reviews(originals, variants, settled, where=where)
    ]
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
    """Select originals and variants (section 3.4).

    `limit` is the number of originals to use, with their variants; None for all.

    Raises:
        UserError: The dataset is empty.
    """
    sentences = select_variants(originals, judged.variants, review=review)
    starts = [place for place, sentence in enumerate(sentences) if sentence.is_original]
    if limit and limit < len(starts):
        sentences = sentences[: starts[limit]]
    manifest = describe(
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
    """Count distinct PIEs, ignoring case, spacing and punctuation."""
    return len({normalize(pie) for item in sentences for pie in item.pies})
