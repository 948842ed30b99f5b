"""Metric records of the attention analysis (ID10M-JAM, appendix H)."""

from pieline.core.conditions import Measured
from pieline.core.measures import Measure, share
from pieline.core.records import Frozen
from pieline.core.uncertainty import Interval


class AttendedVariant(Frozen):
    """Attention from a variant's PIE to the words up to the end of the PIE.

    Attributes:
        id: Variant id.
        words: Words up to the end of the PIE, because causal models do not attend to later words.
        pie_words: Indices in `words` of the PIE's words.
        cue_words: Indices in `words` of the content words of the added context.
        by_layer: Attention from the PIE to each word, one row per layer, averaged over heads.
        cue_share: Share of the attention to context words that falls on cue words, by layer and
            head (see `pieline.studies.jam.metrics.attention.cue_shares`).
        share: Mean of `cue_share`.
    """

    id: str
    words: list[str]
    pie_words: list[int]
    cue_words: list[int]
    by_layer: list[list[float]]
    cue_share: list[list[float]]
    share: float


class AttentionPair(Frozen):
    """Two variants of one original: `misleading` (MIS) and `resolved` (COR).

    MIS misled a run; all runs judged COR correctly.
    """

    original_id: str
    pie: str
    is_figurative: bool
    misleading: AttendedVariant
    resolved: AttendedVariant


class MeanShare(Frozen):
    """Mean of a share over pairs, and the 95% bootstrap interval of the mean.

    Without pairs, mean and interval are null. With a single pair, only the interval is null.
    """

    mean: float | None
    interval: Interval | None


class AttentionMetrics(Measured):
    """Results of the attention analysis for one language.

    Attributes:
        language: Language of the variants.
        model: Name of the analyzed model in models.yaml.
        judged_by: Runs that determine which variants mislead.
        pairs: Analyzed pairs.
        misleading: Mean share of the PIE's attention that falls on cue words in MIS variants.
        resolved: Mean share of the PIE's attention that falls on cue words in COR variants.
        difference: Mean of the differences between the shares in a pair (MIS minus COR).
    """

    language: str
    model: str
    judged_by: list[str]
    pairs: list[AttentionPair]
    misleading: MeanShare
    resolved: MeanShare
    difference: MeanShare


def _measure_of_share(field: str) -> Measure[AttentionMetrics]:
    """Return the measure of a field of `AttentionMetrics` that contains a `MeanShare`."""
    return share(
        f"attention_{field}",
        lambda metrics: getattr(metrics, field).mean,
        lambda metrics: getattr(metrics, field).interval,
    )


ATTENTION = (
    Measure[AttentionMetrics]("attention_pairs", lambda metrics: len(metrics.pairs), decimals=0),
    _measure_of_share("misleading"),
    _measure_of_share("resolved"),
    _measure_of_share("difference"),
)
"""Measures of appendix H: number of pairs, and shares of attention that fall on cue words."""
