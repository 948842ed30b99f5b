"""Read the released originals of ID10M-JAM."""

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from pieline.core.errors import UserError
from pieline.core.files import canonical_json, read_json
from pieline.core.records import validated
from pieline.studies.jam.bio import Tag


class ReleasedRow(BaseModel):
    """A row of the released originals, `id10m_fixed/<language>.json`."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    sentence: str
    PIE: tuple[str, ...]
    true_idioms: tuple[str, ...]
    is_figurative: bool
    tokens: tuple[str, ...]
    tags: tuple[Tag, ...]
    tag_ids: tuple[int, ...]
    was_fixed: bool


def read_released_originals(path: str | Path) -> list[ReleasedRow]:
    """Read the released originals.

    Raises:
        UserError: The file is not a nonempty JSON array of valid rows; the message states the file
            and, for an invalid row, its number.
    """
    return [
        validated(
            ReleasedRow,
            # In strict mode, only JSON input allows lists for tuples.
            canonical_json(row),
            where=f"{path}: record {number}",
            hint="download the file again",
            is_json=True,
        )
        for number, row in enumerate(read_rows(path), start=1)
    ]


def read_rows(path: str | Path) -> list[Any]:
    """Read the records of a released file.

    Raises:
        UserError: The file is not a nonempty JSON array.
    """
    rows = read_json(path)
    if not isinstance(rows, list) or not rows:
        raise UserError("not a JSON array of records", where=path, hint="download the file again")
    return rows
