"""The tables and figures of a run: what the scripts above the studies are told of them."""

from collections.abc import Mapping
from pathlib import Path

from pieline.core.records import Frozen
from pieline.study import Figure, Table


class StudyDisplays(Frozen):
    """What a study shows in this run: nothing if the configuration does not name it.

    Attributes:
        name: of the study.
        paper: its paper's title for readers.
        items: `module:class` of its items, which read the predictions behind a metric file; empty
            without.
        recordings: by the pattern of predictions, that of the files with the answers behind them.
        tables, figures: in the order of the paper; without `given` as JSON.
    """

    name: str
    paper: str
    items: str = ""
    recordings: Mapping[str, str] = {}
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()

    @property
    def displays(self) -> tuple[Table | Figure, ...]:
        """The tables, then the figures."""
        return (*self.tables, *self.figures)


class Displays(Frozen):
    """The tables and figures of a run by study, those of the configuration first.

    Attributes:
        studies: all of them.
        mark: what stands over everything that shows the run: it is no result, or of own data.
        data: `sample`, `released` or `own`.
        document: all tables and figures in one file.
        archives: names of the archives that predictions were taken from.
    """

    studies: tuple[StudyDisplays, ...]
    mark: str = ""
    data: str = "sample"
    document: str = "paper_tables/paper.tex"
    archives: tuple[str, ...] = ()

    def papers(self) -> dict[str, str]:
        """The papers' titles by study."""
        return {study.name: study.paper for study in self.studies}

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
