"""The printed tables by name, their numbers, and ours for the same cells."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from pydantic import Field, TypeAdapter, model_validator

from pieline.core.records import Frozen, Id, validated
from pieline.core.yamls import read_mapping
from pieline.reporting.printed import (
    number_in,
    read_comparisons,
    read_published,
    verdict_of,
)
from pieline.results.claims.formulas import ClaimError, Values

TEXT_NUMBERS = "text_numbers"
Kind = Literal["score", "count", "parameter"]
Row = tuple[str, ...]
"""The values of a printed row's keys."""


class OurTable(Frozen):
    """Where our numbers of a printed table stand in paper_tables/.

    Where several rows stand for one printed row (seeds, losses), the first with a number counts,
    those of `prefer` before all others.
    """

    files: list[str] = Field(
        min_length=1, description="Names of the CSVs in paper_tables/, without ending."
    )
    rows: dict[str, str] = Field(default={}, description="Its column for a key, where it differs.")
    metric: str = Field(default="metric", description="Its column with the name of the number.")
    where: dict[str, str] = Field(default={}, description="Only its rows with these values.")
    prefer: dict[str, str] = Field(
        default={}, description="Its rows with these values count before the others."
    )


class PrintedTable(Frozen):
    """A file of published/: what it is and which columns identify a row."""

    paper: str | None = Field(description="None: all three.")
    number: str = Field(description="As the paper numbers it.")
    title: str
    keys: list[str] = Field(min_length=1)
    kind: Kind | None = Field(default="score", description="Of its numbers; null: not counted.")
    kinds: dict[str, Kind | None] = Field(
        default={}, description="Of columns whose kind is not the table's."
    )
    ours: OurTable | None = None
    needs: dict[str, list[str]] = Field(
        default={}, description="By CSV of ours: what its numbers take besides the models."
    )


@dataclass(frozen=True)
class OurCell:
    """Our number of a printed cell; `reason` says why there is none or what keeps them apart."""

    value: float | None
    comparable: bool
    reason: str
    verdict: str = "not run"


class Selection(Frozen):
    """A column of a printed table, in the rows that `where` names and `but_not` does not.

    Written `{text: id}` it is a number that the paper's running text prints. `measured` says that
    our number takes its place where the claim is judged on ours; one of the running text is else
    what the paper says, and stays. A claim without any measured number restates the print.
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
            raise ValueError(f"a number of the running text has no {min(unknown)!r}")
        text = TypeAdapter(Id).validate_python(fields["text"])
        cell = {"table": TEXT_NUMBERS, "column": "value", "where": {"id": text}}
        return cell | {"measured": fields.get("measured", False)}

    def takes(self, named: Mapping[str, str]) -> bool:
        """Whether a row with these keys is selected."""
        return all(
            named[key] == value if isinstance(value, str) else named[key] in value
            for key, value in self.where.items()
        ) and not any(named[key] in values for key, values in self.but_not.items())


PrintedNumbers = dict[str, dict[Row, dict[str, float]]]
"""The numbers of every printed table: by table, by row (the values of its keys), by column."""

OurNumbers = dict[str, dict[tuple[Row, str], OurCell]]
"""Our cells of every table that a run made: by table, then by row and printed column."""


def load_catalogue(path: str | Path) -> dict[str, PrintedTable]:
    """Read published/tables.yaml: the printed tables by the name of their file.

    Raises:
        UserError: names file, table and field.
    """
    return {
        name: validated(PrintedTable, fields, where=f"{path}: {name}", hint="see the other tables")
        for name, fields in read_mapping(path, hint="see its head").items()
    }


def load_printed(folder: str | Path, catalogue: Mapping[str, PrintedTable]) -> PrintedNumbers:
    """Read the CSV of every table of the catalogue."""
    return {
        name: read_published(Path(folder) / f"{name}.csv", table.keys)
        for name, table in catalogue.items()
    }


def load_ours(
    files: Iterable[str | Path],
    catalogue: Mapping[str, PrintedTable],
    printed: PrintedNumbers,
    published_names: Mapping[str, str],
) -> OurNumbers:
    """Find our number of every printed cell in the CSVs that a run made.

    Args:
        files: CSVs of paper_tables/.
        catalogue: the printed tables.
        printed: their numbers.
        published_names: a model's name in the printed tables, by its name in models.yaml.
    """
    made = {Path(file).stem: file for file in files}
    ours: OurNumbers = {}
    for name, table in catalogue.items():
        source = table.ours
        if source is None or not made.keys() & set(source.files):
            continue
        cells: dict[tuple[Row, str], OurCell] = {}
        columns = {column for row in printed[name].values() for column in row}
        metrics = {column: column for column in columns}
        metrics |= {column.removesuffix("_pct"): column for column in columns}
        files_made = [made[file] for file in source.files if file in made]
        rows = [row for file in files_made for row in read_comparisons(file)]
        rows.sort(key=lambda row: any(row.get(name) != of for name, of in source.prefer.items()))
        for row in rows:
            if any(row.get(column) != value for column, value in source.where.items()):
                continue
            column = metrics.get(row.get(source.metric, ""))
            if name == TEXT_NUMBERS:
                # Its id identifies a number, whatever its table calls the metric.
                column = "value"
            values = [row.get(source.rows.get(key, key)) for key in table.keys]
            if column is None or None in values:
                continue
            named = tuple(
                published_names.get(str(value), str(value)) if key == "model" else str(value)
                for key, value in zip(table.keys, values, strict=True)
            )
            cell = OurCell(
                value=number_in(row["ours"]),
                comparable=row["comparable"] == "yes",
                reason=_reason(row),
                verdict=verdict_of(row),
            )
            # Two models may stand for one printed row; the one that was run speaks for it.
            known = cells.get((named, column))
            if known is None or known.value is None:
                cells[named, column] = cell
        ours[name] = cells
    return ours


def _reason(row: Mapping[str, str]) -> str:
    # Texts that stand beside each other have no difference.
    is_stated = row["ours"] and row["printed"] and not row.get("difference")
    return f"stated, not measured: {row['reason']}" if is_stated else row.get("reason", "")


def select(
    selection: Selection, catalogue: Mapping[str, PrintedTable], printed: PrintedNumbers
) -> dict[str, tuple[Row, float]]:
    """The printed numbers that a selection names.

    Returns:
        The full row and its number, by the values of those keys that `where` leaves open.

    Raises:
        ClaimError: no such table, key, column, or nothing selected.
    """
    if selection.table not in catalogue:
        raise ClaimError(f"unknown table {selection.table!r}, known: {', '.join(catalogue)}")
    keys = catalogue[selection.table].keys
    if unknown := (selection.where.keys() | selection.but_not) - set(keys):
        raise ClaimError(f"{selection.table} has no key {min(unknown)!r}, only {', '.join(keys)}")
    found = {}
    for row, numbers in printed[selection.table].items():
        named = dict(zip(keys, row, strict=True))
        if selection.takes(named) and selection.column in numbers:
            open_keys = (key for key in keys if not isinstance(selection.where.get(key), str))
            label = " / ".join(named[key] for key in open_keys)
            found[label] = (row, numbers[selection.column])
    if not found:
        raise ClaimError(
            f"{selection.table} has no number in column {selection.column!r}"
            f" where {selection.where}"
        )
    return found


def values_of(numbers: Mapping[str, float]) -> Values:
    """Numbers by row as a column, or the one of a selection that leaves no key open."""
    return numbers[""] if set(numbers) == {""} else pd.Series(numbers, dtype=float)
