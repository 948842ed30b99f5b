"""Select the printed numbers of claims."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import TypeAdapter, model_validator

from pieline.core.records import Frozen, Id
from pieline.reporting.printed import read_published
from pieline.reporting.published import TEXT_NUMBERS, PrintedTable, Row
from pieline.results.claims.formulas import ClaimError, Values


class Selection(Frozen):
    """Selection of numbers in a column of a printed table.

    `{text: id}` selects a number from the paper's running text.

    Attributes:
        table: Name of the printed table.
        column: Column of the numbers.
        where: Value, or possible values, of key columns in the selected rows.
        but_not: Values of key columns in rows that are not selected.
        measured: Whether our numbers replace the printed numbers when the claim is judged on our
            numbers; by default false for numbers from the running text.
    """

    table: str
    column: str
    where: Mapping[str, str | list[str]] = {}
    but_not: Mapping[str, list[str]] = {}
    measured: bool = True

    @model_validator(mode="before")
    @classmethod
    def _expand_text(cls, fields: Any) -> Any:
        """Replace the id in `text` by the selection of this number in the running text."""
        if not isinstance(fields, Mapping) or "text" not in fields:
            return fields
        unknown_fields = fields.keys() - {"text", "measured"}
        if unknown_fields:
            raise ValueError(
                f"unknown field {min(unknown_fields)!r} of a number in the running text"
            )
        return {
            "table": TEXT_NUMBERS,
            "column": "value",
            "where": {"id": TypeAdapter(Id).validate_python(fields["text"])},
            "measured": fields.get("measured", False),
        }

    def selects(self, keys: Mapping[str, str]) -> bool:
        """Return whether the row with these values of the key columns is selected."""
        for key, value in self.where.items():
            possible_values = [value] if isinstance(value, str) else value
            if keys[key] not in possible_values:
                return False
        return not any(keys[key] in values for key, values in self.but_not.items())


PrintedNumbers = dict[str, dict[Row, dict[str, float]]]
"""Printed numbers by table, by row (values of the key columns), and by column."""


def load_printed(folder: str | Path, catalogue: Mapping[str, PrintedTable]) -> PrintedNumbers:
    """Read all printed numbers from the CSV files in a folder.

    Args:
        folder: Folder with one file per printed table, such as published/.
        catalogue: Printed tables by name.
    """
    return {
        name: read_published(Path(folder) / f"{name}.csv", table.keys)
        for name, table in catalogue.items()
    }


def select(
    selection: Selection, catalogue: Mapping[str, PrintedTable], printed: PrintedNumbers
) -> dict[str, tuple[Row, float]]:
    """Return the printed numbers of a selection.

    Returns:
        The row and the number, by label of the row. The label contains the values of those keys for
        which `where` does not state a single value.

    Raises:
        ClaimError: A table, key or column is unknown, or nothing is selected.
    """
    if selection.table not in catalogue:
        raise ClaimError(f"unknown table {selection.table!r}, known: {', '.join(catalogue)}")
    keys = catalogue[selection.table].keys
    unknown_keys = {*selection.where, *selection.but_not} - set(keys)
    if unknown_keys:
        raise ClaimError(
            f"{selection.table} has no key {min(unknown_keys)!r}, only {', '.join(keys)}"
        )
    keys_in_label = [key for key in keys if not isinstance(selection.where.get(key), str)]
    selected = {}
    for row, numbers in printed[selection.table].items():
        value_by_key = dict(zip(keys, row, strict=True))
        if selection.selects(value_by_key) and selection.column in numbers:
            label = " / ".join(value_by_key[key] for key in keys_in_label)
            selected[label] = (row, numbers[selection.column])
    if not selected:
        raise ClaimError(
            f"{selection.table} has no number in column {selection.column!r}"
            f" where {selection.where}"
        )
    return selected


def values_of(numbers: Mapping[str, float]) -> Values:
    """Return numbers by label of the row as a series, or the only number if its label is empty."""
    has_one_unnamed_row = set(numbers) == {""}
    return numbers[""] if has_one_unnamed_row else pd.Series(numbers, dtype=float)
