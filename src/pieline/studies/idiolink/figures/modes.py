"""Figures: one style, and files whose bytes repeat."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from pieline.core.files import atomic_path
from pieline.reporting.models import SAMPLE_NOTE, ModelDescription
from pieline.studies.idiolink.metrics.scores import IdiolinkMetrics
from pieline.studies.idiolink.tables.zero_shot import METRICS, QUERY_MODES, per_cent

MODE_LABELS = {
    "sentence": "sentence",
    "span": "span",
    "instruction_sentence": "instruction + sentence",
    "instruction_span": "instruction + span",
}
MODE_COLOURS = {
    "sentence": "#9ecae1",
    "span": "#2171b5",
    "instruction_sentence": "#fdc086",
    "instruction_span": "#d95f0e",
}
"""Hue for the instruction, lightness for the embedding; apart also for colour-blind readers."""


def use_style(path: str | Path) -> None:
    """Draw without a display, in the project's style."""
    mpl.use("Agg")
    plt.style.use(path)


def save_figure(figure: Figure, *, pdf: str | Path, png: str | Path) -> None:
    """Write a figure as PDF and PNG without time stamps, atomically."""
    with atomic_path(pdf) as temporary:
        metadata = {"CreationDate": None, "Producer": None, "Creator": None}
        figure.savefig(temporary, format="pdf", metadata=metadata)
    with atomic_path(png) as temporary:
        figure.savefig(temporary, format="png", metadata={"Software": None})
    plt.close(figure)


def draw_query_modes(
    metrics: Sequence[IdiolinkMetrics], models: Sequence[ModelDescription]
) -> Figure:
    """Bars of both metrics (per cent) by model and query mode, of the full index."""
    found = {(item.model, item.query_mode): item for item in metrics}
    height = 1.2 + 0.75 * len(models)
    figure, axes = plt.subplots(1, 2, figsize=(7.2, height), sharey=True, layout="constrained")
    for axis, (metric, title) in zip(axes, METRICS.items(), strict=True):
        for place, model in enumerate(models):
            modes = [mode for mode in QUERY_MODES if (model.name, mode) in found]
            for number, mode in enumerate(modes):
                value = per_cent(found[model.name, mode], metric)
                if value is None:
                    continue
                row = place + 0.2 * (number - (len(modes) - 1) / 2)
                axis.barh(row, value, height=0.18, color=MODE_COLOURS[mode])
                axis.text(value + 1, row, f"{value:.1f}", va="center", fontsize=6)
        axis.set(xlim=(0, 105), xlabel=f"{title} (%)")
        axis.grid(axis="y", visible=False)
    axes[0].set_yticks(range(len(models)), [model.label for model in models])
    axes[0].invert_yaxis()
    handles = [mpl.patches.Patch(color=MODE_COLOURS[mode]) for mode in QUERY_MODES]
    figure.legend(
        handles, [MODE_LABELS[mode] for mode in QUERY_MODES], loc="outside upper center", ncols=4
    )
    if not all(item.dataset_is_released for item in metrics):
        figure.supxlabel(SAMPLE_NOTE, fontsize=6, color="#666666")
    return figure
