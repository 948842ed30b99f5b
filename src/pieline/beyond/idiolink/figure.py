"""Draw the figure of retrieval scores by word overlap (not in the paper)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle, product
from math import nan
from typing import TYPE_CHECKING, Any

from pieline.beyond.idiolink.metrics import TENTHS, ShortcutMetrics, tenths_of
from pieline.beyond.idiolink.tables import shortcut_inputs
from pieline.core.records import load_records
from pieline.reporting.displays import NOT_IN_PAPER, Figure
from pieline.reporting.figures import PAGE_WIDTH, add_notes
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.printed import per_cent
from pieline.studies.idiolink.figures import MODE_LABELS
from pieline.studies.idiolink.records import QUERY_MODES
from pieline.studies.idiolink.tables.zero_shot import notes_on

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing


def shortcuts(inputs: DisplayInputs) -> Drawing:
    """Plot nDCG@10 (percent) by tenth of the queries by word overlap, with one line per model.

    Rows are usages of the queries, and columns are query modes. Bands are bootstrap intervals over
    PIEs.
    """
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    metrics = load_records(inputs.metrics, ShortcutMetrics)
    measured_modes = {run_metrics.query_mode for run_metrics in metrics}
    modes = [mode for mode in QUERY_MODES if mode in measured_modes]
    usages = list(metrics[0].overlap)
    line_by_model = _line_by_model(inputs)
    figure, axes = plt.subplots(
        len(usages),
        len(modes),
        figsize=(min(PAGE_WIDTH, 0.9 + 1.2 * len(modes)), 0.6 + 1.3 * len(usages)),
        sharex=True,
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    for axis, (usage, mode) in zip(axes.flat, product(usages, modes), strict=True):
        axis.set_title(f"{MODE_LABELS[mode]}\n{usage}", fontsize=6.5)
        axis.set(xlim=(0.5, TENTHS + 0.5), ylim=(0, 100), xticks=[1, 4, 7, 10])
        for run_metrics in metrics:
            if run_metrics.query_mode == mode:
                _draw_run(axis, run_metrics, usage, line_by_model[run_metrics.model])
    figure.legend(
        [mpl.lines.Line2D([], [], **line) for line in line_by_model.values()],
        [model.label for model in inputs.models],
        loc="outside upper center",
        ncols=4,
    )
    figure.supylabel("nDCG@10 (%)", fontsize=8)
    explanation = (
        "Tenth of the queries of a PIE and usage by overlap: 1 has the least. Overlap: Jaccard"
        " index of content words without the marked spans."
    )
    add_notes(figure, (explanation, *notes_on(metrics), *inputs.origins()))
    return figure


def _line_by_model(inputs: DisplayInputs) -> dict[str, dict[str, Any]]:
    """Return the appearance of each model's line, as keyword arguments of matplotlib.

    The line styles also differ, because some colors look alike in grey print.
    """
    import matplotlib as mpl

    dark_colors = mpl.color_sequences["tab10"]
    # In tab20, the dark and light colors alternate.
    light_colors = mpl.color_sequences["tab20"][1::2]
    colors = cycle([*dark_colors, *light_colors])
    styles = cycle(["-", "--", ":", "-."])
    return {
        model.name: {"color": next(colors), "ls": next(styles), "lw": 1.1}
        for model in inputs.models
    }


def _draw_run(axis: Axes, metrics: ShortcutMetrics, usage: str, line: Mapping[str, Any]) -> None:
    """Draw the line and the band of a run for one usage; `line` is the appearance of the line."""
    tenths = tenths_of(metrics, "jaccard_without_span", usage)
    tenth_numbers = [tenth.tenth for tenth in tenths]
    scores: Any = [per_cent(tenth.value) for tenth in tenths]
    axis.plot(tenth_numbers, scores, **line)
    # A missing interval leaves a gap in the band.
    low = [100 * tenth.interval.low if tenth.interval else nan for tenth in tenths]
    high = [100 * tenth.interval.high if tenth.interval else nan for tenth in tenths]
    axis.fill_between(tenth_numbers, low, high, color=line["color"], alpha=0.2, linewidth=0)


SHORTCUTS_FIGURE = Figure(
    "idiolink_shortcuts",
    NOT_IN_PAPER,
    "nDCG@10 by tenth of word overlap.",
    shortcuts,
    shortcut_inputs,
)
