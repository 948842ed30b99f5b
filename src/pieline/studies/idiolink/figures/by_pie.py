"""Figure of nDCG@10 by PIE (not in the paper)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pieline.core.records import load_records
from pieline.reporting.displays import NOT_IN_PAPER, Figure
from pieline.reporting.figures import COLUMN_WIDTH, SMALLEST, add_notes
from pieline.reporting.inputs import DisplayInputs
from pieline.studies.idiolink.figures.modes import MODE_COLORS, MODE_LABELS, MODE_MARKERS
from pieline.studies.idiolink.metrics.scores import IdiolinkMetrics
from pieline.studies.idiolink.records import QUERY_MODES
from pieline.studies.idiolink.tables.by_pie import (
    by_pie_inputs,
    by_pie_numbers,
    gains_by_pie,
    hardest_first,
    notes_on_means,
    zero_shot_means,
)
from pieline.studies.idiolink.tables.finetuning import LOSSES
from pieline.studies.idiolink.tables.zero_shot import notes_on

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing


def by_pie(inputs: DisplayInputs) -> Drawing:
    """Plot the mean nDCG@10 over zero-shot models by PIE (hardest first) and query mode.

    If there are fine-tuned models, a second panel shows the mean change from fine-tuning. The means
    of a panel are over the same models, which the notes name.
    """
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    ours, labels = by_pie_numbers(inputs), inputs.labels()
    means, gains = zero_shot_means(ours), gains_by_pie(ours)
    pies = hardest_first(ours, means)
    place = {pie: number for number, pie in enumerate(pies)}
    panels = [("nDCG@10 (%), zero-shot", means)]
    notes = notes_on_means(means, ours, labels)
    if gains.models:
        panels.append(("nDCG@10, points gained", gains))
        names = ", ".join(labels[name] for name in gains.models)
        losses = " and ".join(LOSSES[name] for name in sorted({*ours["loss"]} - {""}))
        notes.append(
            f"Gains from fine-tuning (loss: {losses}): mean over {names}"
            " and all trainings evaluated in the query mode; those on sentences are also evaluated"
            " by span."
        )
    figure, axes = plt.subplots(
        1,
        len(panels),
        figsize=(COLUMN_WIDTH, 0.9 + 0.11 * len(pies)),
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    for axis, (title, shown) in zip(axes[0], panels, strict=True):
        for mode, of_mode in shown.values.items():
            axis.scatter(
                of_mode,
                of_mode.index.map(place),
                s=14,
                marker=MODE_MARKERS[str(mode)],
                color=MODE_COLORS[str(mode)],
                edgecolors="#333333",
                linewidths=0.4,
                zorder=3,
            )
        axis.set_xlabel(title, fontsize=SMALLEST)
    axes[0][0].set(ylim=(len(pies) - 0.4, -0.6))
    axes[0][0].set_yticks(range(len(pies)), pies, fontsize=SMALLEST)
    if len(panels) > 1:
        axes[0][1].axvline(0, color="black", linewidth=0.8)
    modes = [mode for mode in QUERY_MODES if mode in {*means.values, *gains.values}]
    handles = [
        mpl.lines.Line2D(
            [],
            [],
            marker=MODE_MARKERS[mode],
            ls="",
            ms=4,
            color=MODE_COLORS[mode],
            markeredgecolor="#333333",
            markeredgewidth=0.4,
        )
        for mode in modes
    ]
    figure.legend(handles, [MODE_LABELS[m] for m in modes], loc="outside upper center", ncols=2)
    metrics = load_records(inputs.metrics, IdiolinkMetrics)
    add_notes(figure, (*notes, *notes_on(metrics), *inputs.origins()))
    return figure


BY_PIE_FIGURE = Figure(
    "idiolink_by_pie",
    NOT_IN_PAPER,
    "nDCG@10 of each PIE.",
    by_pie,
    by_pie_inputs,
)
