"""Forms for people: sheets (CSV, TSV) with guidelines, JSON lines, and files of Label Studio."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.sax.saxutils import quoteattr

from pydantic import BaseModel

from pieline.core.errors import UserError
from pieline.core.files import read_json, read_text, write_json, write_text
from pieline.core.records import validated
from pieline.core.tables import read_table, write_csv

_HINT = "export the tasks as JSON (not JSON-MIN)"
_DELIMITERS = {".csv": ",", ".tsv": "\t"}


def write_sheet(
    path: str | Path, columns: Collection[str], rows: Iterable[Mapping[str, Any]]
) -> None:
    """Write a sheet to fill in, as CSV or, if the name ends in .tsv, separated by tabs."""
    delimiter = _DELIMITERS[Path(path).suffix]
    write_csv(path, columns, rows, delimiter=delimiter, for_people=True)


def write_guidelines(
    path: str | Path, columns: Collection[str], sections: Mapping[str, Sequence[str]]
) -> None:
    """Write the guidelines of a sheet as text.

    Args:
        path: Path of the file.
        columns: Columns that annotators fill in.
        sections: Lines below each heading.
    """
    lines = [
        f"Fill in only these columns of a copy of the sheet: {', '.join(columns)}.",
        "Keep the apostrophes before some texts, which stop spreadsheets from running formulas.",
    ]
    for name, body in sections.items():
        lines += ["", name, *(f"  {line}" for line in body)]
    write_text(path, "\n".join([*lines, ""]))


def write_tasks(path: str | Path, rows: Iterable[Mapping[str, str]]) -> None:
    """Write rows as Label Studio tasks, without answers.

    Annotators can see every field, so a row must not contain anything that biases them.
    """
    write_json(path, [{"data": dict(row)} for row in rows])


def meanings(labels: Mapping[str, str]) -> list[str]:
    """Return a line with the meaning of each label."""
    return [f"{label}: {meaning}" for label, meaning in labels.items()]


def choices(labels: Mapping[str, str]) -> str:
    """Return Label Studio's choices: labels as exported, shown with their meanings."""
    return "\n".join(
        f"    <Choice value={quoteattr(label)} html={quoteattr(line)}/>"
        for label, line in zip(labels, meanings(labels), strict=True)
    )


def headers(lines: Iterable[str]) -> str:
    """Return a Label Studio header of the smallest size for each line."""
    return "\n".join(f'  <Header size="6" value={quoteattr(line)}/>' for line in lines)


class ReviewedRow(NamedTuple):
    """One annotator's answers about one item.

    Attributes:
        where: Location for error messages: file, line or task, and item id.
        annotator: Annotator in a Label Studio export; empty for other files and if the export has
            none.
        fields: Shown values and answers, by field; those of JSON lines may be numbers.
    """

    where: str
    annotator: str
    fields: dict[str, Any]


def reviewed_rows(
    path: str | Path,
    shown: Collection[str],
    controls: Mapping[str, str],
    *,
    hint: str = "fill in the sheet that the workflow wrote",
    last_only: bool = False,
) -> Iterator[ReviewedRow]:
    """Yield the rows of a sheet (.csv, .tsv), JSON lines (.jsonl) or a Label Studio export (.json).

    Omits canceled and empty annotations of an export.

    Args:
        path: Path of the file.
        shown: Names of the fields that annotators see, starting with the item id.
        controls: Name of the field that each control of the labeling configuration fills, by
            control. A sheet has a column for each of these fields.
        hint: Hint for a file with the wrong columns.
        last_only: Whether to use only the last annotation of each task in an export.

    Raises:
        UserError: The file type is wrong, the sheet or export is invalid, or an annotation has an
            unknown control, a number of choices other than one, or two answers for one field.
    """
    suffix = Path(path).suffix.lower()
    columns = [*shown, *controls.values()]
    if suffix in _DELIMITERS:
        yield from _rows_of_sheet(path, columns, _DELIMITERS[suffix], hint)
    elif suffix == ".jsonl":
        yield from _rows_of_lines(path, columns, shown, hint)
    elif suffix == ".json":
        yield from _rows_of_export(path, shown, controls, last_only=last_only)
    else:
        what = f"the file ends in none of {', '.join([*_DELIMITERS, '.jsonl', '.json'])}"
        raise UserError(what, where=path, hint="save the table as .csv")


def _rows_of_sheet(
    path: str | Path, columns: Sequence[str], delimiter: str, hint: str
) -> Iterator[ReviewedRow]:
    for line, row in read_table(path, columns, delimiter=delimiter, for_people=True, hint=hint):
        fields = {name: row[name].strip() for name in columns}
        yield ReviewedRow(f"{path}:{line} ({fields[columns[0]]})", "", fields)


def _rows_of_lines(
    path: str | Path, columns: Sequence[str], shown: Collection[str], hint: str
) -> Iterator[ReviewedRow]:
    for line, text in enumerate(read_text(path).split("\n"), start=1):
        if not text.strip():
            continue
        where = f"{path}:{line}"
        filled = validated(dict[str, Any], text, where=where, hint=hint, is_json=True)
        if missing := [name for name in shown if name not in filled]:
            raise UserError(f"no field {missing[0]!r}", where=where, hint=hint)
        fields = {name: filled.get(name, "") for name in columns}
        yield ReviewedRow(f"{where} ({fields[columns[0]]})", "", fields)


def _rows_of_export(
    path: str | Path, shown: Collection[str], controls: Mapping[str, str], *, last_only: bool
) -> Iterator[ReviewedRow]:
    tasks = validated(list[object], read_json(path), where=path, hint=_HINT)
    for number, content in enumerate(tasks, start=1):
        where = f"{path}: task {number}"
        task = validated(_Task, content, where=where, hint=_HINT)
        for name in shown:
            if not isinstance(task.data.get(name), str):
                raise UserError(f"data.{name}: missing, or not text", where=where, hint=_HINT)
        item = {name: str(task.data[name]) for name in shown}
        where = f"{where} ({next(iter(item.values()))})"
        done = [one for one in task.annotations or [] if not one.was_cancelled]
        for annotation in done[-1:] if last_only else done:
            if answers := _answers(annotation, controls, where):
                yield ReviewedRow(where, annotation.annotator, item | answers)


class _Value(BaseModel):
    choices: list[str] | None = None
    text: list[str] | str | None = None

    def answer(self, where: str) -> str:
        """Return the chosen or written answer.

        Raises:
            UserError: The number of choices is not one.
        """
        if self.choices is not None or self.text is None:
            if len(self.choices or []) != 1:
                chosen = len(self.choices or [])
                raise UserError(f"{chosen} choices instead of 1", where=where, hint="choose one")
            return (self.choices or [""])[0]
        return (self.text if isinstance(self.text, str) else "\n".join(self.text)).strip()


class _Result(BaseModel):
    from_name: str
    value: _Value


class _Person(BaseModel):
    id: int | str


class _Annotation(BaseModel):
    completed_by: int | str | _Person | None = None
    was_cancelled: bool | None = None
    result: list[_Result] | None = None

    @property
    def annotator(self) -> str:
        person = self.completed_by
        return "" if person is None else str(person.id if isinstance(person, _Person) else person)


class _Task(BaseModel):
    data: dict[str, object]
    annotations: list[_Annotation] | None = None


def _answers(annotation: _Annotation, controls: Mapping[str, str], where: str) -> dict[str, str]:
    answers: dict[str, str] = {}
    for result in annotation.result or []:
        if result.from_name not in controls:
            problem = f"unknown control {result.from_name!r}"
            raise UserError(problem, where=where, hint="use our labeling configuration")
        field, value = controls[result.from_name], result.value.answer(where)
        if answers.setdefault(field, value) != value:
            problem = f"one annotation has two answers for {field}"
            raise UserError(problem, where=where, hint="keep one of them")
    return answers
