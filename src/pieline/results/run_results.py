"""Describe the studies, tables and figures of a run."""

from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import Literal

from pieline.core.records import Frozen
from pieline.reporting.displays import Display


class Shown(Frozen):
    """Description of a table or figure (see `pieline.reporting.displays.Display`)."""

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
    """A study with its tables and figures; a study that the run does not include has no displays.

    Attributes:
        name: Name of the study.
        paper: Title of the paper, as shown to readers.
        items: Class that reads the predictions behind a metric file, as `module:class`; empty if
            there is no such class.
        recordings: Path of the recorded answers from which a file of predictions is made, by path
            of this file.
        tables, figures: Displays in the paper's order.
        main_tables: Names of the tables with the main scores of every model.
        main_measures: Names of the measures of the main scores.
        reference_models: Names of the models with which other models are compared.
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
        """Tables of the study, followed by its figures."""
        return (*self.tables, *self.figures)


class RunResults(Frozen):
    """Studies, tables and figures of a run, with the labels and the notice that they show.

    Attributes:
        studies: All studies; the studies that the run includes come first.
        others: Labels of the user's own models, by name (see `run_models.other_models`).
        labels: Labels of the papers' models and of the run's models, by name.
        mark: Notice on every display that the data is limited or the user's own; otherwise empty.
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
        """Return the title of each paper, by name of the study."""
        return {study.name: study.paper for study in self.studies}

    def files(self, ending: str) -> list[str]:
        """Return the paths of the files of tables and figures with an extension such as `csv`."""
        return [path for path in self.all_files() if Path(path).suffix == f".{ending}"]

    def all_files(self) -> list[str]:
        """Return the paths of the files of all tables and figures."""
        displays = chain.from_iterable(study.displays for study in self.studies)
        return [path for display in displays for path in display.files.values()]

    def item_classes(self) -> list[str]:
        """Return the names (`module:class`) of the classes that read predictions, one per study.

        Studies without such a class are omitted.
        """
        return [study.items for study in self.studies if study.items]
