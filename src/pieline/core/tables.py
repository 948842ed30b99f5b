"""Read CSV and TSV tables, with errors that state the line, and write CSV tables."""

import csv
import io
import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from pieline.core.errors import UserError, meant, pluralize
from pieline.core.files import read_text, write_text

_FORMULA = re.compile(r"'*[=+\-@\t\r]")
"""Beginning of a cell that spreadsheet programs run as a formula, possibly after apostrophes."""


def _harmless(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value


def _restored(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def read_table(
    path: str | Path,
    columns: Collection[str],
    *,
    more: Collection[str] | None = None,
    delimiter: str = ",",
    quoted: bool = True,
    for_people: bool = False,
    commented: bool = False,
    hint: str,
) -> list[tuple[int, dict[str, str]]]:
    """Return, for each row of a table, the number of its last line and its cells by column.

    Blank lines are skipped.

    Args:
        path: Path of the file.
        columns: Required columns, in any order.
        more: Optional columns; None allows any column.
        delimiter: Cell separator.
        quoted: Whether cells may be quoted; otherwise, quotes are ordinary characters.
        for_people: Whether `write_csv` wrote the table with this option.
        commented: Whether lines that begin with `#` may precede the header.
        hint: Hint for a wrong row or header.

    Raises:
        UserError: The file cannot be read, is empty or is not a valid table, a column is missing,
            unknown or duplicate, or a row and the header have different numbers of cells; the
            message states the location.
    """
    reader = csv.reader(
        io.StringIO(read_text(path), newline=""),
        delimiter=delimiter,
        quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE,
        strict=True,
    )
    rows: list[tuple[int, dict[str, str]]] = []
    header: list[str] | None = None
    try:
        for cells in reader:
            if commented and header is None and cells and cells[0].startswith("#"):
                continue
            if header is None:
                header = cells
                known = {*columns, *(more or ())}
                others = [name for name in cells if name not in known and len(cells) > 1]
                problems = [
                    f"no column {name!r}{meant(name, others)}"
                    for name in columns
                    if name not in cells
                ]
                if more is not None:
                    problems += [f"unknown column {name!r}" for name in cells if name not in known]
                problems += [
                    f"duplicate column {name!r}" for name in cells if cells.count(name) > 1
                ]
                if problems:
                    if len(cells) == 1 and (other := re.search(r"[,;\t]", cells[0])):
                        hint = f"separate the columns by {delimiter!r}, not {other[0]!r}"
                    raise UserError(problems[0], where=f"{path}:1", hint=hint)
            elif cells:
                if len(cells) != len(header):
                    problem = f"{pluralize(len(cells), 'cell')} instead of {len(header)}"
                    raise UserError(problem, where=f"{path}:{reader.line_num}", hint=hint)
                row = dict(zip(header, map(_restored, cells) if for_people else cells, strict=True))
                rows.append((reader.line_num, row))
    except csv.Error as error:
        raise UserError(
            f"not a valid table: {error}", where=f"{path}:{reader.line_num}", hint=hint
        ) from None
    if header is None:
        raise UserError("the file is empty", where=path, hint=hint)
    return rows


def write_csv(
    path: str | Path,
    columns: Collection[str],
    rows: Iterable[Mapping[str, Any]],
    *,
    delimiter: str = ",",
    for_people: bool = False,
) -> None:
    """Write rows as CSV, atomically; None and missing values become empty cells.

    Args:
        path: Path of the file.
        columns: Names of the columns.
        rows: Values by column.
        delimiter: Cell separator.
        for_people: Whether to put an apostrophe before texts that spreadsheet programs would run as
            formulas; `read_table` removes it.

    Raises:
        ValueError: A row has a key that is not in `columns`.
    """
    text = io.StringIO()
    table = csv.DictWriter(text, columns, delimiter=delimiter, lineterminator="\n")
    table.writeheader()
    table.writerows(
        {name: _harmless(value) for name, value in row.items()} if for_people else row
        for row in rows
    )
    write_text(path, text.getvalue())
