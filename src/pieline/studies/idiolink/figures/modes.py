"""Figure of both metrics by model and query mode (IdioLink, section 6)."""

from __future__ import annotations

from math import isnan
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from pieline.core.records import load_records
from pieline.reporting.displays import ConfiguredStudy, Figure
from pieline.reporting.figures import COLUMN_WIDTH, SMALLEST, add_notes
from pieline.reporting.inputs import DisplayInputs
from pieline.studies.idiolink import inputs as given
from pieline.studies.idiolink.metrics.scores import IdiolinkMetrics
from pieline.studies.idiolink.records import QUERY_MODES
from pieline.studies.idiolink.tables.zero_shot import METRICS, notes_on, of_rankings

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

MODE_LABELS = {
    "sentence": "sentence",
    "span": "span",
    "instruction_sentence": "instruction + sentence",
    "instruction_span": "instruction + span",
}
MODE_COLORS = {
    "sentence": "#9ecae1",
    "span": "#2171b5",
    "instruction_sentence": "#fdc086",
    "instruction_span": "#d95f0e",
}
"""Colors safe for color blindness: hue encodes the instruction, lightness the embedding."""
MODE_MARKERS = {"sentence": "o", "span": "s", "instruction_sentence": "^", "instruction_span": "D"}
MODE_HATCHES = {
    "sentence": "",
    "span": "",
    "instruction_sentence": "//////",
    "instruction_span": "//////",
}
"""Hatches distinguish the two hues in grey print."""


def modes(inputs: DisplayInputs) -> Drawing:
    """Plot both metrics (percent) as bars by model and query mode, for the full index.

    Error bars are bootstrap intervals over PIEs.
    """
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    metrics, models = load_records(inputs.metrics, IdiolinkMetrics), inputs.models
    rows: Any = of_rankings(inputs).itertuples()
    scores = {(row.model, row.query_mode, row.measure): row for row in rows}
    size = (COLUMN_WIDTH, 0.8 + 0.48 * len(models))
    figure, axes = plt.subplots(1, 2, figsize=size, sharey=True, layout="constrained")
    for axis, (metric, title) in zip(axes, METRICS.items(), strict=True):
        for place, model in enumerate(models):
            of_model = [mode for mode in QUERY_MODES if (model.name, mode, metric) in scores]
            for number, mode in enumerate(of_model):
                score = scores[model.name, mode, metric]
                if isnan(score.ours):
                    continue
                row = place + 0.2 * (number - (len(of_model) - 1) / 2)
                axis.barh(row, score.ours, height=0.18, **_fill(mode))
                if not isnan(score.high):
                    axis.plot([score.low, score.high], [row, row], color="black", linewidth=0.8)
                end = score.ours if isnan(score.high) else score.high
                axis.text(end + 1, row, f"{score.ours:.1f}", va="center", fontsize=SMALLEST)
        axis.set(xlim=(0, 115), xlabel=f"{title} (%)")
        axis.grid(axis="y", visible=False)
    axes[0].set_yticks(range(len(models)), ["\n".join(wrap(model.label, 16)) for model in models])
    axes[0].invert_yaxis()
    handles = [mpl.patches.Patch(**_fill(mode)) for mode in QUERY_MODES]
    figure.legend(
        handles, [MODE_LABELS[mode] for mode in QUERY_MODES], loc="outside upper center", ncols=2
    )
    notes = [
        f"Lines: 95% bootstrap intervals over {len(item.by_pie)} PIEs."
        for item in metrics[:1]
        if item.intervals
    ]
    add_notes(figure, [*notes, *notes_on(metrics), *inputs.origins()])
    return figure


def _zero_shot(study: ConfiguredStudy) -> DisplayInputs | None:
    ranked = given.ranked(study)
    return given.shown(study, given.zero_shot(study, ranked), ranked)


MODES_FIGURE = Figure(
    "idiolink_modes",
    "Section 6",
    "Each model in the four query modes, with intervals over PIEs.",
    modes,
    _zero_shot,
)


def _fill(mode: str) -> dict[str, Any]:
    """Return the appearance of a mode's bars."""
    fill = {"facecolor": MODE_COLORS[mode], "hatch": MODE_HATCHES[mode]}
    return {**fill, "edgecolor": "white", "linewidth": 0}
