"""Figure of IdioLink's texts by domain and usage (section 3.2.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pieline.core.records import load_record
from pieline.reporting.displays import Figure
from pieline.reporting.figures import COLUMN_WIDTH, SMALLEST, add_notes
from pieline.reporting.inputs import DisplayInputs
from pieline.studies.idiolink import inputs as given
from pieline.studies.idiolink.datasets.composition import DatasetChecks
from pieline.studies.idiolink.originals.domains import DOMAINS, TEXTS_PER_PAIR
from pieline.studies.idiolink.tables.dataset import about_texts

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing


def domains(inputs: DisplayInputs) -> Drawing:
    """Plot the number of documents and queries by domain and usage, as a heat map."""
    import matplotlib.pyplot as plt

    checks = load_record(inputs.metrics[0], DatasetChecks)
    columns = [
        (collection, usage) for collection, usages in TEXTS_PER_PAIR.items() for usage in usages
    ]
    present = {domain for domain_counts in checks.domain_usage.values() for domain in domain_counts}
    shown: list[str] = [domain for domain in DOMAINS if domain in present]
    shown += sorted(present.difference(DOMAINS))
    counts = [
        [
            checks.domain_usage.get(collection, {}).get(domain, {}).get(usage, 0)
            for collection, usage in columns
        ]
        for domain in shown
    ]
    figure, axis = plt.subplots(
        figsize=(COLUMN_WIDTH, 0.9 + 0.2 * len(shown)), layout="constrained"
    )
    axis.imshow(counts, cmap="Blues", aspect="auto", vmin=0)
    darkest = max((count for row in counts for count in row), default=0)
    for place, row in enumerate(counts):
        for number, count in enumerate(row):
            color = "white" if count > 0.6 * darkest else "black"
            axis.text(number, place, f"{count:,}", ha="center", va="center", color=color)
    labels = [
        f"{usage}, {'queries' if collection == 'queries' else 'documents'}"
        for collection, usage in columns
    ]
    axis.set_xticks(range(len(columns)), labels, fontsize=SMALLEST)
    for label in axis.get_xticklabels():
        label.set(rotation=35, ha="right", rotation_mode="anchor")
    axis.set_yticks(range(len(shown)), shown)
    axis.grid(visible=False)
    axis.tick_params(length=0)
    for side in axis.spines.values():
        side.set_visible(False)
    add_notes(figure, about_texts(checks)[1])
    return figure


DOMAINS_FIGURE = Figure(
    "idiolink_domains",
    "Section 3.2.2",
    "Texts by domain and usage.",
    domains,
    given.data_checks,
)
