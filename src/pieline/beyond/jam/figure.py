"""Draw a forest plot of the effects of custom prompts and of added training data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pieline.beyond.jam.metrics import Effect
from pieline.beyond.jam.table import (
    PromptRow,
    compared,
    effects,
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
    from matplotlib.figure import Figure as Drawing

PANELS = {
    "all": "ND",
    "literal": "false alarms (literal)",
    "idiomatic": "misses (idiomatic)",
}
"""Panel titles by usage."""


def _effect(row: PromptRow) -> Effect | None:
    measures = row.measures
    return measures.drift_effect if row.usage == "all" else measures.errors_effect


def forest(inputs: DisplayInputs) -> Drawing:
    """Draw the differences from the reference, in percentage points, with 95% intervals.

    Negative differences are improvements. Filled markers denote differences that are significant at
    5% after Holm's correction.
    """
    import matplotlib.pyplot as plt

    rows = [row for row in prompt_rows(inputs) if _effect(row)]
    runs = list(dict.fromkeys(row.run for row in rows))
    labels = inputs.labels()
    figure, axes = plt.subplots(
        1, 3, figsize=(PAGE_WIDTH, 1.0 + 0.2 * len(runs)), sharey=True, layout="constrained"
    )
    for axis, (usage, title) in zip(axes, PANELS.items(), strict=True):
        axis.axvline(0, linewidth=0.8, color="#777777")
        axis.set_title(title)
        axis.set(xlabel="difference (points)")
        shown = [row for row in rows if row.usage == usage]
        if not shown:
            axis.set_xticks([])
            axis.text(0.5, 0.5, "nothing to compare", transform=axis.transAxes, ha="center")
        for row in shown:
            effect = _effect(row)
            assert effect  # filtered above
            place, value = runs.index(row.run), 100 * effect.difference
            if effect.interval:
                ends = [100 * end for _, end in effect.interval]
                axis.plot(ends, [place, place], linewidth=0.9, color="#333333")
            face = "#333333" if effect.p_holm < 0.05 else "white"
            axis.plot(value, place, "o", markersize=4, color="#333333", markerfacecolor=face)
    names = [
        f"{labels[run.model]}, {get_language(run.language).label}: {prompt_label(run.setting)}"
        for run in runs
    ]
    axes[0].set_yticks(range(len(runs)), names)
    axes[0].set_ylim(max(0.5, len(runs) - 0.5), -0.5)
    notes = (
        f"{compared(inputs)}; filled: p < 0.05 (Holm).",
        *notes_on(load_records(inputs.metrics, JamMetrics), inputs),
    )
    add_notes(figure, notes)
    return figure


PROMPTS_FIGURE = Figure(
    "jam_prompts",
    NOT_IN_PAPER,
    "Effects of prompts and training data, with 95% intervals.",
    forest,
    effects,
)
