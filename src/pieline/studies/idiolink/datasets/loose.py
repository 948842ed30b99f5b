"""Reading IdioLink files for inspection: what the strict reader refuses is kept to be listed."""

from collections.abc import Iterable
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from pieline.studies.idiolink.originals.domains import Collection
from pieline.studies.idiolink.originals.splits import SplitName
from pieline.studies.idiolink.raw.released import read_rows

FILE_NAMES: dict[Collection, str] = {"documents": "indexes.json", "queries": "queries.json"}
"""Names of the released files by collection."""


class LooseText(BaseModel):
    """A record of the released format whose values may break the format's rules."""

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
        """What stands before and after the span; all and nothing where there is no span."""
        before, _, after = self.sentence.partition(self.span) if self.span else ("", "", "")
        return (before, after) if self.span else (self.sentence, "")


def read_loosely(
    folders: Iterable[tuple[SplitName, str | Path]],
) -> tuple[list[LooseText], list[Path]]:
    """The texts of several splits, and the files that they were read from.

    Raises:
        UserError: a file is missing, is not a JSON array of objects, or an object lacks a field.
    """
    texts: list[LooseText] = []
    files = []
    for split, folder in folders:
        for collection, name in FILE_NAMES.items():
            files.append(Path(folder) / name)
            texts += read_rows(files[-1], LooseText, split=split, collection=collection)
    return texts, files
