"""What all tables and figures of ID10M-JAM say alike."""

from collections.abc import Iterable, Sequence

from pieline.reporting.models import SAMPLE_NOTE
from pieline.studies.jam.metrics.runs import JamMetrics
from pieline.studies.jam.metrics.seeds import RunKey

GROUPS = {
    "zero_shot": "Zero-shot",
    "zero_shot_schema": "Zero-shot, form enforced",
    "few_shot_sc_cotbest": "Few-shot +SC+CoTBest",
    "reasoning": "Reasoning LLMs",
    "fine_tuned": "Encoders",
}
"""Parts of every table, in the paper's order; the second is not the paper's."""

NOT_RELEASED = "sample data, not the released ID10M-JAM"


def languages_of(runs: Iterable[RunKey]) -> list[str]:
    """The languages of some runs, in the order of every table."""
    return sorted({key.language for key in runs})


def obstacles_of(metrics: Sequence[JamMetrics]) -> list[str]:
    """What makes numbers of these runs incomparable with the printed ones."""
    found = []
    if not all(item.dataset_is_released for item in metrics):
        found.append(NOT_RELEASED)
    if not all(item.overall.variants for item in metrics):
        found.append("no hard variants")
    reasons = (reason for item in metrics for reason in item.conditions.deviations)
    return [*found, *dict.fromkeys(reasons)]


def notes_of(*released: bool) -> tuple[str, ...]:
    """The note on sample data, unless everything is computed on the released data."""
    return () if all(released) else (SAMPLE_NOTE,)
