"""Declare tables and figures beside the functions that make them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.models import ModelDescription

NOT_IN_PAPER = "not in the paper"
"""Place of a display that no paper has."""


class ConfiguredStudy(Protocol):
    """What a display may ask of a study (see `pieline.study.Study`)."""

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
        metrics: Iterable[str],
        models: Iterable[str],
        *kinds: str,
        configured: Iterable[str] = (),
    ) -> DisplayInputs:
        """Return the inputs of a display of `models` and of the paper's others of these kinds."""


@dataclass(frozen=True, eq=False)
class Display:
    """A table or figure: its place in the paper, its inputs, and the function that makes it.

    Attributes:
        name: Base name of its files.
        place: Place in the paper ("Table 2"), or `NOT_IN_PAPER`.
        caption: One sentence for the results page and the report.
        make: Function from the inputs to a `TableContent` or a matplotlib figure.
        inputs: Function from a study to the inputs; None if its configuration has no such display.
        printed: Name of the file in published/ with the printed numbers (`files["published"]`).
        text_numbers: Whether the function compares numbers of the running text, too
            (`files["text_numbers"]`).
    """

    kind: ClassVar[Literal["table", "figure"]]
    folders: ClassVar[dict[str, str]]
    """Folder below paper_tables/ by file extension."""
    name: str
    place: str
    caption: str
    make: Callable[[DisplayInputs], Any]
    inputs: Callable[[Any], DisplayInputs | None]
    printed: str = ""
    text_numbers: bool = False

    def inputs_in(self, study: ConfiguredStudy) -> DisplayInputs | None:
        """Return the inputs in a study's configuration; None if it does not show the display."""
        given = self.inputs(study)
        if given is None:
            return None
        named = {"published": self.printed, "text_numbers": "text_numbers" * self.text_numbers}
        files = {
            key: study.project.here(f"published/{name}.csv") for key, name in named.items() if name
        }
        return given.with_files(**given.files, **files)

    @property
    def maker(self) -> str:
        """`module:function` of `make`, for a job, which runs in another process."""
        return f"{self.make.__module__}:{self.make.__qualname__}"

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
