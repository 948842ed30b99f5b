"""Draw the forest plot of the effects of custom prompts and of additional training data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pieline.beyond.jam.metrics import Effect
from pieline.beyond.jam.table import (
    PromptRow,
    describe_comparison,
    effects_inputs,
    prompt_label,
    prompt_rows,
)
from pieline.core.records import load_records
from pieline.languages.registry import get_language
from pieline.reporting.displays import NOT_IN_PAPER, Figure
from pieline.reporting.figures import PAGE_WIDTH, add_notes
from pieline.reporting.inputs import DisplayInputs
from pieline.studies.jam.metrics.scores import JamMetrics
from pieline.studies.jam.tables.common import notes_on

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

PANELS = {
    "all": "ND",
    "literal": "false alarms (literal)",
    "idiomatic": "misses (idiomatic)",
}
"""Panel titles by usage."""


def _shown_effect(row: PromptRow) -> Effect | None:
    """Return the effect that the figure shows: for all usages on ND, for one usage on errors."""
    if row.usage == "all":
        return row.measures.drift_effect
    return row.measures.errors_effect


def forest(inputs: DisplayInputs) -> Drawing:
    """Draw each run's differences from the reference (percentage points), with 95% intervals.

    Negative differences are improvements. Filled markers denote differences that are significant at
    5% after Holm's correction.
    """
    import matplotlib.pyplot as plt

    rows = list(prompt_rows(inputs))
    # A row of the figure, from top to bottom, for each run with an effect.
    runs = list(dict.fromkeys(row.run for row in rows if _shown_effect(row)))
    labels = inputs.labels()
    figure, axes = plt.subplots(
        1,
        len(PANELS),
        figsize=(PAGE_WIDTH, 1.0 + 0.2 * len(runs)),
        sharey=True,
        layout="constrained",
    )
    for axis, (usage, title) in zip(axes, PANELS.items(), strict=True):
        axis.axvline(0, linewidth=0.8, color="#777777")
        axis.set_title(title)
        axis.set(xlabel="difference (points)")
        has_effect = False
        for row in rows:
            effect = _shown_effect(row)
            if row.usage == usage and effect:
                _draw_effect(axis, runs.index(row.run), effect)
                has_effect = True
        if not has_effect:
            axis.set_xticks([])
            axis.text(0.5, 0.5, "nothing to compare", transform=axis.transAxes, ha="center")
    run_labels = [
        f"{labels[run.model]}, {get_language(run.language).label}: {prompt_label(run.setting)}"
        for run in runs
    ]
    axes[0].set_yticks(range(len(runs)), run_labels)
    axes[0].set_ylim(max(0.5, len(runs) - 0.5), -0.5)
    notes = (
        f"{describe_comparison(inputs)}; filled: p < 0.05 (Holm).",
        *notes_on(load_records(inputs.metrics, JamMetrics), inputs),
    )
    add_notes(figure, notes)
    return figure


def _draw_effect(axis: Axes, y: int, effect: Effect) -> None:
    """Draw an effect and its interval in percentage points; fill the marker if p < 0.05 (Holm)."""
    if effect.interval:
        bounds = [100 * effect.interval.low, 100 * effect.interval.high]
        axis.plot(bounds, [y, y], linewidth=0.9, color="#333333")
    face = "#333333" if effect.p_holm < 0.05 else "white"
    difference = 100 * effect.difference
    axis.plot(difference, y, "o", markersize=4, color="#333333", markerfacecolor=face)


PROMPTS_FIGURE = Figure(
    "jam_prompts",
    NOT_IN_PAPER,
    "Effects of prompts and training data, with 95% intervals.",
    forest,
    effects_inputs,
)
