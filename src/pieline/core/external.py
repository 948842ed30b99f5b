"""Read external predictions and align them to our sentence ids."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, Field

from pieline.core.errors import UserError
from pieline.core.files import canonical_json, parse_json, read_text, sha256, sha256_of
from pieline.core.records import Id, check_ids, validated
from pieline.core.tables import DELIMITERS, read_table
from pieline.core.texts import quote_both, text_key


class ExternalRow(BaseModel):
    """Row of an external predictions file; undeclared columns are ignored.

    To detect wrong ids, `align_rows` compares the sentence, if there is one, with the dataset.
    """

    id: Annotated[Id, BeforeValidator(lambda value: str(value).strip())]
    sentence: Annotated[str | None, Field(exclude=True)] = None


R = TypeVar("R", bound=ExternalRow)
_EXTENSIONS = (*DELIMITERS, ".jsonl", ".json", ".ndjson", ".parquet")


def read_rows(path: str | Path, row_class: type[R]) -> list[tuple[int, R]]:
    """Read the rows of a CSV, TSV, JSONL, JSON or Parquet file, each with the row's line number.

    CSV, TSV, JSONL and JSON files may be gzipped. A file with an unknown extension is read as
    JSONL or, if it starts with a bracket, as a JSON array. In JSON arrays and Parquet files, the
    number of the object or row replaces the line number.

    Raises:
        UserError: The file cannot be read, or a row is invalid; the message states the location.
    """
    extension = _extension(path)
    hint = f"the fields are {', '.join(row_class.model_fields)} (docs/adding/predictions.md)"
    if extension not in _EXTENSIONS:
        hint = f"{hint}; the file name must end in .csv, .tsv, .jsonl, .json or .parquet"
    numbered_rows: Iterable[tuple[int, object]]
    if extension == ".parquet":
        numbered_rows = enumerate(_parquet_rows(path), start=1)
    elif extension in DELIMITERS:
        numbered_rows = read_table(path, ["id"], delimiter=DELIMITERS[extension], hint=hint)
    else:
        numbered_rows = _json_rows(path, hint)
    return [
        (line, validated(row_class, fields, where=f"{path}:{line}", hint=hint))
        for line, fields in numbered_rows
    ]


def _extension(path: str | Path) -> str:
    """Return the extension of a file in lower case, without a final .gz."""
    return Path(str(path).lower().removesuffix(".gz")).suffix


def _json_rows(path: str | Path, hint: str) -> Iterator[tuple[int, object]]:
    """Yield the objects of a JSONL file with their line numbers, or of a JSON array with positions.

    Raises:
        UserError: The file cannot be read, or is not JSON.
    """
    text = read_text(path)
    if text.lstrip().startswith("["):
        try:
            yield from enumerate(parse_json(text), start=1)
        except ValueError as error:
            raise UserError(f"not a JSON array: {error}", where=path, hint=hint) from None
        return
    # splitlines would also split at Unicode line separators within a text.
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                yield number, parse_json(line)
            except ValueError as error:
                where = f"{path}:{number}"
                raise UserError(f"not JSON: {error}", where=where, hint=hint) from None


def _parquet_rows(path: str | Path) -> list[dict[str, Any]]:
    """Return the rows of a Parquet file.

    Raises:
        UserError: The file cannot be read.
    """
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

    The key depends neither on the format of a file, nor on the order of rows, nor on the tags in a
    TREC ranking. For a file that cannot be read, the key is the digest of the content; the job that
    reads the file reports the error.
    """
    try:
        if _extension(path) in _EXTENSIONS:
            rows = [
                _comparable_text(row.model_dump(exclude_none=True))
                for _, row in read_rows(path, _AnyRow)
            ]
        else:
            rows = [
                " ".join(line.split()[:_TREC_FIELDS_WITHOUT_TAG])
                for line in read_text(path).split("\n")
            ]
    except UserError:
        return sha256(path)
    return sha256_of("\n".join(sorted(row for row in rows if row)).encode())


_TREC_FIELDS_WITHOUT_TAG = 5
"""Number of fields before the tag in a line of a TREC ranking."""


class _AnyRow(ExternalRow, extra="allow"):
    """Row of an external predictions file, with its undeclared columns."""


def _comparable_text(row: Mapping[str, Any]) -> str:
    """Return a text that is equal for rows with the same content, whatever the file format is.

    Case and spaces around cells are ignored, empty cells are omitted, and lists are joined by
    semicolons.
    """
    cells = {}
    for column, value in row.items():
        text = ";".join(map(str, value)) if isinstance(value, list) else str(value)
        if text.strip():
            cells[column] = text.strip().casefold()
    return canonical_json(cells)


def align_rows(
    rows: Iterable[tuple[int, R]], sentences: Mapping[str, str], *, where: str | Path
) -> list[tuple[int, R]]:
    """Return the line number and row of each sentence, in the order of the sentences.

    Args:
        rows: Line number and row of each prediction.
        sentences: Sentences of the dataset by id.
        where: Path of the file, for error messages.

    Raises:
        UserError: An id occurs more than once, is unknown or is missing, or the sentence in a row
            differs from the sentence in the dataset (see `text_key`).
    """
    rows_by_id: dict[str, R] = {}
    lines_by_id: dict[str, int] = {}
    for line, row in rows:
        if row.id in lines_by_id:
            raise UserError(
                f"id {row.id!r} is also in line {lines_by_id[row.id]}",
                where=f"{where}:{line}",
                hint="predict each sentence once",
            )
        rows_by_id[row.id] = row
        lines_by_id[row.id] = line
    check_ids(lines_by_id, list(sentences), "sentences", where=where)
    for row in rows_by_id.values():
        if row.sentence and text_key(row.sentence) != text_key(sentences[row.id]):
            ours, theirs = quote_both(sentences[row.id], row.sentence)
            raise UserError(
                f"sentence {theirs} of {row.id} is {ours} in the dataset",
                where=f"{where}:{lines_by_id[row.id]}",
                hint="check the ids, or remove the column sentence",
            )
    return [(lines_by_id[sentence_id], rows_by_id[sentence_id]) for sentence_id in sentences]
