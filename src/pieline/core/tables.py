"""Read CSV and TSV tables, with errors that state the line, and write CSV tables."""

import csv
import io
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
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
    hint: str,
) -> list[tuple[int, dict[str, str]]]:
    """Return, for each row of a table, the number of its last line and its cells by column.

    Blank lines below the header and comments above it (lines that begin with `#`) are skipped.

    Args:
        path: Path of the file.
        columns: Required columns, in any order.
        more: Optional columns; None allows any column.
        delimiter: Cell separator.
        quoted: Whether cells may be quoted; otherwise, quotes are ordinary characters.
        for_people: Whether `write_csv` wrote the table with this option.
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
    header: list[str] | None = None
    rows: list[tuple[int, dict[str, str]]] = []
    try:
        for cells in reader:
            where = f"{path}:{reader.line_num}"
            if header is None:
                if cells and cells[0].startswith("#"):
                    continue
                header = cells
                if problem := _header_problem(header, columns, more):
                    hint = _delimiter_hint(header, delimiter) or hint
                    raise UserError(problem, where=where, hint=hint)
            elif cells:
                if len(cells) != len(header):
                    problem = f"{pluralize(len(cells), 'cell')} instead of {len(header)}"
                    raise UserError(problem, where=where, hint=hint)
                texts = map(_restored, cells) if for_people else cells
                rows.append((reader.line_num, dict(zip(header, texts, strict=True))))
    except csv.Error as error:
        raise UserError(
            f"not a valid table: {error}", where=f"{path}:{reader.line_num}", hint=hint
        ) from None
    if header is None:
        raise UserError("the file is empty", where=path, hint=hint)
    return rows


def _header_problem(
    header: Sequence[str], columns: Collection[str], more: Collection[str] | None
) -> str | None:
    """Describe the first problem of a header; None if it has the right columns."""
    known = {*columns, *(more or ())}
    unknown = [name for name in header if name not in known]
    for name in columns:
        if name not in header:
            # A header with one cell probably has another delimiter.
            similar = unknown if len(header) > 1 else ()
            return f"no column {name!r}{meant(name, similar)}"
    if unknown and more is not None:
        return f"unknown column {unknown[0]!r}"
    for name in header:
        if header.count(name) > 1:
            return f"duplicate column {name!r}"
    return None


def _delimiter_hint(header: Sequence[str], delimiter: str) -> str:
    """Return a hint if the only cell of a header contains another delimiter, else nothing."""
    other = re.search(r"[,;\t]", header[0]) if len(header) == 1 else None
    return f"separate the columns by {delimiter!r}, not {other[0]!r}" if other else ""


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
