"""Read external predictions and align them to our sentence ids."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, Field

from pieline.core.errors import UserError
from pieline.core.files import canonical_json, parse_json, read_text, sha256, sha256_of
from pieline.core.records import Id, check_ids, validated
from pieline.core.tables import read_table
from pieline.core.texts import quote_both, text_key


class ExternalRow(BaseModel):
    """Row of an external predictions file; undeclared columns are ignored.

    If a row has a sentence, `align_rows` compares it with the dataset to detect wrong ids.
    """

    id: Annotated[Id, BeforeValidator(lambda value: str(value).strip())]
    sentence: Annotated[str | None, Field(exclude=True)] = None


R = TypeVar("R", bound=ExternalRow)
_TABLES = (".csv", ".tsv", ".jsonl", ".json", ".ndjson", ".parquet")


def read_rows(path: str | Path, row: type[R]) -> list[tuple[int, R]]:
    """Return the line number and content of each row of a CSV, TSV, JSONL or Parquet file.

    Text files may be gzipped. Files with extensions other than .csv, .tsv and .parquet are read as
    JSONL, or as a JSON array, in which the numbers of the objects replace those of lines.

    Raises:
        UserError: The file cannot be read, or a row is invalid; the message states the location.
    """
    hint = f"the fields are {', '.join(row.model_fields)} (docs/adding/predictions.md)"
    suffix = Path(str(path).lower().removesuffix(".gz")).suffix
    delimiter = {".csv": ",", ".tsv": "\t"}.get(suffix)
    if suffix not in _TABLES:
        hint += "; the file name must end in .csv, .tsv or .jsonl, or in .parquet"
    lines: Iterable[tuple[int, object]]
    if suffix == ".parquet":
        lines = enumerate(_parquet_rows(path), start=1)
    elif delimiter:
        lines = read_table(path, ["id"], delimiter=delimiter, hint=hint)
    else:
        lines = _json_rows(path, hint)
    return [(at, validated(row, value, where=f"{path}:{at}", hint=hint)) for at, value in lines]


def _json_rows(path: str | Path, hint: str) -> Iterator[tuple[int, object]]:
    """Yield the objects of a JSONL file with their lines, or of a JSON array with their numbers."""
    text = read_text(path)
    if text.lstrip().startswith("["):
        try:
            yield from enumerate(parse_json(text), start=1)
        except ValueError as error:
            raise UserError(f"not a JSON array: {error}", where=path, hint=hint) from None
        return
    # splitlines would also split at Unicode line separators within a text.
    for at, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                yield at, parse_json(line)
            except ValueError as error:
                raise UserError(f"not JSON: {error}", where=f"{path}:{at}", hint=hint) from None


def _parquet_rows(path: str | Path) -> list[dict[str, Any]]:
    # Import lazily: loading takes 0.2 s, and few predictions are in Parquet.
    import pyarrow
    from pyarrow import parquet

    try:
        rows: list[dict[str, Any]] = parquet.read_table(path).to_pylist()
    except (OSError, pyarrow.ArrowException) as error:
        problem = f"not a Parquet file: {error}"
        raise UserError(problem, where=path, hint="write the file again") from None
    return rows


def predictions_key(path: str | Path) -> str:
    """Return a key that is equal for files with the same predictions.

    The order of rows, the format and the tags of a run do not matter. For a file that cannot be
    read, the key is the digest of its content; the job that reads the file reports the error.
    """
    try:
        if Path(str(path).lower().removesuffix(".gz")).suffix in _TABLES:
            read = (row.model_dump(exclude_none=True) for _, row in read_rows(path, _AnyRow))
            rows = [_plain(row) for row in read]
        else:
            # All fields of a line of a run, except its tag.
            rows = [" ".join(line.split()[:5]) for line in read_text(path).split("\n")]
    except UserError:
        return sha256(path)
    return sha256_of("\n".join(sorted(filter(None, rows))).encode())


class _AnyRow(ExternalRow, extra="allow"):
    """Row with all of its columns."""


def _plain(row: Mapping[str, Any]) -> str:
    """Return a row as text, in which `True`, `true` and lists of cells are spelled alike."""
    cells = {
        name: ";".join(map(str, value)) if isinstance(value, list) else str(value)
        for name, value in row.items()
    }
    return canonical_json(
        {name: cell.strip().casefold() for name, cell in cells.items() if cell.strip()}
    )


def align_rows(
    rows: Iterable[tuple[int, R]], sentences: Mapping[str, str], *, where: str | Path
) -> Iterator[tuple[int, R]]:
    """Return the line number and row of each sentence, in the order of `sentences` (texts by id).

    Raises:
        UserError: An id is duplicate, unknown or missing, or a row's sentence differs from the
            dataset's (see `text_key`).
    """
    by_id: dict[str, tuple[int, R]] = {}
    for at, row in rows:
        if row.id in by_id:
            raise UserError(
                f"id {row.id!r} is also in line {by_id[row.id][0]}",
                where=f"{where}:{at}",
                hint="predict each sentence once",
            )
        by_id[row.id] = at, row
    lines = {name: at for name, (at, _) in by_id.items()}
    check_ids(lines, [*sentences], "sentences", where=where)
    for name, (at, row) in by_id.items():
        if row.sentence and text_key(row.sentence) != text_key(sentences[name]):
            ours, theirs = quote_both(sentences[name], row.sentence)
            raise UserError(
                f"sentence {theirs} of {name} is {ours} in the dataset",
                where=f"{where}:{at}",
                hint="check the ids, or remove the column sentence",
            )
    return (by_id[name] for name in sentences)
