"""The numbers that the papers print, as a frame with the same keys as our numbers."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
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
"""Name of the file in published/ with the numbers of the running text."""
ANY = "*"
"""Value of a printed number's key that matches every value of our key."""
PRINTED = (
    "printed", "printed_decimals", "own_decimals", "spread", "ddof", "pool", "printed_tolerance",
    "place", "kind", "also_in", "printed_at", "shown_by", "printed_model", "what",
)  # fmt: skip
"""Columns of the frame of printed numbers, in addition to `KEYS`."""
Kind = Literal["score", "count", "parameter"]
Row = tuple[str, ...]
"""Values of the key columns, which identify a printed row."""


class Place(NamedTuple):
    """Place of a printed number in published/: file, values of the key columns, and column."""

    file: str
    row: Row
    column: str

    def __str__(self) -> str:
        return " | ".join((self.file, *self.row, self.column))

    @classmethod
    def parse(cls, text: str) -> "Place":
        """Parse the text of a place that `str` returned."""
        file, *row, column = text.split(" | ")
        return cls(file, tuple(row), column)


class Repeated(Frozen):
    """The table, row and column from which a column of another table repeats numbers."""

    table: str = Field(description="Name in published/, without extension.")
    row: dict[str, str] = Field(
        default={}, description="Keys that differ between the repeated and the repeating row."
    )
    column: str = Field(default="", description="Repeated column, if its name differs.")

    def place(self, row: Mapping[str, str], key_columns: Sequence[str], column: str) -> Place:
        """Return the place of the number that a cell repeats.

        Args:
            row: Row of the repeating cell, by column.
            key_columns: Key columns of the repeated table.
            column: Column of the repeating cell.
        """
        keys = {**row, **self.row}
        return Place(self.table, tuple(keys[key] for key in key_columns), self.column or column)


class PrintedSeeds(Frozen):
    """Number of seeds behind printed means; a mean without a deviation is from a single seed."""

    number: int = Field(description="Number of seeds.")
    of_setting: dict[str, int] = Field(
        default={}, description="Number of seeds in settings with another number."
    )
    ddof: list[int] = Field(default=[1], description="Possible ddof of the printed deviations.")
    pooled: bool = Field(
        default=False,
        description="Whether a deviation that is missing or 0 is replaced by the pooled deviation"
        " of the rows with the same language and number of seeds.",
    )

    def number_in_row(self, row: Mapping[str, str]) -> int:
        """Return the number of seeds of those means in a row that have a deviation."""
        return self.of_setting.get(row.get("setting", ""), self.number)


class Tolerance(Frozen):
    """Largest difference, in points, that counts as reproduced for some numbers of a table."""

    points: float
    where: dict[str, list[str]] = Field(
        default={}, description="Values that a key may have, by key."
    )
    one_decimal: bool = Field(
        default=False, description="Whether only numbers with one decimal count."
    )

    def applies(self, keys: Mapping[str, str], printed: float) -> bool:
        """Return whether the tolerance applies to a printed number."""
        if self.one_decimal and round(printed, 1) != printed:
            return False
        return all(keys[name] in values for name, values in self.where.items())


class PrintedTable(Frozen):
    """Entry of published/tables.yaml for a file with printed numbers."""

    paper: str | None = Field(description="Name of the study; null for all papers.")
    number: str = Field(description="Number of the table, such as `Table 2`.")
    title: str
    keys: list[str] = Field(min_length=1)
    rename: dict[str, str] = Field(
        default={}, description="Our names of key columns, by printed name, if they differ."
    )
    where: dict[str, str] = Field(
        default={}, description=f"Keys that no column contains; {ANY!r} matches any value."
    )
    prefer: dict[str, str] = Field(
        default={}, description="Keys of our number that counts if several match a printed number."
    )
    kind: Kind | None = Field(
        default="score", description="Kind of the numbers; null if the numbers do not count."
    )
    kinds: dict[str, Kind | None] = Field(
        default={}, description="Kinds of columns, if they differ from the table's kind."
    )
    repeats: dict[str, Repeated] = Field(
        default={},
        description="Places whose numbers a column repeats. A number counts only at that place.",
    )
    table: str = Field(
        default="", description="Our table that shows the numbers; empty if none does."
    )
    needs: dict[str, list[str]] = Field(
        default={}, description="What the numbers require in addition to models, by our table."
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
    """Return a frame with one row per printed number, with the same keys as our numbers.

    Args:
        files: Paths of files in published/, by name without extension.
        catalogue: Printed tables by name of their file.
        models: Names of models in models.yaml, by the name that the papers print. A number has one
            row per name in models.yaml.
    """
    rows: dict[tuple[str, ...], dict[str, Any]] = {}
    repeated_in: dict[Place, list[str]] = {}
    for name, path in files.items():
        for number in _numbers_in_file(name, path, catalogue):
            repeated_place = number.pop("repeats")
            if repeated_place:
                repeated_in.setdefault(repeated_place, []).append(number["place"])
            printed_model = number["printed_model"]
            for model in models.get(printed_model, [printed_model]):
                row = {**number, "model": model}
                keys = tuple(row[key] for key in KEYS)
                if keys in rows:
                    # Two places print the same number of the same run.
                    rows[keys]["printed_at"] += row["printed_at"]
                    rows[keys]["shown_by"] += row["shown_by"]
                else:
                    rows[keys] = row
    for row in rows.values():
        other_places: list[str] = []
        for place in row["printed_at"]:
            other_places += repeated_in.get(place, [])
        row["also_in"] = tuple(dict.fromkeys(other_places))
    return pd.DataFrame(list(rows.values()), columns=[*KEYS, *PRINTED])


def first_table(shown_by: Sequence[str]) -> str:
    """Return the first of the names of the tables that show a number; empty if there are none."""
    return shown_by[0] if shown_by else ""


RELEASED_RUN = "idiolink_released_run"
"""Name of the file in published/ with the scores of the authors' run."""


def read_released(
    files: Mapping[str, str], models: Mapping[str, Collection[str]]
) -> pd.DataFrame | None:
    """Return the scores of the authors' run in percent, with the same keys as our numbers.

    Args:
        files: Paths of files in published/, by name without extension.
        models: Names of models in models.yaml, by the name that the papers print.

    Returns:
        A frame with one row per score and model; None if `files` does not contain the scores.
    """
    if RELEASED_RUN not in files:
        return None
    rows = []
    for printed in read_printed(files[RELEASED_RUN]):
        if not printed["value"]:
            continue
        score = {
            **dict.fromkeys(KEYS, ""),
            "study": "idiolink",
            "query_mode": printed["query_mode"],
            "composition": printed["composition"],
            "scope": "" if printed["scope"] == "overall" else printed["scope"],
            "measure": printed["metric"],
            "released": round(100 * float(printed["value"]), 6),
        }
        names = models.get(printed["model"], [printed["model"]])
        rows += [{**score, "model": name} for name in names]
    return pd.DataFrame(rows, columns=[*KEYS, "released"])


def _numbers_in_file(name: str, path: str | Path, catalogue: Catalogue) -> Iterator[dict[str, Any]]:
    """Yield the numbers in a file of published/, with the columns of the frame and `repeats`.

    `repeats` is the place of the other number that the yielded number repeats, or None.
    """
    table, rows = catalogue[name], read_printed(path)
    if name == TEXT_NUMBERS:
        yield from _numbers_of_text(table, rows, catalogue)
    else:
        yield from _numbers_of_table(name, table, rows, catalogue)


def _numbers_of_text(
    table: PrintedTable, rows: Iterable[Mapping[str, str]], catalogue: Catalogue
) -> Iterator[dict[str, Any]]:
    """Yield the columns of the frame for each number that the running text prints."""
    for row in rows:
        printed = number_in(row["value"])
        if printed is None:
            continue
        place = _place(TEXT_NUMBERS, table, row, "value")
        number = _describe_number(printed, place, table, row, catalogue)
        yield {
            **number,
            "place": f"Section {row['section']}",
            "kind": "" if number["repeats"] else row["kind"],
            "shown_by": (row["table"],) if row["table"] else (),
            "what": row["what"],
        }


def _numbers_of_table(
    name: str, table: PrintedTable, rows: Sequence[Mapping[str, str]], catalogue: Catalogue
) -> Iterator[dict[str, Any]]:
    """Yield the columns of the frame for each printed number of a table, without `also_in`."""
    spreads = [_spreads(table, row) for row in rows]
    for row, spreads_of_row in zip(rows, spreads, strict=True):
        for column, text in row.items():
            printed = number_in(text)
            kind = table.kinds.get(column, table.kind)
            if column in table.keys or printed is None or kind is None:
                continue
            place = _place(name, table, row, column)
            number = _describe_number(printed, place, table, row, catalogue)
            # A deviation has the spread of the mean beside it.
            column_of_mean = column.removesuffix(DEVIATION)
            yield {
                **number,
                # All numbers of a column have the decimals of the most precise one.
                "printed_decimals": max(_decimals(any_row[column]) for any_row in rows),
                "spread": spreads_of_row.get(column_of_mean),
                "ddof": tuple(table.seeds.ddof) if table.seeds else (),
                "pool": _pool(table, row, rows, spreads, column_of_mean),
                "place": table.number,
                "kind": "" if number["repeats"] else kind,
                "shown_by": (table.table,) if table.table else (),
            }


def _place(name: str, table: PrintedTable, row: Mapping[str, str], column: str) -> Place:
    return Place(name, tuple(row[key] for key in table.keys), column)


def _describe_number(
    printed: float,
    place: Place,
    table: PrintedTable,
    row: Mapping[str, str],
    catalogue: Catalogue,
) -> dict[str, Any]:
    """Return the columns of a printed number that do not depend on other printed numbers.

    Args:
        printed: The printed number.
        place: Place of the number in published/.
        table: Entry of published/tables.yaml for the file that contains the number.
        row: Texts in the number's row, by column.
        catalogue: Printed tables by name of their file.
    """
    # Later entries take precedence.
    keys = {
        **dict.fromkeys(KEYS, ""),
        "study": table.paper or row["study"],
        **{key: row[key] for key in KEYS if row.get(key)},
        **{our_key: row[their_key] for their_key, our_key in table.rename.items()},
        **table.where,
    }
    keys["measure"] = keys["measure"] or place.column.replace("_pct", "")
    tolerances = [
        tolerance.points for tolerance in table.tolerances if tolerance.applies(keys, printed)
    ]
    decimals = _decimals(row[place.column])
    return {
        **keys,
        "printed": printed,
        "printed_decimals": decimals,
        "own_decimals": decimals,
        "spread": None,
        "ddof": (),
        "pool": (),
        "printed_tolerance": max(tolerances, default=0.0),
        "also_in": (),
        "printed_at": (place,),
        "printed_model": keys["model"],
        "what": "",
        "repeats": _repeated_place(place, table, row, catalogue),
    }


def _repeated_place(
    place: Place, table: PrintedTable, row: Mapping[str, str], catalogue: Catalogue
) -> Place | None:
    """Return the place of the number that a cell repeats; None if the cell repeats no other cell.

    Args:
        place: Place of the cell.
        table: Entry of published/tables.yaml for the file that contains the cell.
        row: Texts in the cell's row, by column.
        catalogue: Printed tables by name of their file.
    """
    repeated = table.repeats.get(place.column)
    if repeated is None:
        return None
    original = repeated.place(row, catalogue[repeated.table].keys, place.column)
    return None if original == place else original


def _decimals(text: str) -> int:
    return len(text.partition(".")[2])


def _spreads(table: PrintedTable, row: Mapping[str, str]) -> dict[str, Spread]:
    """Return the mean, deviation and number of seeds of each mean in a row, by column of the mean.

    The result is empty if the printed numbers of the table are not means over seeds.
    """
    if not table.seeds:
        return {}
    spreads = {}
    for column, text in row.items():
        mean = number_in(text)
        if mean is None or column in table.keys or column.endswith(DEVIATION):
            continue
        deviation = number_in(row.get(f"{column}{DEVIATION}", ""))
        # A mean that is printed without a deviation is that of a single seed.
        seeds = 1 if deviation is None else table.seeds.number_in_row(row)
        spreads[column] = Spread(mean=mean, deviation=deviation, seeds=seeds)
    return spreads


def _pool(
    table: PrintedTable,
    row: Mapping[str, str],
    rows: Sequence[Mapping[str, str]],
    spreads: Sequence[Mapping[str, Spread]],
    column: str,
) -> tuple[Spread, ...]:
    """Return the spreads whose pooled deviation replaces a missing deviation in a row.

    These are the spreads of the same column, over several seeds, in the rows with the same language
    and number of seeds. The result is empty if the table does not pool deviations.

    Args:
        table: Entry of published/tables.yaml for the table.
        row: The row, by column.
        rows: All rows of the table.
        spreads: Spreads of each of `rows`, by column.
        column: Column of the mean.
    """
    if not (table.seeds and table.seeds.pooled):
        return ()
    seeds_of_row = table.seeds.number_in_row(row)
    pool = []
    for other_row, other_spreads in zip(rows, spreads, strict=True):
        has_same_language = other_row["language"] == row["language"]
        has_same_seeds = table.seeds.number_in_row(other_row) == seeds_of_row
        spread = other_spreads.get(column)
        if has_same_language and has_same_seeds and spread is not None and spread.seeds > 1:
            pool.append(spread)
    return tuple(pool)
