"""The numbers that the papers print, as a frame with the keys of ours."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pandas as pd
from pydantic import Field

from pieline.core.records import Frozen, validated
from pieline.core.uncertainty import Spread
from pieline.core.yamls import read_mapping
from pieline.reporting.ours import DEVIATION, KEYS
from pieline.reporting.printed import number_in, read_printed

TEXT_NUMBERS = "text_numbers"
ANY = "*"
"""Value of a key that matches any value of ours."""
PRINTED = (
    "printed", "printed_decimals", "own_decimals", "spread", "ddof", "pool", "printed_tolerance",
    "place", "kind", "also_in", "printed_at", "shown_by", "printed_model", "what",
)  # fmt: skip
"""Columns of the printed frame besides `KEYS`; `table` is the name of our table."""
Kind = Literal["score", "count", "parameter"]
Row = tuple[str, ...]
"""Values of the key columns that identify a printed row."""


class Place(NamedTuple):
    """A printed number: file in published/, values of the keys of its row, and column."""

    file: str
    row: Row
    column: str

    def __str__(self) -> str:
        return " | ".join((self.file, *self.row, self.column))

    @classmethod
    def parse(cls, text: str) -> "Place":
        """Return the place from its text."""
        file, *row, column = text.split(" | ")
        return cls(file, tuple(row), column)


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
        return Place(self.table, tuple(values[key] for key in wanted), self.column or column)


class PrintedSeeds(Frozen):
    """Seeds behind printed means with a deviation; a mean without one is from a single seed."""

    number: int = Field(description="Number of seeds.")
    of_setting: dict[str, int] = Field(default={}, description="Other numbers, by setting.")
    ddof: list[int] = Field(default=[1], description="Possible values of ddof in the deviations.")
    pooled: bool = Field(
        default=False,
        description="Whether a missing deviation, or one of 0, is replaced by the pooled one of the"
        " rows with the same language and number of seeds.",
    )


class Tolerance(Frozen):
    """Largest difference that counts as reproduced, for some numbers of a table."""

    points: float
    where: dict[str, list[str]] = Field(default={}, description="Values of keys.")
    one_decimal: bool = Field(default=False, description="Only numbers printed with one decimal.")

    def applies(self, keys: Mapping[str, str], printed: float) -> bool:
        """Return whether the tolerance applies to a printed number."""
        in_rows = all(keys[name] in values for name, values in self.where.items())
        return in_rows and not (self.one_decimal and round(printed, 1) != printed)


class PrintedTable(Frozen):
    """Entry of published/tables.yaml for a file with printed numbers."""

    paper: str | None = Field(description="Study name; None for all three papers.")
    number: str = Field(description="Number in the paper.")
    title: str
    keys: list[str] = Field(min_length=1)
    rename: dict[str, str] = Field(
        default={}, description="Keys of our numbers by key, if their names differ."
    )
    where: dict[str, str] = Field(
        default={}, description=f"Other keys of our numbers; {ANY!r}: any value."
    )
    prefer: dict[str, str] = Field(
        default={}, description="Of several numbers of ours, those with these values count."
    )
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
    table: str = Field(default="", description="Our table with these numbers; empty for none.")
    needs: dict[str, list[str]] = Field(
        default={}, description="Requirements of numbers besides models, by name of our table."
    )
    seeds: PrintedSeeds | None = Field(
        default=None, description="Null: the printed numbers are not means over seeds."
    )
    tolerances: list[Tolerance] = Field(default=[], description="The largest one applies.")


Catalogue = Mapping[str, PrintedTable]


def load_catalogue(path: str | Path) -> dict[str, PrintedTable]:
    """Read the printed tables, by file name, from published/tables.yaml.

    Raises:
        UserError: An entry is invalid; the message names the file, the table and the field.
    """
    return {
        name: validated(PrintedTable, fields, where=f"{path}: {name}", hint="see the other tables")
        for name, fields in read_mapping(path, hint="see the top of the file").items()
    }


def printed_frame(
    files: Mapping[str, str | Path],
    catalogue: Catalogue,
    models: Mapping[str, Collection[str]],
) -> pd.DataFrame:
    """Return the printed numbers as rows, with the keys of our numbers.

    Args:
        files: Paths of files in published/, by name without extension.
        catalogue: Printed tables by name.
        models: Names of models in models.yaml, by printed name; with several, each has a row.
    """
    rows: dict[tuple[str, ...], dict[str, Any]] = {}
    repeated: dict[Place, list[str]] = {}
    for name, path in files.items():
        for row in _rows(name, catalogue[name], read_printed(path), catalogue):
            if first := row.pop("repeats"):
                repeated.setdefault(first, []).append(row["place"])
            for model in models.get(row["printed_model"], [row["printed_model"]]):
                found = row | {"model": model}
                same = rows.setdefault(tuple(found[key] for key in KEYS), found)
                if same is not found:
                    # Another place prints the same number of the same run.
                    same["printed_at"] += found["printed_at"]
                    same["shown_by"] += found["shown_by"]
    for row in rows.values():
        also = (repeated.get(place, ()) for place in row["printed_at"])
        row["also_in"] = tuple(dict.fromkeys(text for each in also for text in each))
    return pd.DataFrame(list(rows.values()), columns=[*KEYS, *PRINTED])


def first_table(shown_by: Sequence[str]) -> str:
    """Return the table for which a printed number is listed in published/; empty if none."""
    return next(iter(shown_by), "")


RELEASED_RUN = "idiolink_released_run"


def read_released(
    files: Mapping[str, str], models: Mapping[str, Collection[str]]
) -> pd.DataFrame | None:
    """Return the scores of the authors' run in percent, with the keys of our numbers.

    Args:
        files: Paths of files, by name; without the scores, the result is None.
        models: Names of models in models.yaml, by printed name.
    """
    if RELEASED_RUN not in files:
        return None
    rows = [
        {
            **dict.fromkeys(KEYS, ""),
            "study": "idiolink",
            "model": model,
            "query_mode": row["query_mode"],
            "composition": row["composition"],
            "scope": "" if row["scope"] == "overall" else row["scope"],
            "measure": row["metric"],
            "released": round(100 * float(row["value"]), 6),
        }
        for row in read_printed(files[RELEASED_RUN])
        if row["value"]
        for model in models.get(row["model"], [row["model"]])
    ]
    return pd.DataFrame(rows, columns=[*KEYS, "released"])


def _rows(
    name: str, table: PrintedTable, rows: Sequence[Mapping[str, str]], catalogue: Catalogue
) -> Iterator[dict[str, Any]]:
    """Yield the numbers of a printed table, with the place that each repeats, if any."""
    is_text = name == TEXT_NUMBERS
    spreads = [_spreads(table, row) for row in rows]
    # A column has the decimals of its most precise number.
    decimals = {} if is_text else {name: max(map(_decimals, of)) for name, of in _columns(rows)}
    for row, of_row in zip(rows, spreads, strict=True):
        key = tuple(row[each] for each in table.keys)
        keys = {
            **dict.fromkeys(KEYS, ""),
            "study": table.paper or row["study"],
            **{each: row[each] for each in KEYS if row.get(each)},
            **{ours: row[theirs] for theirs, ours in table.rename.items()},
            **table.where,
        }
        for column in ["value"] if is_text else row:
            printed = None if column in table.keys else number_in(row[column])
            kind = row["kind"] if is_text else table.kinds.get(column, table.kind)
            if printed is None or not (kind or is_text):
                continue
            place = Place(name, key, column)
            other = table.repeats.get(column)
            first = other and other.place(row, catalogue[other.table].keys, column)
            repeats = first if first != place else None
            of_column = column.removesuffix(DEVIATION)
            of_number = {
                **keys,
                "measure": keys["measure"] or column.replace("_pct", ""),
            }
            tolerances = [t.points for t in table.tolerances if t.applies(of_number, printed)]
            yield {
                **of_number,
                "printed": printed,
                "printed_decimals": decimals.get(column, _decimals(row[column])),
                "own_decimals": _decimals(row[column]),
                "spread": of_row.get(of_column),
                "ddof": tuple(table.seeds.ddof) if table.seeds else (),
                "pool": _pool(table, row, rows, spreads, of_column),
                "printed_tolerance": max(tolerances, default=0.0),
                "place": f"Section {row['section']}" if is_text else table.number,
                "kind": "" if repeats else kind or "",
                "also_in": (),
                "printed_at": (place,),
                "shown_by": tuple(filter(None, [row["table"] if is_text else table.table])),
                "printed_model": keys["model"],
                "what": row["what"] if is_text else "",
                "repeats": repeats,
            }


def _columns(rows: Sequence[Mapping[str, str]]) -> Iterator[tuple[str, list[str]]]:
    for name in rows[0]:
        yield name, [row[name] for row in rows]


def _decimals(text: str) -> int:
    return len(text.partition(".")[2])


def _spreads(table: PrintedTable, row: Mapping[str, str]) -> dict[str, Spread]:
    """Return mean, deviation and number of seeds by column, if the table has means over seeds."""
    if not table.seeds:
        return {}
    number = table.seeds.of_setting.get(row.get("setting", ""), table.seeds.number)
    spreads = {}
    for column, text in row.items():
        mean = number_in(text)
        if mean is not None and column not in table.keys and not column.endswith(DEVIATION):
            deviation = number_in(row.get(f"{column}{DEVIATION}", ""))
            seeds = 1 if deviation is None else number
            spreads[column] = Spread(mean=mean, deviation=deviation, seeds=seeds)
    return spreads


def _pool(
    table: PrintedTable,
    row: Mapping[str, str],
    rows: Sequence[Mapping[str, str]],
    spreads: Sequence[Mapping[str, Spread]],
    column: str,
) -> tuple[Spread, ...]:
    """Return the spreads of a column whose deviations are pooled for a row."""
    if not (table.seeds and table.seeds.pooled):
        return ()
    of_setting = table.seeds.of_setting
    group = row["language"], of_setting.get(row["setting"])
    alike = []
    for other, of_row in zip(rows, spreads, strict=True):
        is_alike = (other["language"], of_setting.get(other["setting"])) == group
        if is_alike and column in of_row:
            alike.append(of_row[column])
    return tuple(spread for spread in alike if spread.seeds > 1)
