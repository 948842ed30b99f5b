"""Reader of MAGPIE (Haagsma et al., 2020), with one PIE occurrence in context per line."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, Self

from pydantic import Field, NonNegativeInt, ValidationError, field_validator, model_validator

from pieline.core.errors import UserError
from pieline.core.records import Record, explain

Label = Literal["i", "l", "f", "o", "?"]
"""Labels of an occurrence: idiomatic, literal, false extraction, other, and unclear."""

TARGET = 2
"""Index in `context` of the sentence that contains the PIE."""

_HINT = "correct this line or download the file again; see data/sample/magpie/README.md"


class LabelShares(Record):
    """Share of votes for each label."""

    idiomatic: float = Field(alias="i", ge=0, le=1)
    literal: float = Field(alias="l", ge=0, le=1)
    false_extraction: float = Field(alias="f", ge=0, le=1)
    other: float = Field(alias="o", ge=0, le=1)
    unclear: float = Field(alias="?", ge=0, le=1)


class WordOffsets(NamedTuple):
    """Start and exclusive end of a PIE word in the target sentence, in characters."""

    start: NonNegativeInt
    end: NonNegativeInt


class Occurrence(Record):
    """One annotated occurrence of a PIE.

    Attributes:
        confidence: Share of votes for `label`.
        context: Five tokenized sentences; the third contains the PIE at `offsets`.
    """

    id: int
    idiom: str
    label: Label
    confidence: float = Field(ge=0, le=1)
    label_distribution: LabelShares
    judgment_count: NonNegativeInt
    context: Annotated[list[str], Field(min_length=5, max_length=5)]
    offsets: Annotated[list[WordOffsets], Field(min_length=1)]
    document_id: str
    genre: str
    sentence_no: str
    split: str
    variant_type: str
    non_standard_usage_explanations: list[str]

    @field_validator("idiom")
    @classmethod
    def _is_not_blank(cls, idiom: str) -> str:
        if not idiom.strip():
            raise ValueError("blank")
        return idiom

    @model_validator(mode="after")
    def _offsets_lie_in_the_target(self) -> Self:
        length = len(self.context[TARGET])
        for start, end in self.offsets:
            if not start < end <= length:
                raise ValueError(f"offsets {start}-{end} are outside the target sentence")
        return self


def read_magpie(path: str | Path) -> Iterator[Occurrence]:
    """Yield the occurrences in a MAGPIE file; only their ids are kept in memory.

    Raises:
        UserError: The file is missing or empty, or a line is invalid or repeats an id.
    """
    if not Path(path).is_file():
        raise UserError("no such file", where=path, hint="check the path")
    lines: dict[int, int] = {}
    with Path(path).open("rb") as stream:
        for number, line in enumerate(stream, start=1):
            try:
                occurrence = Occurrence.model_validate_json(line)
            except ValidationError as error:
                raise UserError(explain(error), where=f"{path}:{number}", hint=_HINT) from None
            if (first := lines.setdefault(occurrence.id, number)) != number:
                problem = f"id {occurrence.id} is already in line {first}"
                raise UserError(problem, where=f"{path}:{number}", hint=_HINT)
            yield occurrence
    if not lines:
        raise UserError("the file is empty", where=f"{path}:1", hint="download it again")
