"""Draw the figure of IdioTS: recall against specificity."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING

from pieline.core.records import load_records
from pieline.reporting.displays import Figure
from pieline.reporting.figures import COLUMN_WIDTH, SMALLEST, add_notes
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.models import SAMPLE_NOTE, ModelDescription
from pieline.studies.idiots.metrics import DetectionMetrics, Score
from pieline.studies.idiots.tables import all_runs, run_labels, run_of

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

GREY = "#777777"
_PRINTED = " (printed)"
"""End of the label of a model with printed scores."""
MARKERS = "os^v<>pX*h"
"""Marker shapes of our runs; the shapes differ, so that coinciding points stay visible."""
_PRINTED_MARKERS = "sD^vP*X"
"""Marker shapes of models with printed scores."""


def recall_against_specificity(inputs: DisplayInputs) -> Drawing:
    """Plot our runs with 95% intervals, and the paper's models as hollow markers.

    The dashed line marks a balanced accuracy of 0.5, which a model can reach without using the
    sentence. Runs with undefined recall or specificity are only in the legend.
    """
    import matplotlib.pyplot as plt

    metrics = load_records(inputs.metrics, DetectionMetrics)
    figure, axis = plt.subplots(figsize=(COLUMN_WIDTH, 2.8), layout="constrained")
    _draw_balanced_line(axis)
    _draw_runs(axis, metrics, inputs.models)
    _draw_printed(axis, inputs.printed("idiots_table1", "model"))
    axis.set(
        xlim=(-0.04, 1.04),
        ylim=(-0.04, 1.04),
        xlabel="specificity",
        ylabel="recall",
        aspect="equal",
    )
    _add_legend_of_runs(figure, axis)
    is_sample = any(run_metrics.origin == "sample" for run_metrics in metrics)
    add_notes(figure, [SAMPLE_NOTE] if is_sample else [])
    return figure


def _draw_balanced_line(axis: Axes) -> None:
    axis.plot([0, 1], [1, 0], linestyle="--", linewidth=0.8, color=GREY)
    axis.text(
        0.5,
        0.5,
        "balanced accuracy 0.5",
        rotation=-45,
        rotation_mode="anchor",
        horizontalalignment="center",
        verticalalignment="bottom",
        fontsize=SMALLEST,
        color=GREY,
    )


def _draw_runs(
    axis: Axes, metrics: Sequence[DetectionMetrics], models: Sequence[ModelDescription]
) -> None:
    """Draw a marker with 95% intervals for each run."""
    runs = [tuple(run_of(run_metrics).values()) for run_metrics in metrics]
    labels = run_labels(runs, models)
    for label, run_metrics, marker in zip(labels, metrics, cycle(MARKERS), strict=False):
        recall, specificity = run_metrics.recall, run_metrics.specificity
        if recall.value is None or specificity.value is None:
            # An empty plot adds an entry to the legend.
            axis.plot([], [], marker, label=f"{label}: nothing to measure")
            continue
        axis.errorbar(
            specificity.value,
            recall.value,
            xerr=_distances_to_bounds(specificity),
            yerr=_distances_to_bounds(recall),
            fmt=marker,
            markersize=5,
            elinewidth=0.8,
            capsize=2,
            label=label,
        )


def _draw_printed(axis: Axes, printed: Mapping[tuple[str, ...], Mapping[str, float]]) -> None:
    """Draw a hollow marker for each row of the paper's Table 1; `printed` maps models to rows."""
    for ((model,), row), marker in zip(printed.items(), _PRINTED_MARKERS, strict=False):
        axis.plot(
            row["specificity"],
            row["recall"],
            marker,
            markersize=5,
            markerfacecolor="none",
            color=GREY,
            label=model + _PRINTED,
        )


RECALL_SPECIFICITY = Figure(
    "idiots_recall_specificity",
    "Section 5.1",
    "Recall against specificity of each run.",
    recall_against_specificity,
    all_runs,
    printed=("idiots_table1",),
)


def _add_legend_of_runs(figure: Drawing, axis: Axes) -> None:
    """Draw a legend with our runs, followed by the models with printed scores."""
    handles, labels = axis.get_legend_handles_labels()
    entries = list(zip(handles, labels, strict=True))
    # The sort keeps the order of our runs, and that of the printed models.
    entries.sort(key=lambda entry: entry[1].endswith(_PRINTED))
    add_legend(figure, [handle for handle, _ in entries], [label for _, label in entries])


def add_legend(figure: Drawing, handles: Sequence[Artist], labels: Sequence[str]) -> None:
    """Draw a legend above the panel, and make the figure higher by the height of the legend."""
    # At this font size, two labels of up to 26 characters fit side by side.
    longest_in_two_columns = 26
    inches_per_line = 0.14
    longest_label = max((len(label) for label in labels), default=0)
    columns = 2 if longest_label <= longest_in_two_columns else 1
    lines = math.ceil(len(labels) / columns)
    figure.set_figheight(figure.get_figheight() + inches_per_line * lines)
    figure.legend(handles, labels, loc="outside upper center", ncols=columns, fontsize=SMALLEST)


def _distances_to_bounds(score: Score) -> list[list[float]]:
    """Return the distances from a score to the bounds of its interval, as matplotlib expects."""
    assert score.value is not None and score.low is not None and score.high is not None
    below = max(0.0, score.value - score.low)
    above = max(0.0, score.high - score.value)
    return [[below], [above]]
