"""Figure of signal detection on IdioTS."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pieline.beyond.idiots.metrics import BiasMetrics, SignalEstimate
from pieline.beyond.idiots.table import compared_prompts
from pieline.core.records import load_records
from pieline.reporting.displays import NOT_IN_PAPER, Figure
from pieline.reporting.figures import COLUMN_WIDTH, add_notes
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.models import SAMPLE_NOTE
from pieline.studies.idiots.figures import GREY, MARKERS, add_legend
from pieline.studies.idiots.tables import SETTING_LABELS

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing


def sensitivity_against_criterion(inputs: DisplayInputs) -> Drawing:
    """Plot each setting of each model with its 95% intervals over PIEs.

    The reference setting has a diamond marker. Models that ignore the sentence have a sensitivity
    of about 0; models that readily say yes have a negative criterion. Settings that lack readable
    answers for either class of sentences have no marker.
    """
    import matplotlib.pyplot as plt

    metrics, labels = load_records(inputs.metrics, BiasMetrics), inputs.labels()
    figure, axis = plt.subplots(figsize=(COLUMN_WIDTH, 2.8), layout="constrained")
    axis.axhline(0, linestyle="--", linewidth=0.8, color=GREY)
    axis.axvline(0, linestyle="--", linewidth=0.8, color=GREY)
    pairs = [(record, one) for record in metrics for one in record.settings]
    for number, (item, signal) in enumerate(pairs):
        criterion, d_prime = signal.criterion, signal.d_prime
        if criterion is None or d_prime is None:
            continue
        setting = SETTING_LABELS.get(signal.setting, signal.setting)
        axis.errorbar(
            criterion.value,
            d_prime.value,
            xerr=_ends(criterion),
            yerr=_ends(d_prime),
            fmt="D" if signal.setting == item.against else MARKERS[number % len(MARKERS)],
            markersize=6,
            markerfacecolor="none",
            elinewidth=0.6,
            capsize=2,
            label=f"{labels[item.model]}: {setting}",
        )
    axis.set(xlabel="criterion c (left: readily says yes)", ylabel="sensitivity d′")
    add_legend(figure, *axis.get_legend_handles_labels())
    add_notes(figure, [SAMPLE_NOTE] if any(item.origin == "sample" for item in metrics) else [])
    return figure


BIAS_FIGURE = Figure(
    "idiots_bias",
    NOT_IN_PAPER,
    "Sensitivity d′ against the criterion.",
    sensitivity_against_criterion,
    compared_prompts,
)


def _ends(estimate: SignalEstimate) -> list[list[float]] | None:
    """Return the distances of the interval's bounds from the estimate; None without an interval."""
    if not (interval := estimate.interval):
        return None
    return [[max(0.0, estimate.value - interval.low)], [max(0.0, interval.high - estimate.value)]]
