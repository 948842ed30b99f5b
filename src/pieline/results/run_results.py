"""What a run shows: its studies, tables and figures."""

from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import Literal

from pieline.core.records import Frozen
from pieline.reporting.displays import Display


class Shown(Frozen):
    """A table or figure of a run; see `pieline.reporting.displays.Display`."""

    name: str
    place: str
    caption: str
    title: str
    kind: Literal["table", "figure"]
    maker: str
    files: Mapping[str, str]


def shown_display(display: Display) -> Shown:
    """Return the description of a table or figure."""
    return Shown.model_validate(display, from_attributes=True)


class ShownStudy(Frozen):
    """Tables and figures of a study in this run; a study that is not configured has none.

    Attributes:
        name: Study name.
        paper: Title of the paper, as shown to readers.
        items: `module:class` of the study's items, which reads the predictions behind a metric
            file; empty if the study has no items.
        recordings: Paths of recordings, by path of the predictions made from them.
        tables, figures: Displays in the paper's order.
        main_tables: Names of the tables with the main scores of every model.
        main_measures: Names of the main scores.
        reference_models: Models with which a run's models are compared.
    """

    name: str
    paper: str
    items: str = ""
    recordings: Mapping[str, str] = {}
    tables: tuple[Shown, ...] = ()
    figures: tuple[Shown, ...] = ()
    main_tables: tuple[str, ...] = ()
    main_measures: tuple[str, ...] = ()
    reference_models: tuple[str, ...] = ()

    @property
    def displays(self) -> tuple[Shown, ...]:
        """Tables followed by figures."""
        return (*self.tables, *self.figures)


class RunResults(Frozen):
    """What a run shows.

    Attributes:
        studies: All studies, the configured ones first.
        others: Labels of the user's own models, by name (see `run_models.other_models`).
        labels: Labels of the papers' and the run's models, by name.
        mark: Notice on every display if the run uses the user's own data, else empty.
        data: Data source: `sample`, `released` or `own`.
        document: Path of the document with all tables and figures.
        options: Options of snakemake that select this run: its folder and configuration.
    """

    studies: tuple[ShownStudy, ...]
    others: Mapping[str, str] = {}
    labels: Mapping[str, str] = {}
    mark: str = ""
    data: str = "sample"
    document: str = "paper_tables/paper.tex"
    options: tuple[str, ...] = ()

    def papers(self) -> dict[str, str]:
        """Return the titles of the papers, by study."""
        return {study.name: study.paper for study in self.studies}

    def files(self, ending: str) -> list[str]:
        """Return the files of tables and figures with this extension, given without a dot."""
        return [path for path in self.all_files() if Path(path).suffix == f".{ending}"]

    def all_files(self) -> list[str]:
        """Return the files of all tables and figures."""
        displays = chain.from_iterable(study.displays for study in self.studies)
        return [path for display in displays for path in display.files.values()]

    def item_classes(self) -> list[str]:
        """Return the item classes, which also read the files behind metric files."""
        return [study.items for study in self.studies if study.items]
