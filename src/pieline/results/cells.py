"""The cells of a run's tables: our numbers beside the printed ones."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd

from pieline.core.files import write_text
from pieline.core.records import Frozen
from pieline.reporting.printed import VERDICTS, number_in, read_comparisons, verdict_of

COMPARED = frozenset(VERDICTS.values())
"""Verdicts on cells that were compared."""
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
    *("released", "released_verdict", "released_reason"),
}


class ComparedCell(Frozen):
    """A table cell with our number and the printed one, formatted as in the CSV (empty if unknown).

    Attributes:
        table: Name of the CSV without extension.
        keys: Values that identify the cell, by column, in order.
        tolerance: Maximum difference at which our number counts as reproduced, or its sampling
            range.
        verdict: One of `VERDICTS`, `not comparable` or `not run`.
        reason: Why the cell is not comparable or has no number, or the only readings of the printed
            number under which ours is within sampling range.
        metrics: Metric files behind our number.
        low, high: Bounds of the 95% interval of our number, if the table states them.
        released: The number of the authors' released run, if the table states it.
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
    low: str = ""
    high: str = ""
    released: str = ""

    @property
    def value(self) -> float | None:
        """Our number; None if it is unknown or a text."""
        return number_in(self.ours)

    @property
    def cell(self) -> str:
        """The nonempty keys, joined into one text."""
        return " ".join(value for value in self.keys.values() if value)


def read_cells(tables: Iterable[str | Path]) -> list[ComparedCell]:
    """Read the cells of CSVs written by `pieline.reporting.printed.write_comparisons`, in order.

    Raises:
        UserError: A file is missing or is not a CSV of comparisons.
    """
    return [_cell(Path(path).stem, row) for path in tables for row in read_comparisons(path)]


def write_comparison(path: str | Path, cells: Sequence[ComparedCell]) -> None:
    """Write all cells as CSV."""
    columns = ["table", "cell", "ours", "printed", "difference", "tolerance", "verdict", "reason"]
    table = pd.DataFrame([{name: getattr(cell, name) for name in columns} for cell in cells])
    write_text(path, table.to_csv(index=False, lineterminator="\n"))


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
        **{name: row.get(name, "") for name in ("low", "high", "released")},
    )


def missing(reason: str) -> ComparedCell:
    """Return a cell without a number of ours, for `reason`."""
    nothing = dict.fromkeys(("table", "ours", "printed", "difference", "tolerance"), "")
    return ComparedCell(
        **nothing, keys={}, comparable=False, verdict="not run", reason=reason, metrics=()
    )
