"""Score the neutral-context ablation (ID10M-JAM, appendix G)."""

from collections import Counter
from collections.abc import Mapping, Sequence
from operator import attrgetter

from pieline.core.conditions import Evidence, Measured, RunIdentity
from pieline.core.measures import Measure, share
from pieline.core.uncertainty import Interval, ratio_interval
from pieline.studies.jam.metrics.identification import Scoring, is_correct
from pieline.studies.jam.predictions.records import IdiomPrediction
from pieline.studies.jam.records import JamSentence


class NeutralMetrics(Measured):
    """Metrics of the neutral-context ablation: how many confusing variants remain confusing.

    Attributes:
        language: Language of the confused run.
        model: Model of the confused run.
        setting: Setting of the confused run.
        seed: Seed of the confused run.
        confusing: Number of hard variants that the run misjudged.
        neutral: Number of confusing variants for which a neutral variant was written.
        still_confused: Number of neutral variants that were misjudged.
        share: Fraction of neutral variants that were misjudged; null if there are none.
        interval: 95% bootstrap interval of the share over originals; null if it is undefined.
        outcomes: Number of neutral variants by prediction outcome.
    """

    language: str
    model: str
    setting: str
    seed: int
    confusing: int
    neutral: int
    still_confused: int
    share: float | None
    interval: Interval | None
    outcomes: dict[str, int]


NEUTRAL: tuple[Measure[NeutralMetrics], ...] = (
    Measure("neutral_confusing", attrgetter("confusing"), decimals=0),
    Measure("neutral_variants", attrgetter("neutral"), decimals=0),
    Measure("neutral_confused", attrgetter("still_confused"), decimals=0),
    share("neutral_share", attrgetter("share"), attrgetter("interval"), decimals=1),
)
"""Measures of appendix G."""


def neutral_metrics(
    neutral: Sequence[JamSentence],
    predictions: Mapping[str, IdiomPrediction],
    run: RunIdentity,
    evidence: Evidence,
    *,
    confusing: int,
    scoring: Scoring,
    resamples: int,
) -> NeutralMetrics:
    """Score predictions (by sentence id) for the neutral variants of a run's confusing variants."""
    wrong: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for item in sorted(neutral, key=lambda item: item.id):
        right = is_correct(predictions[item.id].idioms, item, scoring=scoring)
        total[item.original_id] += 1
        wrong[item.original_id] += not right
    still_confused = wrong.total()
    return NeutralMetrics(
        **run._asdict(),
        confusing=confusing,
        neutral=len(neutral),
        still_confused=still_confused,
        share=still_confused / len(neutral) if neutral else None,
        interval=ratio_interval(
            [wrong[name] for name in total], list(total.values()), resamples=resamples, seed=0
        ),
        outcomes=dict(Counter(predictions[item.id].outcome for item in neutral)),
        **evidence.of_measured,
    )
