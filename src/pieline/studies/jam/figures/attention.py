"""Draw ID10M-JAM's Figure 7: attention from the PIE to the words before it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pieline.core.records import load_record
from pieline.reporting.displays import ConfiguredStudy, Figure
from pieline.reporting.figures import COLUMN_WIDTH, PAGE_WIDTH, SMALLEST, add_notes
from pieline.reporting.inputs import DisplayInputs
from pieline.studies.jam.metrics.attention_records import AttendedVariant, AttentionMetrics
from pieline.studies.jam.tables.common import attention_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing


def attention(inputs: DisplayInputs) -> Drawing:
    """Draw the attention of the first pair by layer, MIS above COR (Figure 7).

    The PIE is blank, as is the first word, which attracts attention regardless of its meaning. If
    there are no pairs, the figure contains only a message.
    """
    import matplotlib.pyplot as plt

    metrics = load_record(inputs.metrics[0], AttentionMetrics)
    if not metrics.pairs:
        figure, axis = plt.subplots(figsize=(COLUMN_WIDTH, 1.2), layout="constrained")
        axis.axis("off")
        axis.text(0.5, 0.5, "no original has both a misleading and a resolved variant", ha="center")
        return figure
    pair = metrics.pairs[0]
    figure, axes = plt.subplots(2, 1, figsize=(PAGE_WIDTH, 4.6), layout="constrained")
    highest = max(
        float(np.nanmax(_visible_attention(item))) for item in (pair.misleading, pair.resolved)
    )
    for axis, (title, variant) in zip(
        axes, (("MIS", pair.misleading), ("COR", pair.resolved)), strict=True
    ):
        _heat_map(axis, variant, f"{title}: {variant.id}, PIE “{pair.pie}”", highest)
    add_notes(figure, [*inputs.notes, "Cue words are orange and italic, PIEs bold."])
    return figure


def _made(study: ConfiguredStudy) -> DisplayInputs | None:
    inputs = attention_of(study)
    return inputs if inputs and inputs.metrics else None


ATTENTION_FIGURE = Figure(
    "jam_attention",
    "Figure 7",
    "Attention from the tokens of a PIE to its context.",
    attention,
    _made,
)


def _visible_attention(variant: AttendedVariant) -> npt.NDArray[np.float64]:
    """Return the attention by layer, with NaN for the first word and the PIE."""
    values = np.array(variant.by_layer)
    values[:, [0, *variant.pie_words]] = np.nan
    return values


def _heat_map(axis: Axes, variant: AttendedVariant, title: str, highest: float) -> None:
    # Share the scale between panels, and use the square root because most attention is near zero.
    from matplotlib.colors import PowerNorm
    from matplotlib.ticker import MaxNLocator

    norm = PowerNorm(0.5, vmin=0, vmax=highest)
    image = axis.imshow(_visible_attention(variant), aspect="auto", cmap="viridis", norm=norm)
    axis.figure.colorbar(image, ax=axis, label="attention", pad=0.01)
    axis.set_xticks(
        range(len(variant.words)), variant.words, rotation=60, ha="right", fontsize=SMALLEST
    )
    for place, text in enumerate(axis.get_xticklabels()):
        if place in variant.cue_words:
            text.set(color="#d95f0e", fontstyle="italic")
        if place in variant.pie_words:
            text.set_fontweight("bold")
    axis.set_ylabel("layer")
    axis.yaxis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 5, 10]))
    axis.grid(visible=False)
    axis.set_title(f"{title} (cue words: {100 * variant.share:.1f}%)", fontsize=7)
