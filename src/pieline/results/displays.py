"""The tables and figures of a run: what the scripts above the studies are told of them."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal, Self

from pieline.core.records import Frozen
from pieline.study import Display

Kind = Literal["table", "figure"]


class DisplayRecord(Frozen):
    """A table or figure.

    Attributes:
        name: of its files.
        kind: which of the two.
        place: in the paper.
        caption: one sentence.
        maker: `module:function` that made it.
        files: by ending: csv, tex and html of a table, pdf and png of a figure.
    """

    name: str
    kind: Kind
    place: str
    caption: str
    maker: str = ""
    files: Mapping[str, str]

    @classmethod
    def of(cls, shown: Display) -> Self:
        """What is to be said of a declared one."""
        return cls.model_validate(shown, from_attributes=True)


class StudyDisplays(Frozen):
    """What a study shows in this run: nothing if the configuration does not name it.

    Attributes:
        name: of the study.
        paper: its paper's title for readers.
        items: `module:class` of its items, which read the predictions behind a metric file; empty
            without.
        recordings: by the pattern of predictions, that of the files with the answers behind them.
        displays: tables, then figures, each in the order of the paper.
    """

    name: str
    paper: str
    items: str = ""
    recordings: Mapping[str, str] = {}
    displays: tuple[DisplayRecord, ...] = ()


class Displays(Frozen):
    """The tables and figures of a run by study, those of the configuration first.

    Attributes:
        studies: all of them.
        mark: what stands over everything that shows the run: it is no result, or of own data.
        data: `sample`, `released` or `own`.
        document: all tables and figures in one file.
    """

    studies: tuple[StudyDisplays, ...]
    mark: str = ""
    data: str = "sample"
    document: str = "paper_tables/paper.tex"

    def papers(self) -> dict[str, str]:
        """The papers' titles by study."""
        return {study.name: study.paper for study in self.studies}

    def of_kind(self, kind: Kind) -> Iterator[tuple[StudyDisplays, DisplayRecord]]:
        """The tables or the figures, each with its study."""
        for study in self.studies:
            yield from ((study, each) for each in study.displays if each.kind == kind)

    def files(self, ending: str) -> list[str]:
        """All files of one ending."""
        return [path for path in self.all_files() if Path(path).suffix == f".{ending}"]

    def all_files(self) -> list[str]:
        """The files of all tables and figures."""
        return [
            path
            for study in self.studies
            for each in study.displays
            for path in each.files.values()
        ]
