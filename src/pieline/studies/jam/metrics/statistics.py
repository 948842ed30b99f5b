"""Count sentences and variants from ID10M to the dataset, for Table 2 and the flow figure."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

from pieline.core.conditions import NO_CONDITIONS, Conditions, MetricRecord
from pieline.core.measures import Measure
from pieline.studies.jam.datasets import JamManifest, count_pies
from pieline.studies.jam.records import Original
from pieline.studies.jam.settings import NO_VARIANTS


class JamStatistics(MetricRecord):
    """Counts for one language; None means unknown, not zero.

    Attributes:
        language: Language of the sentences.
        originals_are_released: Whether the originals are the released ones.
        variants_source: Source of the variants; None if there are no variants.
        dataset_is_released: Whether the dataset is the published one; None if there are no
            variants.
        raw_train_sentences: Number of sentences in ID10M's train split.
        raw_test_sentences: Number of sentences in ID10M's test split.
        raw_test_with_idiom: Number of test sentences with an idiom tag.
        dropped: Number of dropped test sentences by reason.
        fixed: Number of fixed test sentences by reason.
        originals: Number of originals after filtering.
        figurative: Number of figurative originals.
        literal: Number of literal originals.
        unique_pies_originals: Number of distinct PIEs in the originals.
        oddities: Number of irregularities in the originals by kind.
        candidate_variants: Number of variants before validation.
        valid_variants: Number of variants after validation.
        dataset_originals: Number of originals in the dataset.
        dataset_figurative: Number of figurative originals in the dataset.
        dataset_literal: Number of literal originals in the dataset.
        dataset_variants: Number of variants in the dataset.
        unique_pies: Number of distinct PIEs in the dataset.
    """

    language: str
    originals_are_released: bool
    variants_source: str | None
    dataset_is_released: bool | None
    raw_train_sentences: int | None
    raw_test_sentences: int
    raw_test_with_idiom: int
    dropped: dict[str, int]
    fixed: dict[str, int]
    originals: int
    figurative: int
    literal: int
    unique_pies_originals: int
    oddities: dict[str, int]
    candidate_variants: int | None
    valid_variants: int | None
    dataset_originals: int | None
    dataset_figurative: int | None
    dataset_literal: int | None
    dataset_variants: int | None
    unique_pies: int | None

    @property
    def literal_share(self) -> float | None:
        """Percentage of literal originals: of the dataset, or of the release without a dataset."""
        if self.dataset_originals and self.dataset_literal is not None:
            return 100 * self.dataset_literal / self.dataset_originals
        return 100 * self.literal / self.originals if self.originals_are_released else None


def _count(
    name: str, value: Callable[[JamStatistics], int | None], unknown: str = NO_VARIANTS
) -> Measure[JamStatistics]:
    return Measure(name, value, decimals=0, unknown=unknown)


def _sentences(name: str, of_originals: str, of_dataset: str) -> Measure[JamStatistics]:
    """Return the measure of a field of the dataset, or of released originals without a dataset."""
    return _count(name, partial(_count_of_dataset, of_originals, of_dataset))


def _count_of_dataset(of_originals: str, of_dataset: str, item: JamStatistics) -> int | None:
    has_only_originals = item.originals_are_released and item.dataset_originals is None
    count: int | None = getattr(item, of_originals if has_only_originals else of_dataset)
    return count


def _literal_share_of_test_split(item: JamStatistics) -> float:
    literal = item.raw_test_sentences - item.raw_test_with_idiom
    return 100 * literal / item.raw_test_sentences


ID10M = (
    _count("train_sentences", attrgetter("raw_train_sentences"), "there is no training file"),
    _count("test_sentences", attrgetter("raw_test_sentences")),
    # Printed without decimals, so half a unit is 0.5 instead of 0.05.
    Measure("literal_share", _literal_share_of_test_split, unit="%", decimals=1, tolerance=0.45),
)
"""Measures of ID10M in Table 2 and the text."""
JAM = (
    _sentences("test_sentences", "originals", "dataset_originals"),
    _count("test_variants", attrgetter("dataset_variants")),
    _sentences("unique_pies", "unique_pies_originals", "unique_pies"),
    _sentences("literal", "literal", "dataset_literal"),
    Measure[JamStatistics](
        "literal_share", attrgetter("literal_share"), unit="%", unknown=NO_VARIANTS
    ),
    # The release has only originals that passed variant validation, so the earlier count is
    # unknown.
    _count(
        "filtered_originals",
        lambda item: None if item.originals_are_released else item.originals,
        "not published: the release holds what variant validation left",
    ),
)
"""Measures of ID10M-JAM in Table 2 and the text."""


def jam_statistics(
    filtering: Mapping[str, Any],
    originals: Sequence[Original],
    *,
    train_sentences: int | None,
    manifest: JamManifest | None,
    computed_from: dict[str, str],
    conditions: Conditions = NO_CONDITIONS,
) -> JamStatistics:
    """Combine the counts of all stages; `filtering` is the content of the originals' report."""
    dataset = manifest.model_dump() if manifest else {}
    return JamStatistics(
        language=originals[0].language,
        originals_are_released=filtering["originals_are_released"],
        variants_source=dataset.get("variants_source"),
        dataset_is_released=manifest.is_released if manifest else None,
        data_note=manifest.data_note if manifest else "",
        raw_train_sentences=train_sentences,
        raw_test_sentences=filtering["raw_sentences"],
        raw_test_with_idiom=filtering["raw_with_idiom"],
        dropped=filtering["reasons"]["drop"],
        fixed=filtering["reasons"]["fix"],
        originals=len(originals),
        figurative=sum(item.is_figurative for item in originals),
        literal=sum(not item.is_figurative for item in originals),
        unique_pies_originals=count_pies(originals),
        oddities=dict(sorted(Counter(oddity["kind"] for oddity in filtering["oddities"]).items())),
        candidate_variants=dataset.get("candidate_variants"),
        valid_variants=dataset.get("valid_variants"),
        dataset_originals=dataset.get("originals"),
        dataset_figurative=dataset.get("figurative"),
        dataset_literal=dataset.get("literal"),
        dataset_variants=dataset.get("variants"),
        unique_pies=dataset.get("unique_pies"),
        computed_from=computed_from,
        conditions=conditions,
    )
