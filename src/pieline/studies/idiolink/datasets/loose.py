"""Reading IdioLink files for inspection: what the strict reader refuses is kept to be listed."""

from collections.abc import Iterable
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pieline.core.errors import UserError
from pieline.core.files import read_json
from pieline.core.records import explain
from pieline.studies.idiolink.originals.domains import Collection
from pieline.studies.idiolink.originals.splits import SplitName

FILE_NAMES: dict[Collection, str] = {"documents": "indexes.json", "queries": "queries.json"}
"""Names of the released files by collection."""


class LooseText(BaseModel):
    """A record of the released format whose values may break the format's rules."""

    model_config = ConfigDict(extra="ignore", frozen=True)

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
            path = Path(folder) / name
            files.append(path)
            rows = read_json(path)
            if not isinstance(rows, list):
                raise UserError("not a JSON array", where=path, mend="see data/sample/idiolink")
            for number, row in enumerate(rows, start=1):
                try:
                    fields = dict(row) | {"split": split, "collection": collection}
                    texts.append(LooseText.model_validate(fields))
                except (ValidationError, TypeError, ValueError) as error:
                    problem = explain(error) if isinstance(error, ValidationError) else "no object"
                    where = f"{path}: record {number}"
                    raise UserError(problem, where=where, mend="correct this record") from None
    return texts, files
