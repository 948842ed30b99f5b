"""Select printed numbers for claims."""

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


def load_printed(folder: str | Path, catalogue: Mapping[str, PrintedTable]) -> PrintedNumbers:
    """Read the CSVs of all printed tables."""
    return {
        name: read_published(Path(folder) / f"{name}.csv", table.keys)
        for name, table in catalogue.items()
    }


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
