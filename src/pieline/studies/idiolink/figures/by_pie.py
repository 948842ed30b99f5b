"""Figure of nDCG@10 by PIE (not in the paper)."""

from textwrap import wrap

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from pieline.core.records import load_records
from pieline.reporting.inputs import DisplayInputs
from pieline.studies.idiolink.figures.modes import MODE_COLORS, MODE_LABELS
from pieline.studies.idiolink.metrics.scores import IdiolinkMetrics
from pieline.studies.idiolink.records import QUERY_MODES
from pieline.studies.idiolink.tables.by_pie import (
    gains_by_pie,
    hardest_first,
    notes_on_means,
    scores_by_pie,
    zero_shot_means,
)
from pieline.studies.idiolink.tables.zero_shot import notes_on


def by_pie(inputs: DisplayInputs) -> Figure:
    """Plot the mean nDCG@10 over zero-shot models by PIE (hardest first) and query mode.

    If there are fine-tuned models, a second panel shows the mean change from fine-tuning. The means
    of a panel are over the same models, which the notes name.
    """
    metrics = load_records(inputs.metrics, IdiolinkMetrics)
    scores = scores_by_pie(metrics)
    means, gains, labels = zero_shot_means(scores), gains_by_pie(scores), inputs.labels()
    pies = hardest_first(metrics, means)
    place = {pie: number for number, pie in enumerate(pies)}
    panels = [("zero-shot: nDCG@10 (%)", means)]
    notes = notes_on_means(means, metrics, labels)
    if gains.values:
        panels.append(("fine-tuning: change in points", gains))
        notes.append(
            f"Change from fine-tuning: mean over {', '.join(labels[name] for name in gains.models)}"
            " and all trainings evaluated in the query mode; those on sentences are also evaluated"
            " by span."
        )
    figure, axes = plt.subplots(
        1,
        len(panels),
        figsize=(3.0 + 2.1 * len(panels), 1.4 + 0.13 * len(pies)),
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
                s=18,
                color=MODE_COLORS[mode],
                zorder=3,
            )
        axis.set_xlabel(title)
    axes[0][0].set(xlim=(-2, 102), ylim=(len(pies) - 0.4, -0.6))
    axes[0][0].set_yticks(range(len(pies)), pies, fontsize=6)
    if len(panels) > 1:
        axes[0][1].axvline(0, color="black", linewidth=0.8)
    modes = [mode for mode in QUERY_MODES if mode in {*means.modes, *gains.modes}]
    handles = [mpl.lines.Line2D([], [], marker="o", ls="", color=MODE_COLORS[m]) for m in modes]
    figure.legend(handles, [MODE_LABELS[m] for m in modes], loc="outside upper center", ncols=4)
    # At this font size, about 24 characters fit in an inch.
    wrapped = (
        line
        for note in (*notes, *notes_on(metrics))
        for line in wrap(note, int(24 * figure.get_figwidth()))
    )
    figure.supxlabel("\n".join(wrapped), fontsize=5, color="#666666")
    return figure
