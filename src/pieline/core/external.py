"""Predictions that other programs wrote: rows with their lines, in the order of our ids."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import BaseModel, BeforeValidator, Field

from pieline.core.errors import UserError, pluralize
from pieline.core.files import read_text
from pieline.core.records import Id, validated
from pieline.core.tables import read_table


class ExternalRow(BaseModel):
    """A row of such a file. Columns that it does not declare are left aside.

    A sentence, where there is one, shows that the id is right.
    """

    id: Annotated[Id, BeforeValidator(lambda value: str(value).strip())]
    sentence: Annotated[str | None, Field(exclude=True)] = None


R = TypeVar("R", bound=ExternalRow)


def read_rows(path: str | Path, row: type[R]) -> list[tuple[int, R]]:
    """The rows of a CSV, a TSV or (any other ending) a JSONL, each with its line.

    Raises:
        UserError: a row is not what it should be; names file and line.
    """
    hint = f"the fields are {', '.join(row.model_fields)} (docs/adding.md)"
    delimiter = {".csv": ",", ".tsv": "\t"}.get(Path(path).suffix.lower())
    if not delimiter and Path(path).suffix.lower() not in (".jsonl", ".json", ".ndjson"):
        hint += "; name it .csv, .tsv or .jsonl by what it holds"
    lines: Iterable[tuple[int, object]]
    if delimiter:
        lines = read_table(path, ["id"], delimiter=delimiter, hint=hint)
    else:
        # Not splitlines: a text may hold one of Unicode's other line separators.
        texts = read_text(path).split("\n")
        lines = ((at, one) for at, one in enumerate(texts, start=1) if one.strip())
    return [
        (at, validated(row, value, where=f"{path}:{at}", hint=hint, is_json=not delimiter))
        for at, value in lines
    ]


def one_each(
    rows: Iterable[tuple[int, R]], sentences: Mapping[str, str], *, where: str | Path
) -> Iterator[tuple[int, R]]:
    """The row of each id, in the order of the sentences, which are given by their ids.

    Raises:
        UserError: an id occurs twice, is unknown or has no row, or a row has another sentence;
            names file, line and how many.
    """
    found: dict[str, tuple[int, R]] = {}
    for at, row in rows:
        if row.id in found:
            raise UserError(
                f"id {row.id!r} stands in line {found[row.id][0]} already",
                where=f"{where}:{at}",
                hint="predict each sentence once",
            )
        found[row.id] = at, row
    lines = {name: at for name, (at, _) in found.items()}
    check_ids(lines, [*sentences], "sentences", where=where)
    for name, (at, row) in found.items():
        if row.sentence and _letters(row.sentence) != _letters(sentences[name]):
            raise UserError(
                f"sentence {row.sentence!r} is {sentences[name]!r} in the data ({name})",
                where=f"{where}:{at}",
                hint="check the ids, or remove the column sentence",
            )
    return (found[name] for name in sentences)


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


def check_ids(lines: dict[str, int], ids: Sequence[str], things: str, *, where: str | Path) -> None:
    """Raise a `UserError` for unknown and for missing ids, with how many they are and an example.

    Args:
        lines: the line of each id that was found.
        ids: those that there are.
        things: what has them: "sentences".
        where: the file.
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
            "; ".join(problems), where=f"{where}{at}", hint=f"predict the {things} of the data set"
        )
