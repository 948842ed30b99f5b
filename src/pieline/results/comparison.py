"""Every cell that we computed beside the printed one, over all tables of a run."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd

from pieline.core.files import write_text
from pieline.core.records import Frozen
from pieline.reporting.latex import render_latex
from pieline.reporting.printed import VERDICTS, read_comparisons, verdict_of

COMPARED = frozenset(VERDICTS.values())
"""The verdicts on what could be compared."""
_NUMBER_COLUMNS = {
    "ours",
    "printed",
    "difference",
    "comparable",
    "tolerance",
    "reproduced",
    "reason",
    "archive",
    "metrics",
    *("low", "high", "p_value", "p_holm"),
}


class ComparedCell(Frozen):
    """A cell of one of our tables; numbers as the CSV writes them, empty where unknown.

    Attributes:
        table: name of the CSV.
        keys: the columns that tell the cell apart, in their order.
        tolerance: how far ours may lie from the printed number and count as reproduced, or its
            sampling range.
        verdict: one of `VERDICTS`, `not comparable` or `not run`.
        reason: why it is not comparable, why there is no number of ours, or under which readings of
            the printed number alone it is within sampling range.
        metrics: the metric files that ours comes from.
    """

    table: str
    keys: dict[str, str]
    ours: str
    printed: str
    difference: str
    tolerance: str
    comparable: bool
    verdict: str
    reason: str
    metrics: tuple[str, ...]

    @property
    def cell(self) -> str:
        """The keys as one text."""
        return " ".join(value for value in self.keys.values() if value)


def read_cells(tables: Iterable[str | Path]) -> list[ComparedCell]:
    """The cells of CSVs that `pieline.reporting.printed.write_comparisons` wrote, in order.

    Raises:
        UserError: a file is no such CSV.
    """
    return [_cell(Path(path).stem, row) for path in tables for row in read_comparisons(path)]


def metric_files(tables: Iterable[str | Path]) -> list[str]:
    """The metric files that numbers of these CSVs come from."""
    return sorted({path for cell in read_cells(tables) for path in cell.metrics})


def write_comparison(
    cells: Sequence[ComparedCell],
    *,
    summary: str,
    csv: str | Path,
    tex: str | Path,
    template: str | Path,
    mark: str = "",
) -> None:
    """Write all cells as CSV, and those with two numbers as LaTeX under summary and mark."""
    columns = ["table", "cell", "ours", "printed", "difference", "tolerance", "verdict", "reason"]
    table = pd.DataFrame([{name: getattr(cell, name) for name in columns} for cell in cells])
    write_text(csv, table.to_csv(index=False, lineterminator="\n"))
    render_latex(template, tex, cells=cells, summary=f"{summary}.", mark=mark)


def _cell(table: str, row: dict[str, str]) -> ComparedCell:
    return ComparedCell(
        table=table,
        keys={key: value for key, value in row.items() if key not in _NUMBER_COLUMNS},
        ours=row["ours"],
        printed=row["printed"],
        difference=row.get("difference", ""),
        tolerance=row.get("tolerance", ""),
        comparable=row["comparable"] == "yes",
        verdict=verdict_of(row),
        reason=row.get("reason", ""),
        metrics=tuple(row.get("metrics", "").split()),
    )
