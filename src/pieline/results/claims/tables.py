"""Load the printed tables and match our numbers to their cells."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from pydantic import Field, TypeAdapter, model_validator

from pieline.core.records import Frozen, Id, validated
from pieline.core.yamls import read_mapping
from pieline.reporting.printed import read_published
from pieline.results.cells import ComparedCell
from pieline.results.claims.formulas import ClaimError, Values

TEXT_NUMBERS = "text_numbers"
Kind = Literal["score", "count", "parameter"]
Row = tuple[str, ...]
"""Values of the key columns that identify a printed row."""
Place = tuple[str, Row, str]
"""Table, row and column of a printed number."""


class OurTable(Frozen):
    """Location in paper_tables/ of our numbers for a printed table.

    If several rows match one printed row (such as several seeds or losses), the first row with a
    number is used, and rows that match `prefer` come first.
    """

    files: list[str] = Field(
        min_length=1, description="Names of the CSVs in paper_tables/, without extension."
    )
    rows: dict[str, str] = Field(
        default={}, description="Column of the CSV by key, if the names differ."
    )
    metric: str = Field(default="metric", description="Column with the name of the metric.")
    where: dict[str, str] = Field(default={}, description="Use only rows with these values.")
    prefer: dict[str, str] = Field(
        default={}, description="Rows with these values take precedence."
    )


class Repeated(Frozen):
    """Place of a number that a column repeats: a table, and the row if its keys differ.

    A row that is itself the place repeats nothing.
    """

    table: str = Field(description="Name in published/, without extension.")
    row: dict[str, str] = Field(
        default={}, description="Keys of the row that differ from those of the repeating row."
    )
    column: str = Field(default="", description="Column, if its name differs.")

    def place(self, keys: Mapping[str, str], wanted: Sequence[str], column: str) -> Place:
        """Return the place that a cell repeats, given the keys of its row.

        Args:
            keys: Keys of the repeating row and their values.
            wanted: Keys of the table that is repeated.
            column: Column of the repeating cell.
        """
        values = {**keys, **self.row}
        return self.table, tuple(values[key] for key in wanted), self.column or column


class PrintedTable(Frozen):
    """Entry of published/tables.yaml for a file with printed numbers."""

    paper: str | None = Field(description="Study name; None for all three papers.")
    number: str = Field(description="Number in the paper.")
    title: str
    keys: list[str] = Field(min_length=1)
    kind: Kind | None = Field(
        default="score", description="Kind of its numbers; null if not counted."
    )
    kinds: dict[str, Kind | None] = Field(
        default={}, description="Kinds of columns that differ from the table's kind."
    )
    repeats: dict[str, Repeated] = Field(
        default={},
        description="Numbers that another place prints, by column; each counts once, there.",
    )
    ours: OurTable | None = None
    needs: dict[str, list[str]] = Field(
        default={}, description="Requirements of numbers besides models, by name of our CSV."
    )


class Selection(Frozen):
    """Numbers in a column of a printed table, in rows that match `where` but not `but_not`.

    `{text: id}` selects a number from the paper's running text. If `measured`, our number replaces
    the printed one when the claim is judged on our numbers; by default, numbers from the running
    text are not measured.
    """

    table: str
    column: str
    where: Mapping[str, str | list[str]] = {}
    but_not: Mapping[str, list[str]] = {}
    measured: bool = True

    @model_validator(mode="before")
    @classmethod
    def _of_the_text(cls, fields: Any) -> Any:
        if not isinstance(fields, Mapping) or "text" not in fields:
            return fields
        if unknown := fields.keys() - {"text", "measured"}:
            raise ValueError(f"unknown field {min(unknown)!r} of a number in the running text")
        text = TypeAdapter(Id).validate_python(fields["text"])
        cell = {"table": TEXT_NUMBERS, "column": "value", "where": {"id": text}}
        return cell | {"measured": fields.get("measured", False)}

    def takes(self, named: Mapping[str, str]) -> bool:
        """Return whether a row is selected, given the values of its key columns."""
        return all(
            named[key] == value if isinstance(value, str) else named[key] in value
            for key, value in self.where.items()
        ) and not any(named[key] in values for key, values in self.but_not.items())


PrintedNumbers = dict[str, dict[Row, dict[str, float]]]
"""Printed numbers by table, row (values of its keys) and column."""

OurNumbers = dict[str, dict[tuple[Row, str], ComparedCell]]
"""Our cells by printed table, then by row and printed column; tables without a CSV are omitted."""


def load_catalogue(path: str | Path) -> dict[str, PrintedTable]:
    """Read the printed tables, by file name, from published/tables.yaml.

    Raises:
        UserError: An entry is invalid; the message names the file, the table and the field.
    """
    return {
        name: validated(PrintedTable, fields, where=f"{path}: {name}", hint="see the other tables")
        for name, fields in read_mapping(path, hint="see the top of the file").items()
    }


def load_printed(folder: str | Path, catalogue: Mapping[str, PrintedTable]) -> PrintedNumbers:
    """Read the CSVs of all printed tables."""
    return {
        name: read_published(Path(folder) / f"{name}.csv", table.keys)
        for name, table in catalogue.items()
    }


def match_cells(
    cells: Iterable[ComparedCell],
    catalogue: Mapping[str, PrintedTable],
    printed: PrintedNumbers,
    published_names: Mapping[str, str],
) -> OurNumbers:
    """Match our cells with the printed ones.

    Args:
        cells: Cells of all tables of a run.
        catalogue: Printed tables by name.
        printed: Printed numbers.
        published_names: Printed model names, by name in models.yaml.
    """
    made: dict[str, list[ComparedCell]] = {}
    for cell in cells:
        made.setdefault(cell.table, []).append(cell)
    ours: OurNumbers = {}
    for name, table in catalogue.items():
        source = table.ours
        if source is None or not made.keys() & set(source.files):
            continue
        columns = {column for row in printed[name].values() for column in row}
        metrics = {column: column for column in columns}
        metrics |= {column.removesuffix("_pct"): column for column in columns}
        of_table = [cell for file in source.files for cell in made.get(file, ())]
        of_table.sort(key=lambda cell: not _has(cell, source.prefer))
        found: dict[tuple[Row, str], ComparedCell] = {}
        for cell in of_table:
            if not _has(cell, source.where):
                continue
            column = metrics.get(cell.keys.get(source.metric, ""))
            if name == TEXT_NUMBERS:
                # The id alone identifies a number of the running text.
                column = "value"
            values = [cell.keys.get(source.rows.get(key, key)) for key in table.keys]
            if column is None or None in values:
                continue
            named = tuple(
                published_names.get(str(value), str(value)) if key == "model" else str(value)
                for key, value in zip(table.keys, values, strict=True)
            )
            # If several models match one printed row, use the first one that has a number.
            known = found.get((named, column))
            if known is None or known.value is None:
                found[named, column] = cell.model_copy(update={"reason": _reason(cell)})
        ours[name] = found
    return ours


def _has(cell: ComparedCell, keys: Mapping[str, str]) -> bool:
    return all(cell.keys.get(name) == value for name, value in keys.items())


def _reason(cell: ComparedCell) -> str:
    # Only cells with text have both values and no difference.
    is_stated = cell.ours and cell.printed and not cell.difference
    return f"stated, not measured: {cell.reason}" if is_stated else cell.reason


def select(
    selection: Selection, catalogue: Mapping[str, PrintedTable], printed: PrintedNumbers
) -> dict[str, tuple[Row, float]]:
    """Return the printed numbers of a selection.

    Returns:
        The row and the number, by label. The label contains the values of the keys that `where`
        does not set to a single value.

    Raises:
        ClaimError: A table, key or column is unknown, or nothing is selected.
    """
    if selection.table not in catalogue:
        raise ClaimError(f"unknown table {selection.table!r}, known: {', '.join(catalogue)}")
    keys = catalogue[selection.table].keys
    if unknown := (selection.where.keys() | selection.but_not) - set(keys):
        raise ClaimError(f"{selection.table} has no key {min(unknown)!r}, only {', '.join(keys)}")
    selected = {}
    for row, numbers in printed[selection.table].items():
        named = dict(zip(keys, row, strict=True))
        if selection.takes(named) and selection.column in numbers:
            open_keys = (key for key in keys if not isinstance(selection.where.get(key), str))
            label = " / ".join(named[key] for key in open_keys)
            selected[label] = (row, numbers[selection.column])
    if not selected:
        raise ClaimError(
            f"{selection.table} has no number in column {selection.column!r}"
            f" where {selection.where}"
        )
    return selected


def values_of(numbers: Mapping[str, float]) -> Values:
    """Convert numbers by row to a series, or to a single number if the only row is unnamed."""
    return numbers[""] if set(numbers) == {""} else pd.Series(numbers, dtype=float)
