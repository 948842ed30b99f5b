"""Read MAGPIE and IdioLink's public files."""

import codecs
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from pieline.core.errors import UserError
from pieline.core.files import read_json
from pieline.core.records import Record, check_unique_ids, explain
from pieline.studies.idiolink.records import Document, PieText

Label = Literal["i", "l", "f", "o", "?"]
"""MAGPIE's labels of an occurrence: idiomatic, literal, false extraction, other, unclear."""

_HINT = "correct this line or download the file again; see data/sample/magpie/README.md"


class Occurrence(Record):
    """An annotated occurrence of a PIE in MAGPIE, with only the fields that the PIE filter reads.

    Attributes:
        confidence: Share of annotators' votes for `label` (fraction).
    """

    model_config = ConfigDict(extra="ignore")

    id: int
    idiom: str
    label: Label
    confidence: float = Field(ge=0, le=1)

    @field_validator("idiom")
    @classmethod
    def _is_not_blank(cls, idiom: str) -> str:
        if not idiom.strip():
            raise ValueError("blank")
        return idiom


def read_magpie(path: str | Path) -> Iterator[Occurrence]:
    """Yield the occurrences in a MAGPIE file one by one, to save memory.

    Raises:
        UserError: The file is missing or empty, or a line is invalid or repeats an id.
    """
    if not Path(path).is_file():
        raise UserError("no such file", where=path, hint="check the path")
    line_of_id: dict[int, int] = {}
    with Path(path).open("rb") as stream:
        for line_number, line in enumerate(stream, start=1):
            place = f"{path}:{line_number}"
            try:
                occurrence = Occurrence.model_validate_json(line.removeprefix(codecs.BOM_UTF8))
            except ValidationError as error:
                raise UserError(explain(error), where=place, hint=_HINT) from None
            if occurrence.id in line_of_id:
                problem = f"id {occurrence.id} is already in line {line_of_id[occurrence.id]}"
                raise UserError(problem, where=place, hint=_HINT)
            line_of_id[occurrence.id] = line_number
            yield occurrence
    if not line_of_id:
        raise UserError("the file is empty", where=f"{path}:1", hint="download it again")


COMPOSITIONS: dict[str, frozenset[str]] = {
    "full": frozenset({"literal", "idiomatic", "simplification", "sense"}),
    "lit_sim_sense": frozenset({"literal", "simplification", "sense"}),
    "lit_idiom": frozenset({"literal", "idiomatic"}),
}
"""Usages of the documents that each index composition contains."""

B = TypeVar("B", bound=BaseModel)
T = TypeVar("T", bound=PieText)


def read_texts(path: str | Path, record: type[T]) -> list[T]:
    """Read the texts in `indexes.json` or `queries.json`, in file order.

    Args:
        path: The file.
        record: Class of the texts: `Document` or `Query`.

    Raises:
        UserError: The file is not a JSON array or has no texts, a record is invalid (unknown usage,
            span not in its sentence, missing or unknown field), or an id is repeated.
    """
    texts = read_rows(path, record)
    if not texts:
        raise UserError("the file has no texts", where=path, hint="download it again")
    check_unique_ids([text.id for text in texts], where=path)
    return texts


def read_rows(path: str | Path, record: type[B], **extra_fields: str) -> list[B]:
    """Read a JSON array of records, renaming the key `idiom` to `pie`.

    Args:
        path: The file.
        record: Class of the records.
        extra_fields: Fields to add to every record.

    Raises:
        UserError: The file is not a JSON array of objects, or a record is invalid.
    """
    rows = read_json(path)
    if not isinstance(rows, list):
        raise UserError("not a JSON array of records", where=path, hint="see data/sample/idiolink")
    records = []
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, dict):
            place = f"{path}: record {number} (?)"
            raise UserError("not a JSON object", where=place, hint="see data/sample/idiolink")
        fields = {("pie" if key == "idiom" else key): value for key, value in row.items()}
        try:
            records.append(record.model_validate({**fields, **extra_fields}))
        except ValidationError as error:
            place = f"{path}: record {number} ({row.get('id', '?')})"
            problem = explain(error, {*record.model_fields, "idiom"})
            raise UserError(problem, where=place, hint="correct this record") from None
    return records


def compose_index(documents: Iterable[Document], composition: str) -> list[Document]:
    """Return the documents whose usage an index composition contains, in their original order."""
    return [document for document in documents if document.usage in COMPOSITIONS[composition]]
