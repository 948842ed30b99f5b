"""Draw the figures of the dataset (Figure 2) and of the attention analysis (Figure 6)."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from pieline.core.records import load_record, load_records
from pieline.languages.registry import get_language
from pieline.reporting.displays import ConfiguredStudy, Figure
from pieline.reporting.figures import COLUMN_WIDTH, PAGE_WIDTH, SMALLEST, add_notes
from pieline.reporting.inputs import DisplayInputs
from pieline.studies.jam.metrics.attention_records import AttendedVariant, AttentionMetrics
from pieline.studies.jam.metrics.statistics import JamStatistics
from pieline.studies.jam.tables.common import attention_of, statistics_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

_SENTENCES, _VARIANTS = "#2171b5", "#fdae6b"
_PANEL = 1.15
"""Panel width as a multiple of the length of the longest bar."""
_REASONS = {
    "ambiguous": "ambiguous",
    "wrong_label": "wrong label",
    "several_pies": "several PIEs",
    "translation_appended": "with translation",
    "typo": "typo",
    "not_recorded": "reason not published",
    "no_known_pie": "no known PIE",
}


def flow(inputs: DisplayInputs) -> Drawing:
    """Draw the number of sentences and variants after each stage, one panel per language."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    statistics = load_records(inputs.metrics, JamStatistics)
    columns = min(2, len(statistics))
    rows = -(-len(statistics) // columns)
    size = (COLUMN_WIDTH if columns == 1 else PAGE_WIDTH, 0.3 + 2.5 * rows)
    figure, axes = plt.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False)
    for axis, item in zip_longest(axes.flat, statistics):
        if item is None:
            axis.axis("off")
        else:
            _draw_language(axis, item)
    handles = [mpl.patches.Patch(color=color) for color in (_SENTENCES, _VARIANTS)]
    figure.legend(handles, ["sentences", "hard variants"], loc="outside upper center", ncols=2)
    add_notes(figure, inputs.notes)
    return figure


FLOW = Figure(
    "jam_flow",
    "Section 3",
    "From ID10M's test split to originals and hard variants.",
    flow,
    statistics_of,
)


class _Bar(NamedTuple):
    """A bar of the flow figure; an unknown number has no length."""

    label: str
    number: int | None
    color: str
    remark: str = ""

    @property
    def length(self) -> int:
        return self.number or 0


def _draw_language(axis: Axes, item: JamStatistics) -> None:
    bars = [
        _Bar("raw test split", item.raw_test_sentences, _SENTENCES),
        _Bar("originals", item.originals, _SENTENCES, _removed(item.dropped)),
        _Bar("variants", item.candidate_variants, _VARIANTS),
        _Bar("valid", item.valid_variants, _VARIANTS),
        _Bar("kept variants", item.dataset_variants, _VARIANTS),
        _Bar("kept originals", item.dataset_originals, _SENTENCES, _too_few(item)),
    ]
    longest = max(bar.length for bar in bars)
    for row, bar in enumerate(bars):
        axis.barh(row, bar.length, height=0.6, color=bar.color)
        text = "unknown" if bar.number is None else str(bar.number)
        axis.text(bar.length + longest * 0.02, row, text, va="center", fontsize=7)
        # Place the remark to the right of the bar or inside it, whichever has more room.
        place, ink = bar.length + longest * (0.05 + 0.04 * len(text)), "#555555"
        if bar.length > _PANEL * longest - place:
            place, ink = longest * 0.01, "white" if bar.color == _SENTENCES else "black"
        axis.text(place, row, bar.remark, va="center", fontsize=SMALLEST, color=ink)
    axis.set_yticks(range(len(bars)), [bar.label for bar in bars])
    axis.invert_yaxis()
    axis.set(title=get_language(item.language).label, xlim=(0, _PANEL * longest))
    axis.grid(axis="y", visible=False)


def _removed(reasons: Mapping[str, int]) -> str:
    """Return a remark on the dropped sentences by reason; empty if there are none."""
    parts = [f"{count} {_REASONS[reason]}" for reason, count in sorted(reasons.items())]
    # Keep each reason on one line with its number.
    joined = ", ".join(part.replace(" ", "\N{NO-BREAK SPACE}") for part in parts)
    return textwrap.fill(f"dropped: {joined}", 22) if parts else ""


def _too_few(item: JamStatistics) -> str:
    """Return a remark on the originals with too few valid variants; empty if there are none."""
    if item.dataset_originals is None:
        return ""
    dropped = item.originals - item.dataset_originals
    return f"{dropped} with too few\nvalid variants" if dropped else ""


def attention(inputs: DisplayInputs) -> Drawing:
    """Draw the attention of the first pair by layer, MIS above COR (Figure 7).

    The cells of the PIE are blank, and those of the first word, which attracts attention regardless
    of its meaning. If there are no pairs, the figure contains only a message.
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
    variants = {"MIS": pair.misleading, "COR": pair.resolved}
    highest = max(float(np.nanmax(_visible_attention(each))) for each in variants.values())
    for axis, (name, variant) in zip(axes, variants.items(), strict=True):
        _heat_map(axis, variant, f"{name}: {variant.id}, PIE “{pair.pie}”", highest)
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
    """Draw the attention of a variant; `highest` is the end of the scale, shared by both panels."""
    from matplotlib.colors import PowerNorm
    from matplotlib.ticker import MaxNLocator

    # A square root scale, because most attention is near zero.
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
