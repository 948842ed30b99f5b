"""IdioLink's Table 1, the numbers of its construction, and its composition by domain and usage."""

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from pydantic import BaseModel

from pieline.reporting.latex import render_table
from pieline.reporting.models import SAMPLE_NOTE
from pieline.reporting.printed import (
    Comparison,
    compare,
    read_published,
    rounded,
    write_comparisons,
)
from pieline.studies.idiolink.datasets.assembly import ConstructionMetrics
from pieline.studies.idiolink.datasets.composition import ROWS, DatasetChecks
from pieline.studies.idiolink.originals.domains import DOMAINS, TEXTS_PER_PAIR
from pieline.studies.idiolink.originals.released_list import FilterReport

ROW_LABELS = {
    "train": "Train",
    "validation": "Validation",
    "test_silver": r"Test\textsubscript{silver}",
    "test_gold": r"Test\textsubscript{gold}",
    "test": r"Test\textsubscript{total}",
    "total": "Total",
}
COLUMNS = {"pies": "PIEs", "queries": "Queries", "documents": "Documents"}
CONSTRUCTED_NOTE = "Counted on a data set that this run constructed, not on the released one."

_M = TypeVar("_M", bound=BaseModel)


def obstacles_of(*, sample: bool, released: bool) -> list[str]:
    """What keeps counts from being comparable with the printed ones."""
    if released:
        return []
    if sample:
        return ["sample data, not the released IdioLink"]
    return ["constructed anew or altered, not the released IdioLink"]


def note_of(*, sample: bool, released: bool) -> str:
    """What a table or figure says of its data, empty for the released data."""
    if released:
        return ""
    return SAMPLE_NOTE if sample else CONSTRUCTED_NOTE


def write_dataset_table(
    checks: DatasetChecks,
    *,
    published: str | Path,
    template: str | Path,
    tex: str | Path,
    csv: str | Path,
) -> None:
    """Table 1: PIEs, queries and documents of each split, beside the printed counts."""
    printed = read_published(published, ["split"])
    obstacles = obstacles_of(sample=checks.sample, released=checks.released)
    comparisons: list[tuple[Mapping[str, str], Comparison]] = []
    rows = []
    for row in ROWS:
        counts = checks.counts[row].model_dump()
        for column in COLUMNS:
            cell = compare(
                counts[column],
                printed.get((row,), {}).get(column),
                obstacles=obstacles,
                decimals=0,
            )
            comparisons.append(({"split": row, "metric": column}, cell))
        rows.append({"label": ROW_LABELS[row], "counts": [f"{counts[name]:,}" for name in COLUMNS]})
    write_comparisons(csv, comparisons, decimals=0)
    note = note_of(sample=checks.sample, released=checks.released)
    render_table(template, tex, rows=rows, columns=list(COLUMNS.values()), note=note)


def construction_numbers(
    metrics: ConstructionMetrics, report: FilterReport
) -> dict[str, tuple[str, float | None, int]]:
    """What each number of sections 3.2.1 to 3.2.4 is, our value and its decimals, by its id.

    Ids are those of published/text_numbers.csv; shares are in per cent.
    """
    gold, silver, agreed = metrics.gold_corrections, metrics.silver, metrics.agreement

    def per_cent(share: float | None) -> float | None:
        return None if share is None else 100 * share

    return {
        "candidate_pies": ("PIEs that pass the filter", report.candidates, 0),
        "removed_pies": ("PIEs removed by hand", report.failed.get("manual", 0), 0),
        "corrections": ("gold texts corrected", gold.corrected, 0),
        "span_corrections": ("only the span", gold.by_action.get("span_corrected", 0), 0),
        "usage_mismatches": ("usage mismatch", gold.by_cause.get("usage_mismatch", 0), 0),
        "ambiguous_texts": ("ambiguous", gold.by_cause.get("ambiguous", 0), 0),
        "rewritten_texts": ("rewritten for clarity", gold.by_cause.get("unclear", 0), 0),
        "corrected_sense": ("sense texts corrected", gold.by_usage.get("sense", 0), 0),
        "corrected_literal": ("literal texts corrected", gold.by_usage.get("literal", 0), 0),
        "validation_accuracy": (
            "validation against people: accuracy (%)",
            per_cent(agreed.accuracy) if agreed else None,
            2,
        ),
        "validation_macro_f1": (
            "validation against people: macro F1 (%)",
            per_cent(agreed.macro_f1) if agreed else None,
            2,
        ),
        "validation_valid_f1": (
            "validation against people: F1 of valid texts (%)",
            per_cent(agreed.valid_f1) if agreed else None,
            2,
        ),
        "missed_invalid": (
            "invalid texts judged valid",
            agreed.invalid_judged_valid if agreed else None,
            0,
        ),
        "missed_invalid_share": (
            "invalid texts judged valid (%)",
            per_cent(agreed.missed) if agreed else None,
            2,
        ),
        "silver_texts": ("silver texts", silver.texts, 0),
        "flagged": ("silver texts flagged", silver.flagged, 0),
        "flagged_share": ("silver texts flagged (%)", per_cent(silver.flagged_share), 2),
        "confirmed": (
            "flagged texts that people confirmed",
            None if silver.awaiting else silver.confirmed,
            0,
        ),
        "confirmed_share": (
            "flagged texts that people confirmed (%)",
            per_cent(silver.confirmed_share),
            2,
        ),
        "gold_texts": ("texts that people looked at", metrics.gold_texts, 0),
    }


def write_construction_table(
    metrics: ConstructionMetrics,
    report: FilterReport,
    *,
    published: str | Path,
    template: str | Path,
    tex: str | Path,
    csv: str | Path,
) -> None:
    """The numbers of sections 3.2.1 to 3.2.4 beside the printed ones."""
    printed = read_published(published, ["id"])
    # New texts by new models never are those that the paper counted.
    obstacles = obstacles_of(sample=metrics.sample, released=False)
    comparisons: list[tuple[Mapping[str, str], Comparison]] = []
    rows = []
    for name, (what, ours, decimals) in construction_numbers(metrics, report).items():
        paper = printed.get((f"idiolink.{name}",), {}).get("value")
        problems = obstacles if ours is not None else ["no person has judged it yet", *obstacles]
        cell = compare(ours, paper, obstacles=problems, decimals=decimals)
        comparisons.append(({"id": f"idiolink.{name}", "metric": "value"}, cell))
        ours_text = rounded(ours, decimals) or "--"
        rows.append({"what": what, "ours": ours_text, "printed": rounded(paper, decimals) or "--"})
    write_comparisons(csv, comparisons, decimals=2)
    note = note_of(sample=metrics.sample, released=False)
    if any("hand-written" in item.origins for item in metrics.generation.values()):
        note += " The models' answers are scripted by hand; no model gave them."
    render_table(template, tex, rows=rows, note=note)


def draw_domains(checks: DatasetChecks) -> Figure:
    """Texts by domain and usage, documents beside queries, as a table of shaded counts."""
    columns = [
        (collection, usage) for collection, usages in TEXTS_PER_PAIR.items() for usage in usages
    ]
    present = {domain for domains in checks.domain_usage.values() for domain in domains}
    domains: list[str] = [domain for domain in DOMAINS if domain in present]
    domains += sorted(present.difference(DOMAINS))
    counts = [
        [
            checks.domain_usage.get(collection, {}).get(domain, {}).get(usage, 0)
            for collection, usage in columns
        ]
        for domain in domains
    ]
    figure, axis = plt.subplots(figsize=(6.4, 1.6 + 0.27 * len(domains)), layout="constrained")
    axis.imshow(counts, cmap="Blues", aspect="auto", vmin=0)
    darkest = max((count for row in counts for count in row), default=0)
    for place, row in enumerate(counts):
        for number, count in enumerate(row):
            colour = "white" if count > 0.6 * darkest else "black"
            axis.text(number, place, f"{count:,}", ha="center", va="center", color=colour)
    labels = [
        f"{usage}\n({'queries' if collection == 'queries' else 'documents'})"
        for collection, usage in columns
    ]
    axis.set_xticks(range(len(columns)), labels)
    axis.set_yticks(range(len(domains)), domains)
    axis.grid(visible=False)
    axis.tick_params(length=0)
    for side in axis.spines.values():
        side.set_visible(False)
    if note := note_of(sample=checks.sample, released=checks.released):
        figure.supxlabel(note, fontsize=6, color="#666666")
    return figure
