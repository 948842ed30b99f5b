"""Lenient reader of IdioLink's files that keeps invalid texts so that checks can list them."""

from collections.abc import Iterable
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from pieline.studies.idiolink.originals.domains import Collection
from pieline.studies.idiolink.originals.splits import SplitName
from pieline.studies.idiolink.raw.released import read_rows

FILE_NAMES: dict[Collection, str] = {"documents": "indexes.json", "queries": "queries.json"}
"""Names of the released files, by collection."""


class LooseText(BaseModel):
    """A record in the released format whose values may be invalid."""

    model_config = ConfigDict(extra="ignore", frozen=True, populate_by_name=True)

    id: str
    sentence: str
    pie: str = Field(alias="idiom")
    span: str
    subject: str
    usage: str
    is_gold: bool
    split: SplitName
    collection: Collection

    @property
    def outside_span(self) -> tuple[str, str]:
        """The text before and after the span; for a missing span, the whole sentence and ""."""
        before, _, after = self.sentence.partition(self.span) if self.span else ("", "", "")
        return (before, after) if self.span else (self.sentence, "")


def read_loosely(
    folders: Iterable[tuple[SplitName, str | Path]],
) -> tuple[list[LooseText], list[Path]]:
    """Return the texts of several splits, and the paths of the files that were read.

    Raises:
        UserError: A file is missing or not a JSON array of objects, or an object has a missing or
            mistyped field.
    """
    texts: list[LooseText] = []
    files = []
    for split, folder in folders:
        for collection, name in FILE_NAMES.items():
            files.append(Path(folder) / name)
            texts += read_rows(files[-1], LooseText, split=split, collection=collection)
    return texts, files
