"""Titles of files in the report of Snakemake."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pieline.study import Study

CATEGORY = "The whole artifact"
"""Category in the Snakemake report for files that do not belong to a single paper."""

PARTS = {
    "paper_tables/claims.csv": (
        "Ledger",
        "The papers' claims, judged on the printed numbers and on ours.",
    ),
    "paper_tables/numbers.csv": (
        "Numbers",
        "All numbers of this run and of the papers, with the verdict on each.",
    ),
    "paper_tables/index.html": (
        "Results page",
        "All results on one page, with the sentences behind each number.",
    ),
    "paper_tables/paper.pdf": ("Document", "All tables and figures in the papers' order."),
}
"""Place and caption of the files that do not belong to a study, by path."""


def report_labels(studies: Iterable[Study[Any]]) -> dict[str, tuple[str, dict[str, str]]]:
    """Return category and labels (place, caption, format) of every file that the report shows."""
    shown = {path: (CATEGORY, *labels) for path, labels in PARTS.items()}
    for study in studies:
        for each in (*study.tables(), *study.figures()):
            path = each.files["csv" if each.kind == "table" else "png"]
            shown[path] = (study.paper, each.place, each.caption)
    labels = {}
    for path, (category, place, caption) in shown.items():
        extension = Path(path).suffix.strip(".").upper()
        labels[path] = category, {"place": place, "shows": caption, "as": extension}
    return labels
