"""Write forms for annotators, and read their answers.

Forms are sheets (CSV or TSV) with guidelines, JSON lines, and tasks of Label Studio.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.sax.saxutils import quoteattr

from pydantic import BaseModel

from pieline.core.errors import UserError
from pieline.core.files import read_json, read_text, write_json, write_text
from pieline.core.records import validated
from pieline.core.tables import DELIMITERS, read_table, write_csv

_EXPORT_HINT = "export the tasks as JSON (not JSON-MIN)"


def write_sheet(
    path: str | Path, columns: Collection[str], rows: Iterable[Mapping[str, Any]]
) -> None:
    """Write a sheet that people fill in, as CSV or TSV according to the path's extension."""
    delimiter = DELIMITERS[Path(path).suffix]
    write_csv(path, columns, rows, delimiter=delimiter, for_people=True)


def write_guidelines(
    path: str | Path, columns: Collection[str], sections: Mapping[str, Sequence[str]]
) -> None:
    """Write the guidelines for annotators of a sheet to a text file.

    Args:
        path: Path of the file.
        columns: Columns that annotators fill in.
        sections: Lines of each section, by heading.
    """
    lines = [
        f"Fill in only these columns of a copy of the sheet: {', '.join(columns)}.",
        "Keep the apostrophes before some texts, which stop spreadsheets from running formulas.",
    ]
    for heading, section_lines in sections.items():
        lines += ["", heading]
        lines += [f"  {line}" for line in section_lines]
    write_text(path, "\n".join(lines) + "\n")


def write_tasks(path: str | Path, rows: Iterable[Mapping[str, str]]) -> None:
    """Write rows as Label Studio tasks without answers.

    Annotators see every field of a row, so the rows must not contain anything that biases them.
    """
    write_json(path, [{"data": dict(row)} for row in rows])


def meanings(meaning_of_label: Mapping[str, str]) -> list[str]:
    """Return a line `label: meaning` for each label."""
    return [f"{label}: {meaning}" for label, meaning in meaning_of_label.items()]


def choices(meaning_of_label: Mapping[str, str]) -> str:
    """Return Label Studio's XML elements for a choice between labels.

    Annotators see the labels with their meanings; the export contains only the labels.
    """
    return "\n".join(
        f"    <Choice value={quoteattr(label)} html={quoteattr(line)}/>"
        for label, line in zip(meaning_of_label, meanings(meaning_of_label), strict=True)
    )


def headers(lines: Iterable[str]) -> str:
    """Return Label Studio's XML elements that show each line as a header of the smallest size."""
    return "\n".join(f'  <Header size="6" value={quoteattr(line)}/>' for line in lines)


class ReviewedRow(NamedTuple):
    """The answers of one annotator about one item.

    Attributes:
        where: Location for error messages: file, line or task, and item id.
        annotator: Annotator according to a Label Studio export; empty if the export names no
            annotator, and for other file types.
        fields: Values that the annotator saw, and answers, by field. Values from JSON
            lines may be of any type; all other values are texts.
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

    Canceled and empty annotations of an export are omitted.

    Args:
        path: Path of the file.
        shown: Names of the fields that annotators see, starting with the item id.
        controls: Field that a control of Label Studio's labeling configuration fills, by name of
            the control. A sheet has a column for each of these fields.
        hint: Hint for the error message about a file with the wrong columns.
        last_only: Whether to use only the last annotation of each task in an export.

    Raises:
        UserError: The file type is wrong, the file is invalid, or an annotation has an unknown
            control, a question with no or several choices, or two different answers for one field.
    """
    suffix = Path(path).suffix.lower()
    columns = [*shown, *controls.values()]
    if suffix in DELIMITERS:
        yield from _rows_of_sheet(path, columns, DELIMITERS[suffix], hint)
    elif suffix == ".jsonl":
        yield from _rows_of_lines(path, columns, shown, hint)
    elif suffix == ".json":
        yield from _rows_of_export(path, shown, controls, last_only=last_only)
    else:
        problem = f"the file ends in none of {', '.join([*DELIMITERS, '.jsonl', '.json'])}"
        raise UserError(problem, where=path, hint="save the table as .csv")


def _rows_of_sheet(
    path: str | Path, columns: Sequence[str], delimiter: str, hint: str
) -> Iterator[ReviewedRow]:
    """Yield the rows of a sheet; the first of `columns` contains the item ids."""
    for line, cells in read_table(path, columns, delimiter=delimiter, for_people=True, hint=hint):
        fields = {column: cells[column].strip() for column in columns}
        item_id = fields[columns[0]]
        yield ReviewedRow(f"{path}:{line} ({item_id})", "", fields)


def _rows_of_lines(
    path: str | Path, columns: Sequence[str], shown: Collection[str], hint: str
) -> Iterator[ReviewedRow]:
    """Yield the rows of a file with JSON lines; unanswered fields are empty texts."""
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        json_object = validated(dict[str, Any], line, where=where, hint=hint, is_json=True)
        for field in shown:
            if field not in json_object:
                raise UserError(f"no field {field!r}", where=where, hint=hint)
        fields = {column: json_object.get(column, "") for column in columns}
        item_id = fields[columns[0]]
        yield ReviewedRow(f"{where} ({item_id})", "", fields)


def _rows_of_export(
    path: str | Path, shown: Collection[str], controls: Mapping[str, str], *, last_only: bool
) -> Iterator[ReviewedRow]:
    """Yield the rows of a Label Studio export; the first shown field contains the item ids."""
    tasks = validated(list[object], read_json(path), where=path, hint=_EXPORT_HINT)
    for number, content in enumerate(tasks, start=1):
        where = f"{path}: task {number}"
        task = validated(_Task, content, where=where, hint=_EXPORT_HINT)
        shown_values: dict[str, str] = {}
        for field in shown:
            value = task.data.get(field)
            if not isinstance(value, str):
                problem = f"data.{field}: missing, or not text"
                raise UserError(problem, where=where, hint=_EXPORT_HINT)
            shown_values[field] = value
        item_id = next(iter(shown_values.values()))
        where_with_id = f"{where} ({item_id})"
        completed = [
            annotation for annotation in task.annotations or [] if not annotation.was_cancelled
        ]
        used_annotations = completed[-1:] if last_only else completed
        for annotation in used_annotations:
            if answers := _answers_by_field(annotation, controls, where_with_id):
                yield ReviewedRow(where_with_id, annotation.annotator, {**shown_values, **answers})


class _Value(BaseModel):
    choices: list[str] | None = None
    text: list[str] | str | None = None

    def answer(self, where: str) -> str:
        """Return the chosen or written answer.

        Raises:
            UserError: There is no text, and the number of choices is not one.
        """
        if self.choices is None and self.text is not None:
            text = self.text if isinstance(self.text, str) else "\n".join(self.text)
            return text.strip()
        choices = self.choices or []
        if len(choices) != 1:
            raise UserError(f"{len(choices)} choices instead of 1", where=where, hint="choose one")
        return choices[0]


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
        """Id or email address of the annotator; empty if the export names no annotator."""
        if self.completed_by is None:
            return ""
        if isinstance(self.completed_by, _Person):
            return str(self.completed_by.id)
        return str(self.completed_by)


class _Task(BaseModel):
    data: dict[str, object]
    annotations: list[_Annotation] | None = None


def _answers_by_field(
    annotation: _Annotation, controls: Mapping[str, str], where: str
) -> dict[str, str]:
    """Return the answers of an annotation by field; `controls` maps a control to its field."""
    answers: dict[str, str] = {}
    for result in annotation.result or []:
        if result.from_name not in controls:
            problem = f"unknown control {result.from_name!r}"
            raise UserError(problem, where=where, hint="use our labeling configuration")
        field = controls[result.from_name]
        answer = result.value.answer(where)
        if field in answers and answers[field] != answer:
            problem = f"one annotation has two answers for {field}"
            raise UserError(problem, where=where, hint="keep one of them")
        answers[field] = answer
    return answers
