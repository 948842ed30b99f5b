"""Metric records of the attention analysis (ID10M-JAM, appendix H)."""

from operator import attrgetter

from pieline.core.conditions import Measured
from pieline.core.measures import Measure, share
from pieline.core.records import Frozen
from pieline.core.uncertainty import Interval


class AttendedVariant(Frozen):
    """Attention from the PIE of one variant to the words before it.

    Attributes:
        id: Variant id.
        words: Words up to the end of the PIE; later words cannot be attended to.
        pie_words: Indices of the PIE's words.
        cue_words: Indices of the content words of the added context.
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
    """Pair of an original's variants: MIS, which misled some run; COR, which all runs resolved."""

    original_id: str
    pie: str
    is_figurative: bool
    misleading: AttendedVariant
    resolved: AttendedVariant


class MeanShare(Frozen):
    """Mean over pairs with its 95% bootstrap interval.

    Both are null without pairs; the interval is also null for a single pair.
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
        misleading: Share of the PIE's attention that falls on cue words, for MIS variants.
        resolved: Share of the PIE's attention that falls on cue words, for COR variants.
        difference: Difference between the two shares within pairs, MIS minus COR.
    """

    language: str
    model: str
    judged_by: list[str]
    pairs: list[AttentionPair]
    misleading: MeanShare
    resolved: MeanShare
    difference: MeanShare


def _share(name: str) -> Measure[AttentionMetrics]:
    """Return the measure of a field of type `MeanShare`."""
    part = attrgetter(name)
    return share(
        f"attention_{name}", lambda item: part(item).mean, lambda item: part(item).interval
    )


ATTENTION = (
    Measure[AttentionMetrics]("attention_pairs", lambda item: len(item.pairs), decimals=0),
    *map(_share, ("misleading", "resolved", "difference")),
)
"""Measures of appendix H: number of pairs, and shares of attention that fall on cue words."""
