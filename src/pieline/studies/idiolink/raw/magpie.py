"""Reader of MAGPIE (Haagsma et al., 2020), a file with one annotated PIE occurrence per line."""

import codecs
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pydantic import ConfigDict, Field, ValidationError, field_validator

from pieline.core.errors import UserError
from pieline.core.records import Record, explain

Label = Literal["i", "l", "f", "o", "?"]
"""Labels of an occurrence: idiomatic, literal, false extraction, other, and unclear."""

_HINT = "correct this line or download the file again; see data/sample/magpie/README.md"


class Occurrence(Record):
    """An annotated occurrence of a PIE, with only the fields that the filter reads.

    `confidence` is the share of votes for `label`.
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
    """Yield the occurrences in a MAGPIE file, keeping only their ids in memory.

    Raises:
        UserError: The file is missing or empty, or a line is invalid or repeats an id.
    """
    if not Path(path).is_file():
        raise UserError("no such file", where=path, hint="check the path")
    lines: dict[int, int] = {}
    with Path(path).open("rb") as stream:
        for number, line in enumerate(stream, start=1):
            try:
                occurrence = Occurrence.model_validate_json(line.removeprefix(codecs.BOM_UTF8))
            except ValidationError as error:
                raise UserError(explain(error), where=f"{path}:{number}", hint=_HINT) from None
            if (first := lines.setdefault(occurrence.id, number)) != number:
                problem = f"id {occurrence.id} is already in line {first}"
                raise UserError(problem, where=f"{path}:{number}", hint=_HINT)
            yield occurrence
    if not lines:
        raise UserError("the file is empty", where=f"{path}:1", hint="download it again")
