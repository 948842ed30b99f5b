"""Label the files in Snakemake's report."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pieline.study import Study

CATEGORY = "The whole artifact"
"""Category in Snakemake's report for files that cover all papers."""

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
"""Place and caption of each file that covers all papers, by path."""


def report_labels(studies: Iterable[Study[Any]]) -> dict[str, tuple[str, dict[str, str]]]:
    """Return the category and the labels of each file in Snakemake's report, by path.

    The labels are the file's place, its caption ("shows") and its format ("as").
    """
    category_and_labels = {}
    for path, (place, caption) in PARTS.items():
        category_and_labels[path] = (CATEGORY, _label_file(path, place, caption))
    for study in studies:
        for display in (*study.tables(), *study.figures()):
            path = display.files["csv" if display.kind == "table" else "png"]
            labels = _label_file(path, display.place, display.caption)
            category_and_labels[path] = (study.paper, labels)
    return category_and_labels


def _label_file(path: str, place: str, caption: str) -> dict[str, str]:
    extension = Path(path).suffix.removeprefix(".").upper()
    return {"place": place, "shows": caption, "as": extension}
