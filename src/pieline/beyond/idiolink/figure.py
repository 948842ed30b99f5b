"""Figure of retrieval scores by word overlap (not in the paper)."""

from __future__ import annotations

from itertools import cycle, product
from math import nan
from typing import TYPE_CHECKING

from pieline.beyond.idiolink.metrics import TENTHS, ShortcutMetrics, tenths_of
from pieline.beyond.idiolink.tables import measured
from pieline.core.records import load_records
from pieline.reporting.displays import NOT_IN_PAPER, Figure
from pieline.reporting.figures import PAGE_WIDTH, add_notes
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.printed import per_cent
from pieline.studies.idiolink.figures import MODE_LABELS
from pieline.studies.idiolink.records import QUERY_MODES
from pieline.studies.idiolink.tables.zero_shot import notes_on

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing


def shortcuts(inputs: DisplayInputs) -> Drawing:
    """Plot nDCG@10 (percent) by tenth of overlap, with one line per model.

    Rows are usages of the queries, and columns are query modes. Bands are bootstrap intervals over
    PIEs.
    """
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    metrics = load_records(inputs.metrics, ShortcutMetrics)
    modes = [mode for mode in QUERY_MODES if any(item.query_mode == mode for item in metrics)]
    usages = [*metrics[0].overlap]
    colors = dict(
        zip(
            [model.name for model in inputs.models],
            cycle([*mpl.color_sequences["tab10"], *mpl.color_sequences["tab20"][1::2]]),
            strict=False,
        )
    )
    # Line styles distinguish colors in grey print.
    styles = dict(zip(colors, cycle(("-", "--", ":", "-.")), strict=False))
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
        for item in (item for item in metrics if item.query_mode == mode):
            tenths, color = tenths_of(item, "jaccard_without_span", usage), colors[item.model]
            places = [tenth.tenth for tenth in tenths]
            values = [per_cent(tenth.value) for tenth in tenths]
            axis.plot(places, values, color=color, ls=styles[item.model], lw=1.1)
            low = [100 * getattr(tenth.interval, "low", nan) for tenth in tenths]
            high = [100 * getattr(tenth.interval, "high", nan) for tenth in tenths]
            axis.fill_between(places, low, high, color=color, alpha=0.2, linewidth=0)
    figure.legend(
        [mpl.lines.Line2D([], [], color=colors[name], ls=styles[name], lw=1.1) for name in colors],
        [model.label for model in inputs.models],
        loc="outside upper center",
        ncols=4,
    )
    figure.supylabel("nDCG@10 (%)", fontsize=8)
    about = (
        "Tenth of the queries of a PIE and usage by overlap: 1 has the least. Overlap: Jaccard"
        " index of content words without the marked spans."
    )
    add_notes(figure, (about, *notes_on(metrics), *inputs.origins()))
    return figure


SHORTCUTS_FIGURE = Figure(
    "idiolink_shortcuts",
    NOT_IN_PAPER,
    "nDCG@10 by tenth of word overlap.",
    shortcuts,
    measured,
)
