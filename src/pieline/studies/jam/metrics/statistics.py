"""Count sentences and variants at each stage, from ID10M to ID10M-JAM (Table 2, flow figure)."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from pieline.core.conditions import NO_CONDITIONS, Conditions, MetricRecord
from pieline.core.measures import Measure
from pieline.studies.jam.datasets import JamManifest, count_pies
from pieline.studies.jam.records import Original
from pieline.studies.jam.settings import NO_VARIANTS


class JamStatistics(MetricRecord):
    """Counts of sentences, variants and PIEs in one language; None means unknown, not zero.

    Attributes:
        language: Language of the sentences.
        originals_are_released: Whether the originals are those of the public ID10M-JAM.
        variants_source: Source of the variants; None if there are no variants.
        dataset_is_released: Whether the dataset is the public ID10M-JAM; None if there are no
            variants.
        raw_train_sentences: Number of sentences in ID10M's train split.
        raw_test_sentences: Number of sentences in ID10M's test split.
        raw_test_with_idiom: Number of test sentences with an idiom tag.
        dropped: Number of test sentences that were dropped, by reason.
        fixed: Number of test sentences that were corrected, by reason.
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
        """Percentage of the dataset's originals that are literal.

        Without a dataset, this is the percentage of the public originals that are literal; None if
        the originals are not the public ones.
        """
        if self.dataset_originals and self.dataset_literal is not None:
            return 100 * self.dataset_literal / self.dataset_originals
        if self.originals_are_released:
            return 100 * self.literal / self.originals
        return None


def _count(
    name: str, value: Callable[[JamStatistics], int | None], unknown: str = NO_VARIANTS
) -> Measure[JamStatistics]:
    """Return the measure of a count; `unknown` is the reason why the count may be missing."""
    return Measure(name, value, decimals=0, unknown=unknown)


def _count_in_dataset(
    name: str, *, dataset_field: str, originals_field: str
) -> Measure[JamStatistics]:
    """Return the measure of a count in the dataset.

    Without a dataset, the public originals are counted instead, because the dataset would have the
    same originals.

    Args:
        name: Name of the measure.
        dataset_field: Field of `JamStatistics` with the count in the dataset.
        originals_field: Field of `JamStatistics` with the count among the originals.
    """

    def count(statistics: JamStatistics) -> int | None:
        without_dataset = statistics.dataset_originals is None
        use_originals = without_dataset and statistics.originals_are_released
        field = originals_field if use_originals else dataset_field
        number: int | None = getattr(statistics, field)
        return number

    return _count(name, count)


def _literal_share_of_test_split(statistics: JamStatistics) -> float:
    """Return the percentage of ID10M's test sentences that have no idiom tag."""
    literal = statistics.raw_test_sentences - statistics.raw_test_with_idiom
    return 100 * literal / statistics.raw_test_sentences


ID10M = (
    _count("train_sentences", attrgetter("raw_train_sentences"), "there is no training file"),
    _count("test_sentences", attrgetter("raw_test_sentences")),
    # Printed without decimals, so rounding changes it by up to 0.5 instead of 0.05.
    Measure("literal_share", _literal_share_of_test_split, unit="%", decimals=1, tolerance=0.45),
)
"""Measures of ID10M in Table 2 and the text."""
JAM = (
    _count_in_dataset(
        "test_sentences", dataset_field="dataset_originals", originals_field="originals"
    ),
    _count("test_variants", attrgetter("dataset_variants")),
    _count_in_dataset(
        "unique_pies", dataset_field="unique_pies", originals_field="unique_pies_originals"
    ),
    _count_in_dataset("literal", dataset_field="dataset_literal", originals_field="literal"),
    Measure[JamStatistics](
        "literal_share", attrgetter("literal_share"), unit="%", unknown=NO_VARIANTS
    ),
    # The public data contains only originals that passed variant validation, so the number before
    # validation is unknown.
    _count(
        "filtered_originals",
        lambda statistics: None if statistics.originals_are_released else statistics.originals,
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
    """Combine the counts of all stages for one language.

    Args:
        filtering: Report on how ID10M's test sentences were filtered.
        originals: Originals after filtering.
        train_sentences: Number of sentences in ID10M's train split; None if unknown.
        manifest: Manifest of the dataset; None if there are no variants.
        computed_from: SHA-256 of each input file, by path.
        conditions: Conditions to store in the result.
    """
    dataset = manifest.model_dump() if manifest else {}  # if empty, all its counts are unknown
    oddities_by_kind = Counter(oddity["kind"] for oddity in filtering["oddities"])
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
        figurative=sum(original.is_figurative for original in originals),
        literal=sum(not original.is_figurative for original in originals),
        unique_pies_originals=count_pies(originals),
        oddities=dict(sorted(oddities_by_kind.items())),
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
