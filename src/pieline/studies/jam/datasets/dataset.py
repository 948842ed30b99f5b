"""The dataset of ID10M-JAM: originals with enough valid variants, and what was counted on the way.

`<language>.jsonl` has one line for each sentence that a model is asked about: an original, then its
selected variants. The manifest beside it says where they come from.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pieline.core.errors import UserError
from pieline.core.records import load_record
from pieline.core.upstream import NOT_VERIFIED, Verification
from pieline.languages.spelling import normalise
from pieline.studies.jam.records import JamSentence, Original, Variant, VariantSource, as_sentence
from pieline.studies.jam.variants.label_studio import Review, settle
from pieline.studies.jam.variants.settings import VariantChecks
from pieline.studies.jam.variants.validation import apply_reviews, check_reviews

Reviewer = Literal["human", "automatic"]
"""Who decides on a variant that nobody judged: people (it is invalid), or the checks."""


class JamManifest(Verification):
    """What a dataset of ID10M-JAM is; its variants are what is verified.

    Attributes:
        language: of its sentences.
        originals_are_released: whether the originals are the released ones, by digest.
        variants_source: where the variants come from.
        review: who decides on validity.
        originals: those in the dataset.
        figurative, literal: of these.
        variants: those in the dataset.
        unique_pies: different PIEs, spelling details aside.
        dropped_originals: ids of originals with too few valid variants.
        candidate_variants: variants before selection.
        valid_variants: the valid ones among them.
        disputed: variants on which annotators disagree and that nobody decided on.
        verdicts: candidate variants by what people said.
        flags: candidate variants by automatic flag.
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
        """Whether this is the published dataset, so that results on it can be compared."""
        return self.originals_are_released and self.verified is not None


def is_valid(variant: Variant, *, review: Reviewer) -> bool:
    """Whether a variant may be in the dataset.

    What people said decides. A variant that nobody has judged is valid only if the review is
    `automatic` and no check flagged it.
    """
    if variant.verdict == "unreviewed":
        return review == "automatic" and not variant.flags
    return variant.verdict in ("valid", "corrected")


def select_variants(
    originals: Iterable[Original],
    variants: Iterable[Variant],
    *,
    review: Reviewer,
    min_valid: int,
    per_original: int,
    seed: int,
) -> list[JamSentence]:
    """Originals with at least `min_valid` valid variants, each followed by those selected.

    Section 3.4: of three or more valid variants three (`per_original`) are kept. The choice is
    seeded and depends on the original alone, so that adding an original changes no other's
    variants.

    Raises:
        ValueError: more variants are to be kept than are required.
    """
    if per_original > min_valid:
        raise ValueError(f"{per_original} variants cannot be kept where {min_valid} are enough")
    valid: dict[str, list[Variant]] = defaultdict(list)
    for item in variants:
        if is_valid(item, review=review):
            valid[item.original_id].append(item)
    sentences = []
    for original in originals:
        candidates = sorted(valid[original.id], key=lambda item: item.number)
        if len(candidates) < min_valid:
            continue
        chooser = random.Random(f"{seed}:{original.id}")  # noqa: S311 - not for secrets
        chosen = chooser.sample(candidates, per_original)
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
    """The manifest of a dataset; originals and variants are those before selection.

    Raises:
        UserError: the dataset is empty.
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
    """A dataset of ID10M-JAM: its sentences and what they are."""

    sentences: list[JamSentence]
    manifest: JamManifest


def build_dataset(
    originals: Sequence[Original],
    variants: Sequence[Variant],
    *,
    reviews: Sequence[Review],
    adjudications: Sequence[Review],
    where: str,
    originals_are_released: bool,
    verification: Verification = NOT_VERIFIED,
    review: Reviewer,
    min_valid: int,
    kept: int,
    seed: int,
    checks: VariantChecks,
) -> JamDataset:
    """Apply what people said of the variants (files `where`) and select (section 3.4).

    What to select by (`review`, `min_valid`, `kept`, `seed`, `checks`) are fields of `JamVariants`.

    Raises:
        UserError: reviews that do not fit the variants, or an empty dataset.
    """
    check_reviews(variants, [*reviews, *adjudications], where=where)
    settled, disputed = settle(reviews, adjudications)
    judged = [
        # Nobody has decided on these, whatever was said of them before.
        item.model_copy(update={"verdict": "invalid"}) if item.id in disputed else item
        for item in apply_reviews(originals, variants, settled, where=where, limits=checks)
    ]
    sentences = select_variants(
        originals, judged, review=review, min_valid=min_valid, per_original=kept, seed=seed
    )
    manifest = describe(
        sentences,
        originals,
        judged,
        review=review,
        disputed=disputed,
        originals_are_released=originals_are_released,
        verification=verification,
    )
    return JamDataset(sentences, manifest)


def count_pies(sentences: Iterable[JamSentence | Original]) -> int:
    """Different PIEs, spelling details (case, spaces, punctuation) aside."""
    return len({normalise(pie) for item in sentences for pie in item.pies})


def load_manifest(path: str | Path) -> JamManifest:
    """Read a manifest.

    Raises:
        UserError: the file is missing or is no manifest.
    """
    return load_record(path, JamManifest)
