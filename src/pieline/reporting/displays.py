"""Declarations of tables and figures."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol

import pandas as pd

from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.models import ModelDescription

NOT_IN_PAPER = "not in the paper"
"""Place of a table or figure that is not in a paper."""


class ConfiguredStudy(Protocol):
    """The part of `pieline.study.Study` that tables and figures use."""

    settings: Any
    project: Any

    @property
    def plan(self) -> Any:
        """Runs that the configuration selects."""

    def notes(self) -> tuple[str, ...]:
        """Return sentences on how the data of this run differ from the paper's data."""

    def describe_models(self, names: Iterable[str]) -> tuple[ModelDescription, ...]:
        """Return the descriptions of the models with these names."""

    def display_inputs(
        self,
        runs: Iterable[Any] = (),
        *kinds: str,
        models: Iterable[str] = (),
        others: Iterable[str] = (),
    ) -> DisplayInputs:
        """Return the inputs of a table or figure of these runs; see `pieline.study.Study`."""


@dataclass(frozen=True, eq=False)
class Display:
    """A table or figure: its place in the paper, its inputs, and the function that makes it.

    Attributes:
        name: Name of the display's files, without folder and extension.
        place: Place in the paper ("Table 2"), or `NOT_IN_PAPER`.
        caption: One sentence for the results page and the report.
        make: Function that returns a table (`TableContent`) or a matplotlib figure. The arguments
            of the function are the frame of numbers, unless `numbers` is None, and the inputs.
        inputs: Function from a study to the display's inputs; the function returns None if the
            study's configuration does not include the display.
        numbers: Function from the inputs to our rows of the frame of numbers; None for a table of
            texts.
        printed: Names of the files in published/ that contain the printed numbers of the display.
        otherwise: Why a run does not compute a printed number, if the plan states no other reason.
    """

    kind: ClassVar[Literal["table", "figure"]]
    folders: ClassVar[dict[str, str]]
    """Folder in paper_tables/ for each file extension."""
    name: str
    place: str
    caption: str
    make: Callable[..., Any]
    inputs: Callable[[Any], DisplayInputs | None]
    numbers: Callable[[DisplayInputs], pd.DataFrame] | None = None
    printed: tuple[str, ...] = ()
    otherwise: str = "no such run in this configuration"

    def inputs_in(self, study: ConfiguredStudy) -> DisplayInputs | None:
        """Return the display's inputs in a study, or None if the configuration excludes it."""
        inputs = self.inputs(study)
        if inputs is None:
            return None
        published_files = []
        if self.printed:
            files_with_numbers = [f"{name}.csv" for name in self.printed]
            published_files = [*files_with_numbers, "tables.yaml", "schema.yaml"]
        paths = {
            Path(file).stem: study.project.here(f"published/{file}") for file in published_files
        }
        completed = inputs.model_copy(update={"display": self.name, "otherwise": self.otherwise})
        return completed.with_files(**inputs.files, **paths)

    @property
    def maker(self) -> str:
        """Name of the function `make` as `module:function`, with which a job imports it."""
        return f"{self.make.__module__}:{self.make.__qualname__}"

    @property
    def ours(self) -> str:
        """Name of the function `numbers` as `module:function`; empty if `numbers` is None."""
        return f"{self.numbers.__module__}:{self.numbers.__qualname__}" if self.numbers else ""

    @property
    def title(self) -> str:
        """Place in the paper, or the caption of a display that is not in the paper."""
        return self.caption.rstrip(".") if self.place == NOT_IN_PAPER else self.place

    @property
    def files(self) -> dict[str, str]:
        """Paths of the display's output files, by extension."""
        return {
            extension: f"paper_tables/{folder}{self.name}.{extension}"
            for extension, folder in self.folders.items()
        }

    @property
    def main_file(self) -> str:
        """Path of a table's LaTeX file or of a figure's PNG file, which is the last of `files`."""
        return list(self.files.values())[-1]


class Table(Display):
    """A table, written as LaTeX, CSV, and HTML for the results page."""

    kind = "table"
    folders: ClassVar = {"csv": "", "html": "html/", "tex": ""}


class Figure(Display):
    """A figure, written as PDF for LaTeX and PNG for the results page."""

    kind = "figure"
    folders: ClassVar = {"pdf": "figures/", "png": "figures/"}
