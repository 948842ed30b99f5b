"""Declare tables and figures beside the functions that make them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol

import pandas as pd

from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.models import ModelDescription

NOT_IN_PAPER = "not in the paper"
"""Place of a display that is not in a paper."""


class ConfiguredStudy(Protocol):
    """Interface of a study for displays (see `pieline.study.Study`)."""

    settings: Any
    project: Any

    @property
    def plan(self) -> Any:
        """Runs of the configuration."""

    def notes(self) -> tuple[str, ...]:
        """Return notes on data that are not the paper's."""

    def describe_models(self, names: Iterable[str]) -> tuple[ModelDescription, ...]:
        """Return descriptions of models."""

    def display_inputs(
        self,
        runs: Iterable[Any] = (),
        *kinds: str,
        models: Iterable[str] = (),
        others: Iterable[str] = (),
    ) -> DisplayInputs:
        """Return the inputs of a display of runs; see `pieline.study.Study`."""


@dataclass(frozen=True, eq=False)
class Display:
    """A table or figure: its place in the paper, its inputs, and the function that makes it.

    Attributes:
        name: Base name of its files.
        place: Place in the paper ("Table 2"), or `NOT_IN_PAPER`.
        caption: One sentence for the results page and the report.
        make: Function that returns the layout of a table (`TableContent`) or a matplotlib figure,
            from the frame of numbers, if there is one, and the inputs.
        inputs: Function from a study to the inputs; None if its configuration has no such display.
        numbers: Function from the inputs to the rows of ours that a table shows; None for a table
            of texts.
        printed: Names of the files in published/ with the printed numbers.
        otherwise: Why a printed number is missing, if the plan states no other reason.
    """

    kind: ClassVar[Literal["table", "figure"]]
    folders: ClassVar[dict[str, str]]
    """Folder below paper_tables/ by file extension."""
    name: str
    place: str
    caption: str
    make: Callable[..., Any]
    inputs: Callable[[Any], DisplayInputs | None]
    numbers: Callable[[DisplayInputs], pd.DataFrame] | None = None
    printed: tuple[str, ...] = ()
    otherwise: str = "no such run in this configuration"

    def inputs_in(self, study: ConfiguredStudy) -> DisplayInputs | None:
        """Return the inputs in a study's configuration; None if it does not show the display."""
        given = self.inputs(study)
        if given is None:
            return None
        names = [f"{name}.csv" for name in self.printed]
        names += ["tables.yaml", "schema.yaml"] if names else []
        files = {Path(name).stem: study.project.here(f"published/{name}") for name in names}
        named = given.model_copy(update={"display": self.name, "otherwise": self.otherwise})
        return named.with_files(**given.files, **files)

    @property
    def maker(self) -> str:
        """`module:function` of `make`, for a job, which runs in another process."""
        return f"{self.make.__module__}:{self.make.__qualname__}"

    @property
    def ours(self) -> str:
        """`module:function` of `numbers`; empty for a display of texts."""
        return f"{self.numbers.__module__}:{self.numbers.__qualname__}" if self.numbers else ""

    @property
    def title(self) -> str:
        """Place in the paper, or the caption of a display that is not in the paper."""
        return self.caption.rstrip(".") if self.place == NOT_IN_PAPER else self.place

    @property
    def files(self) -> dict[str, str]:
        """Output files by extension."""
        return {
            end: f"paper_tables/{folder}{self.name}.{end}" for end, folder in self.folders.items()
        }


class Table(Display):
    """A table as LaTeX, CSV and HTML (for the results page)."""

    kind = "table"
    folders: ClassVar = {"csv": "", "html": "html/", "tex": ""}


class Figure(Display):
    """A figure as PDF (for LaTeX) and PNG (for the results page)."""

    kind = "figure"
    folders: ClassVar = {"pdf": "figures/", "png": "figures/"}
