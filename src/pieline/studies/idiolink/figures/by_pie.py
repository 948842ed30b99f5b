"""Figure of nDCG@10 by PIE (not in the paper)."""

from __future__ import annotations

from collections.abc import Iterable
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
    gains_by_pie,
    hardest_first,
    is_fine_tuned,
    notes_on_means,
    scores_by_pie,
    zero_shot_means,
)
from pieline.studies.idiolink.tables.finetuning import LOSSES, Tuned
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

    metrics = load_records(inputs.metrics, IdiolinkMetrics)
    scores = scores_by_pie(metrics)
    means, gains, labels = zero_shot_means(scores), gains_by_pie(scores), inputs.labels()
    pies = hardest_first(metrics, means)
    place = {pie: number for number, pie in enumerate(pies)}
    panels = [("nDCG@10 (%), zero-shot", means)]
    notes = notes_on_means(means, metrics, labels)
    if gains.values:
        panels.append(("nDCG@10, points gained", gains))
        names = ", ".join(labels[name] for name in gains.models)
        notes.append(
            f"Gains from fine-tuning (loss: {' and '.join(_losses(metrics))}): mean over {names}"
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
        for mode in shown.modes:
            mode_values = {pie: mean for (pie, name), mean in shown.values.items() if name == mode}
            axis.scatter(
                list(mode_values.values()),
                [place[pie] for pie in mode_values],
                s=14,
                marker=MODE_MARKERS[mode],
                color=MODE_COLORS[mode],
                edgecolors="#333333",
                linewidths=0.4,
                zorder=3,
            )
        axis.set_xlabel(title, fontsize=SMALLEST)
    axes[0][0].set(ylim=(len(pies) - 0.4, -0.6))
    axes[0][0].set_yticks(range(len(pies)), pies, fontsize=SMALLEST)
    if len(panels) > 1:
        axes[0][1].axvline(0, color="black", linewidth=0.8)
    modes = [mode for mode in QUERY_MODES if mode in {*means.modes, *gains.modes}]
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
    add_notes(figure, (*notes, *notes_on(metrics)))
    return figure


BY_PIE_FIGURE = Figure(
    "idiolink_by_pie",
    NOT_IN_PAPER,
    "nDCG@10 of each PIE.",
    by_pie,
    by_pie_inputs,
)


def _losses(metrics: Iterable[IdiolinkMetrics]) -> list[str]:
    """Return the names of the losses of the fine-tuned models."""
    models = {item.model for item in metrics if is_fine_tuned(item.model)}
    return [LOSSES[name] for name in sorted({Tuned.parse(model).loss for model in models})]
