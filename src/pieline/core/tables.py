"""Read and write CSV and TSV tables; error messages state the line."""

import csv
import io
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pieline.core.errors import UserError, pluralize, suggest_name
from pieline.core.files import read_text, write_text

DELIMITERS = {".csv": ",", ".tsv": "\t"}
"""Cell separators of tables, by extension."""
_FORMULA = re.compile(r"'*[=+\-@\t\r]")
"""Beginning of a cell that spreadsheet programs run as a formula, possibly after apostrophes."""


def _escape_formula(value: Any) -> Any:
    """Put an apostrophe before a text that spreadsheet programs would run as a formula."""
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value


def _unescape_formula(cell: str) -> str:
    """Remove the apostrophe that `_escape_formula` added."""
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
    """Return each row of a table as the number of the row's last line, and its cells by column.

    Skips blank lines below the header, and comments (lines that start with `#`) above the header.

    Args:
        path: Path of the file.
        columns: Required columns, in any order.
        more: Further columns that the table may have; None allows all columns.
        delimiter: Cell separator.
        quoted: Whether cells may be quoted; otherwise, quotes are ordinary characters.
        for_people: Whether `write_csv` wrote the table with `for_people`.
        hint: Hint for the error message about a wrong row or header.

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
                    header_hint = _delimiter_hint(header, delimiter) or hint
                    raise UserError(problem, where=where, hint=header_hint)
            elif cells:
                if len(cells) != len(header):
                    problem = f"{pluralize(len(cells), 'cell')} instead of {len(header)}"
                    raise UserError(problem, where=where, hint=hint)
                texts = [_unescape_formula(cell) for cell in cells] if for_people else cells
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
    """Describe the first problem of a header; None if the header has the right columns.

    The header must have all `columns`, and may also have the columns `more` (None: any columns).
    """
    allowed = {*columns, *(more or ())}
    unknown = [column for column in header if column not in allowed]
    for column in columns:
        if column not in header:
            # A header with one cell was probably split at the wrong delimiter: suggest no name.
            candidates = unknown if len(header) > 1 else ()
            return f"no column {column!r}{suggest_name(column, candidates)}"
    if unknown and more is not None:
        return f"unknown column {unknown[0]!r}"
    for column in header:
        if header.count(column) > 1:
            return f"duplicate column {column!r}"
    return None


def _delimiter_hint(header: Sequence[str], delimiter: str) -> str:
    """Return a hint if a header with one cell contains another delimiter, else ""."""
    if len(header) != 1:
        return ""
    other = re.search(r"[,;\t]", header[0])
    return f"separate the columns by {delimiter!r}, not {other[0]!r}" if other else ""


def write_csv(
    path: str | Path,
    columns: Collection[str],
    rows: Iterable[Mapping[str, Any]],
    *,
    delimiter: str = ",",
    for_people: bool = False,
) -> None:
    """Write rows as a CSV or TSV file, atomically; None and missing values become empty cells.

    Args:
        path: Path of the file.
        columns: Names of the columns.
        rows: Values of each row, by column.
        delimiter: Cell separator.
        for_people: Whether to put an apostrophe before texts that spreadsheet programs would run as
            formulas; `read_table` can remove the apostrophe.

    Raises:
        ValueError: A row has a key that is not in `columns`.
    """
    text = io.StringIO()
    table = csv.DictWriter(text, columns, delimiter=delimiter, lineterminator="\n")
    table.writeheader()
    for row in rows:
        if for_people:
            table.writerow({column: _escape_formula(value) for column, value in row.items()})
        else:
            table.writerow(row)
    write_text(path, text.getvalue())
