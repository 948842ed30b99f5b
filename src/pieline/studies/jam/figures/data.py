"""Draw the flow figure of the dataset (section 3) and the attention figure (Figure 7)."""

from __future__ import annotations

import math
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
from pieline.studies.jam.tables.common import attention_inputs, statistics_inputs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

_SENTENCES, _VARIANTS = "#2171b5", "#fdae6b"
_PANEL = 1.15
"""Width of a panel of the flow figure, as a multiple of the longest bar."""
_REASONS = {
    "ambiguous": "ambiguous",
    "wrong_label": "wrong label",
    "several_pies": "several PIEs",
    "translation_appended": "with translation",
    "typo": "typo",
    "not_recorded": "reason not published",
    "no_known_pie": "no known PIE",
}
"""Labels of the reasons for which sentences are dropped."""
_REMARK_WIDTH = 22
"""Maximum number of characters in a line of a remark."""


def flow(inputs: DisplayInputs) -> Drawing:
    """Draw the number of sentences and variants after each stage, one panel per language."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    statistics = load_records(inputs.metrics, JamStatistics)
    columns = min(2, len(statistics))
    rows = math.ceil(len(statistics) / columns)
    width = COLUMN_WIDTH if columns == 1 else PAGE_WIDTH
    height = 0.3 + 2.5 * rows  # legend and panels, in inches
    figure, axes = plt.subplots(
        rows, columns, figsize=(width, height), layout="constrained", squeeze=False
    )
    for axis, statistics_of_language in zip_longest(axes.flat, statistics):
        if statistics_of_language is None:
            axis.axis("off")  # the last panel of an odd number of languages
        else:
            _draw_language(axis, statistics_of_language)
    handles = [mpl.patches.Patch(color=color) for color in (_SENTENCES, _VARIANTS)]
    figure.legend(handles, ["sentences", "hard variants"], loc="outside upper center", ncols=2)
    add_notes(figure, inputs.notes)
    return figure


FLOW = Figure(
    "jam_flow",
    "Section 3",
    "From ID10M's test split to originals and hard variants.",
    flow,
    statistics_inputs,
)


class _Bar(NamedTuple):
    """A bar of the flow figure; `number` (of sentences or variants) is None if unknown."""

    label: str
    number: int | None
    color: str
    remark: str = ""

    @property
    def length(self) -> int:
        return 0 if self.number is None else self.number


def _draw_language(axis: Axes, statistics: JamStatistics) -> None:
    """Draw the panel of a language: a bar per stage, its number and, for some bars, a remark."""
    dropped = _remark_on_dropped(statistics.dropped)
    too_few = _remark_on_too_few_variants(statistics)
    bars = [
        _Bar("raw test split", statistics.raw_test_sentences, _SENTENCES),
        _Bar("originals", statistics.originals, _SENTENCES, dropped),
        _Bar("variants", statistics.candidate_variants, _VARIANTS),
        _Bar("valid", statistics.valid_variants, _VARIANTS),
        _Bar("kept variants", statistics.dataset_variants, _VARIANTS),
        _Bar("kept originals", statistics.dataset_originals, _SENTENCES, too_few),
    ]
    longest = max(bar.length for bar in bars)
    panel_width = _PANEL * longest
    for row, bar in enumerate(bars):
        axis.barh(row, bar.length, height=0.6, color=bar.color)
        number = "unknown" if bar.number is None else str(bar.number)
        axis.text(bar.length + longest * 0.02, row, number, va="center", fontsize=7)
        # Place the remark to the right of the number or inside the bar, where there is more room.
        number_end = bar.length + longest * (0.05 + 0.04 * len(number))  # estimated
        room_on_the_right = panel_width - number_end
        if bar.length > room_on_the_right:
            remark_start = longest * 0.01
            ink = "white" if bar.color == _SENTENCES else "black"
        else:
            remark_start = number_end
            ink = "#555555"
        axis.text(remark_start, row, bar.remark, va="center", fontsize=SMALLEST, color=ink)
    axis.set_yticks(range(len(bars)), [bar.label for bar in bars])
    axis.invert_yaxis()
    axis.set(title=get_language(statistics.language).label, xlim=(0, panel_width))
    axis.grid(axis="y", visible=False)


def _remark_on_dropped(count_by_reason: Mapping[str, int]) -> str:
    """Return a remark with the number of dropped sentences per reason; empty if there are none."""
    if not count_by_reason:
        return ""
    # Keep each number on one line with its reason.
    counts = [
        f"{count} {_REASONS[reason]}".replace(" ", "\N{NO-BREAK SPACE}")
        for reason, count in sorted(count_by_reason.items())
    ]
    return textwrap.fill(f"dropped: {', '.join(counts)}", _REMARK_WIDTH)


def _remark_on_too_few_variants(statistics: JamStatistics) -> str:
    """Return a remark with the number of originals that have too few valid variants.

    The remark is empty if there are no such originals or their number is unknown.
    """
    if statistics.dataset_originals is None:
        return ""
    left_out = statistics.originals - statistics.dataset_originals
    return f"{left_out} with too few\nvalid variants" if left_out else ""


def attention(inputs: DisplayInputs) -> Drawing:
    """Draw Figure 7: the attention from the PIE in both variants (MIS, COR) of the first pair.

    The cells of the PIE are blank. The cells of the first word are blank, too, because the first
    word attracts attention regardless of its meaning. If there are no pairs, the figure contains
    only a message.
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
    highest = max(float(np.nanmax(_visible_attention(variant))) for variant in variants.values())
    for axis, (kind, variant) in zip(axes, variants.items(), strict=True):
        _draw_heat_map(axis, variant, f"{kind}: {variant.id}, PIE “{pair.pie}”", highest)
    add_notes(figure, [*inputs.notes, "Cue words are orange and italic, PIEs bold."])
    return figure


def _figure_inputs(study: ConfiguredStudy) -> DisplayInputs | None:
    """Return the inputs of the attention figure; None if no variants are analyzed."""
    inputs = attention_inputs(study)
    return inputs if inputs and inputs.metrics else None


ATTENTION_FIGURE = Figure(
    "jam_attention",
    "Figure 7",
    "Attention from the tokens of a PIE to its context.",
    attention,
    _figure_inputs,
)


def _visible_attention(variant: AttendedVariant) -> npt.NDArray[np.float64]:
    """Return the attention from the PIE, shape (layers, words).

    The attention to the first word and to the words of the PIE is NaN.
    """
    attention_by_layer = np.array(variant.by_layer)
    attention_by_layer[:, [0, *variant.pie_words]] = np.nan
    return attention_by_layer


def _draw_heat_map(axis: Axes, variant: AttendedVariant, title: str, highest: float) -> None:
    """Draw the attention from the PIE in a variant; the color scale ends at `highest`."""
    from matplotlib.colors import PowerNorm
    from matplotlib.ticker import MaxNLocator

    # Use a square root scale, because most attention is near zero.
    norm = PowerNorm(0.5, vmin=0, vmax=highest)
    image = axis.imshow(_visible_attention(variant), aspect="auto", cmap="viridis", norm=norm)
    axis.figure.colorbar(image, ax=axis, label="attention", pad=0.01)
    axis.set_xticks(
        range(len(variant.words)), variant.words, rotation=60, ha="right", fontsize=SMALLEST
    )
    for word_index, tick_label in enumerate(axis.get_xticklabels()):
        if word_index in variant.cue_words:
            tick_label.set(color="#d95f0e", fontstyle="italic")
        if word_index in variant.pie_words:
            tick_label.set_fontweight("bold")
    axis.set_ylabel("layer")
    axis.yaxis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 5, 10]))
    axis.grid(visible=False)
    axis.set_title(f"{title} (cue words: {100 * variant.share:.1f}%)", fontsize=7)
