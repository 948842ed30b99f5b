"""Read external predictions and align them to our sentence ids."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import BaseModel, BeforeValidator, Field

from pieline.core.errors import UserError, pluralize
from pieline.core.files import read_text
from pieline.core.records import Id, validated
from pieline.core.tables import read_table


class ExternalRow(BaseModel):
    """Row of an external predictions file; undeclared columns are ignored.

    If a row has a sentence, `align_rows` compares it with the dataset to detect wrong ids.
    """

    id: Annotated[Id, BeforeValidator(lambda value: str(value).strip())]
    sentence: Annotated[str | None, Field(exclude=True)] = None


R = TypeVar("R", bound=ExternalRow)


def read_rows(path: str | Path, row: type[R]) -> list[tuple[int, R]]:
    """Return the line number and content of each row of a CSV, TSV or JSONL file.

    Files with extensions other than .csv and .tsv are read as JSONL.

    Raises:
        UserError: The file cannot be read, or a row is invalid; the message states the location.
    """
    hint = f"the fields are {', '.join(row.model_fields)} (docs/adding.md)"
    delimiter = {".csv": ",", ".tsv": "\t"}.get(Path(path).suffix.lower())
    if not delimiter and Path(path).suffix.lower() not in (".jsonl", ".json", ".ndjson"):
        hint += "; the file name must end in .csv, .tsv or .jsonl"
    lines: Iterable[tuple[int, object]]
    if delimiter:
        lines = read_table(path, ["id"], delimiter=delimiter, hint=hint)
    else:
        # splitlines would also split at Unicode line separators within a text.
        texts = read_text(path).split("\n")
        lines = ((at, one) for at, one in enumerate(texts, start=1) if one.strip())
    return [
        (at, validated(row, value, where=f"{path}:{at}", hint=hint, is_json=not delimiter))
        for at, value in lines
    ]


def align_rows(
    rows: Iterable[tuple[int, R]], sentences: Mapping[str, str], *, where: str | Path
) -> Iterator[tuple[int, R]]:
    """Return the line number and row of each sentence, in the order of `sentences` (texts by id).

    Raises:
        UserError: An id is duplicate, unknown or missing, or the letters or digits of a row's
            sentence differ from the dataset's (ignoring case).
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
        if row.sentence and _letters(row.sentence) != _letters(sentences[name]):
            raise UserError(
                f"sentence {row.sentence!r} of {name} is {sentences[name]!r} in the dataset",
                where=f"{where}:{at}",
                hint="check the ids, or remove the column sentence",
            )
    return (by_id[name] for name in sentences)


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


def check_ids(lines: dict[str, int], ids: Sequence[str], things: str, *, where: str | Path) -> None:
    """Raise a `UserError` if ids are unknown or missing; the message has counts and examples.

    Args:
        lines: Line number of each id in the file.
        ids: Expected ids.
        things: Plural noun for the error message, such as "sentences".
        where: Path of the file.
    """
    known = set(ids)
    unknown = [name for name in lines if name not in known]
    missing = [name for name in ids if name not in lines]
    problems = []
    if unknown:
        problems.append(f"{pluralize(len(unknown), 'unknown id')}, such as {unknown[0]!r}")
    if missing:
        problems.append(
            f"no prediction for {len(missing)} of {len(ids)} {things}, such as {missing[0]!r}"
        )
    if problems:
        at = f":{lines[unknown[0]]}" if unknown else ""
        raise UserError(
            "; ".join(problems), where=f"{where}{at}", hint=f"predict the {things} of the dataset"
        )
