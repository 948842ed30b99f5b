"""The metric file of the attention analysis (ID10M-JAM, appendix H)."""

from pieline.core.conditions import MetricRecord
from pieline.core.records import Frozen
from pieline.core.uncertainty import Interval


class AttendedVariant(Frozen):
    """One variant as the model sees it.

    Attributes:
        id: of the variant.
        words: of the variant, up to the end of the PIE: what comes later is not attended to.
        pie_words: places of the PIE.
        cue_words: places of the content words of the added context.
        by_layer: attention from the PIE to each word, a row a layer, mean over its heads.
        cue_share: by layer and head, the share of the attention to context words that falls on
            cue words (see `pieline.studies.jam.metrics.attention.cue_shares`).
        share: mean of `cue_share`.
    """

    id: str
    words: list[str]
    pie_words: list[int]
    cue_words: list[int]
    by_layer: list[list[float]]
    cue_share: list[list[float]]
    share: float


class AttentionPair(Frozen):
    """Two variants of one original: one misled some model (MIS), all models resolved one (COR)."""

    original_id: str
    pie: str
    is_figurative: bool
    misleading: AttendedVariant
    resolved: AttendedVariant


class MeanShare(Frozen):
    """A mean over pairs with its bootstrap interval; null without pairs."""

    mean: float | None
    interval: Interval | None


class AttentionMetrics(MetricRecord):
    """The attention analysis of one language.

    Attributes:
        language: of the variants.
        model: name in models.yaml of the model that was looked into.
        dataset_is_released: whether the variants are those of the paper.
        judged_by: the runs whose decisions say which variants mislead.
        pairs: all pairs.
        misleading, resolved: share of the PIE's attention on cue words, of MIS and COR variants.
        difference: MIS minus COR within pairs.
    """

    language: str
    model: str
    dataset_is_released: bool
    judged_by: list[str]
    pairs: list[AttentionPair]
    misleading: MeanShare
    resolved: MeanShare
    difference: MeanShare
