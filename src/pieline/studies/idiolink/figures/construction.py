"""Figure of the flow from MAGPIE to IdioLink's texts (section 3.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pieline.core.records import load_record
from pieline.reporting.displays import Figure
from pieline.reporting.figures import COLUMN_WIDTH, SMALLEST, add_notes
from pieline.reporting.inputs import DisplayInputs
from pieline.studies.idiolink import inputs as given
from pieline.studies.idiolink.datasets.assembly import ConstructionMetrics
from pieline.studies.idiolink.originals.released_list import FilterReport
from pieline.studies.idiolink.tables.dataset import about_data

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing


def flow(inputs: DisplayInputs) -> Drawing:
    """Plot the number of PIEs and of texts after each step of the construction."""
    import matplotlib.pyplot as plt

    metrics = load_record(inputs.metrics[0], ConstructionMetrics)
    report = load_record(inputs.files["filter_report"], FilterReport)
    corrections = (metrics.gold_corrections, metrics.silver_corrections)
    panels = {
        "PIEs": [
            ("in MAGPIE", report.pies),
            ("frequent and balanced", report.candidates),
            ("used", report.kept),
        ],
        "documents and queries": [
            ("generated", metrics.texts),
            ("automatically valid", metrics.labels.get("valid", 0)),
            ("checked by people", metrics.gold_texts),
            ("corrected", sum(counts.corrected for counts in corrections)),
        ],
    }
    figure, axes = plt.subplots(
        len(panels),
        1,
        figsize=(COLUMN_WIDTH, 2.4),
        height_ratios=[len(steps) for steps in panels.values()],
        layout="constrained",
    )
    for axis, (title, steps) in zip(axes, panels.items(), strict=True):
        counts = [count for _, count in steps]
        bars = axis.barh(range(len(steps)), counts, height=0.6, color="#2171b5")
        axis.bar_label(bars, [f"{count:,}" for count in counts], padding=2, fontsize=SMALLEST)
        axis.set_yticks(range(len(steps)), [name for name, _ in steps])
        axis.invert_yaxis()
        axis.set(title=title, xlim=(0, 1.15 * max(1, *counts)))
        axis.grid(axis="y", visible=False)
    add_notes(figure, about_data(sample=metrics.sample, released=False)[1])
    return figure


FLOW = Figure(
    "idiolink_flow",
    "Section 3.2",
    "From the PIEs of MAGPIE to documents and queries.",
    flow,
    given.construction,
)
