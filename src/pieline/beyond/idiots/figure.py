"""Draw the figure of signal detection on IdioTS (not in the paper)."""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING

from pieline.beyond.idiots.metrics import BiasMetrics, SignalEstimate
from pieline.beyond.idiots.table import compared_prompts
from pieline.core.records import load_records
from pieline.reporting.displays import NOT_IN_PAPER, Figure
from pieline.reporting.figures import COLUMN_WIDTH, add_notes
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.models import SAMPLE_NOTE
from pieline.studies.idiots.figures import GREY, MARKERS, add_legend
from pieline.studies.idiots.tables import setting_label

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing


def sensitivity_against_criterion(inputs: DisplayInputs) -> Drawing:
    """Plot the sensitivity and criterion of each model and setting, with 95% intervals over PIEs.

    The reference setting has a diamond marker. Models that ignore the sentence have a sensitivity
    of about 0; models that readily say yes have a negative criterion. Settings that lack readable
    answers for either class of sentences have no marker.
    """
    import matplotlib.pyplot as plt

    metrics, labels = load_records(inputs.metrics, BiasMetrics), inputs.labels()
    figure, axis = plt.subplots(figsize=(COLUMN_WIDTH, 2.8), layout="constrained")
    axis.axhline(0, linestyle="--", linewidth=0.8, color=GREY)
    axis.axvline(0, linestyle="--", linewidth=0.8, color=GREY)
    markers = cycle(MARKERS)
    for model_metrics in metrics:
        for signal in model_metrics.settings:
            marker = next(markers)
            if signal.setting == model_metrics.against:
                marker = "D"
            if signal.criterion is None or signal.d_prime is None:
                continue
            axis.errorbar(
                signal.criterion.value,
                signal.d_prime.value,
                xerr=_error_bar(signal.criterion),
                yerr=_error_bar(signal.d_prime),
                fmt=marker,
                markersize=6,
                markerfacecolor="none",
                elinewidth=0.6,
                capsize=2,
                label=f"{labels[model_metrics.model]}: {setting_label(signal.setting)}",
            )
    axis.set(xlabel="criterion c (left: readily says yes)", ylabel="sensitivity d′")
    add_legend(figure, *axis.get_legend_handles_labels())
    is_sample = any(model_metrics.origin == "sample" for model_metrics in metrics)
    add_notes(figure, [SAMPLE_NOTE] if is_sample else [])
    return figure


BIAS_FIGURE = Figure(
    "idiots_bias",
    NOT_IN_PAPER,
    "Sensitivity d′ against the criterion.",
    sensitivity_against_criterion,
    compared_prompts,
)


def _error_bar(estimate: SignalEstimate) -> list[list[float]] | None:
    """Return how far the interval extends below and above `estimate`; None if it has no interval.

    The result has the shape (2, 1), as required by matplotlib.
    """
    interval = estimate.interval
    if interval is None:
        return None
    # The estimate may lie outside the interval.
    below = max(0.0, estimate.value - interval.low)
    above = max(0.0, interval.high - estimate.value)
    return [[below], [above]]
