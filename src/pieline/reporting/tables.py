"""Tables, rendered as LaTeX in the paper's layout, as CSV, and as HTML for the results page."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from string import ascii_lowercase
from typing import Any, Literal

import pandas as pd

from pieline.core.tables import write_csv
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.latex import render_html, render_latex
from pieline.reporting.numbers import NOT_COMPARABLE, Number, numbers_for, write_numbers
from pieline.reporting.ours import DEVIATION
from pieline.reporting.printed import StatedText, probability, rounded

_STATED_REASONS = 3
"""Largest number of reasons in a caption."""
BESIDE = "The printed value is shown where it differs from ours."


@dataclass(frozen=True)
class Cell:
    """A table cell: a number with its deviation over seeds, or a text.

    Attributes:
        number: Our number, shown with the printed one in small type; a dash if ours is unknown.
        deviation: Deviation, shown after a plus-minus sign.
        text: Text shown if there is no number, or instead of the number; the printed number is
            then shown unrounded.
        stated: Our text and the printed one.
        best: Whether the number is the best of its column, which is shown in bold.
        mark: Arrow that shows a change relative to another cell; empty for no arrow.
    """

    number: Number | None = None
    deviation: Number | None = None
    text: str = ""
    stated: StatedText | None = None
    best: bool = False
    mark: Literal["", "up", "down"] = ""

    @property
    def ours(self) -> float | None:
        """Our number; None if it is unknown or the cell is a text."""
        return self.number.ours if self.number else None


@dataclass(frozen=True)
class Head:
    """A heading over `span` columns; `latex` is its LaTeX source, if different from the text."""

    text: str
    span: int = 1
    latex: str | None = None


@dataclass(frozen=True)
class Row:
    """A row of a table.

    Attributes:
        labels: Texts of the label columns.
        cells: The other cells.
        reason: Reason why nothing was run for the row, shown as a note below the table; empty for
            other rows.
    """

    labels: tuple[str, ...]
    cells: tuple[Cell, ...]
    reason: str = ""


@dataclass(frozen=True)
class Group:
    """Rows between two horizontal rules.

    Attributes:
        rows: Rows of the group.
        title: Text of an additional first column, if any.
        heads: Header rows that replace the table's from this group on.
    """

    rows: tuple[Row, ...]
    title: str = ""
    heads: tuple[tuple[Head, ...], ...] = ()


_LINES_OF_A_PAGE = 56


def _is_compared(cell: Cell) -> bool:
    printed = cell.number.printed if cell.number else cell.stated and cell.stated.printed
    return printed not in (None, "")


@dataclass(frozen=True)
class TableContent:
    """Content of a table and its CSV.

    Attributes:
        heads: Header rows from top to bottom; the spans of each row add up to the number of
            columns.
        groups: Rows of the table, in groups.
        caption: Caption in plain text.
        caption_latex: LaTeX source of the caption, if different.
        notes: Sentences after the caption, such as a notice that the data is a sample.
        wide: Whether the table spans both columns of a page.
        long: Whether the table may span several pages even if it has few rows.
        label_widths: Widths of the label columns as fractions of the line, for a long table with
            wrapped labels.
        texts: Whether the cells are texts, which are left-aligned.
        wraps: Whether the texts are wrapped.
    """

    heads: tuple[tuple[Head, ...], ...]
    groups: tuple[Group, ...]
    caption: str
    caption_latex: str | None = None
    notes: tuple[str, ...] = ()
    wide: bool = True
    long: bool = False
    label_widths: tuple[float, ...] = ()
    texts: bool = False
    wraps: bool = False

    @property
    def titled(self) -> bool:
        """Whether a first column shows group titles."""
        return any(group.title for group in self.groups)

    @property
    def label_columns(self) -> int:
        """Number of columns before the cells."""
        rows = self.groups[0].rows if self.groups else ()
        return (len(rows[0].labels) if rows else 1) + self.titled

    @property
    def columns(self) -> int:
        """Number of columns."""
        return sum(head.span for head in self.heads[-1])

    @property
    def spans_pages(self) -> bool:
        """Whether the table may span several pages."""
        rows = (row for group in self.groups for row in group.rows)
        # A printed number is on a line of its own.
        lines = (1 + any(map(_is_compared, row.cells)) for row in rows)
        return self.long or sum(lines) > _LINES_OF_A_PAGE

    @property
    def footnotes(self) -> dict[str, str]:
        """Footnote letters by the reason why a row was not run."""
        reasons = dict.fromkeys(row.reason for group in self.groups for row in group.rows)
        letters = (*ascii_lowercase, *(f"a{number}" for number in range(26, len(reasons))))
        return dict(zip(filter(None, reasons), letters, strict=False))


@dataclass(frozen=True)
class ShownCell:
    """Texts and appearance of a cell; `printed` is empty if there is no printed value to show."""

    ours: str
    printed: str
    best: bool
    mark: str
    verdict: str
    """Verdict on a number, or empty without a printed number."""
    reason: str
    metrics: tuple[str, ...]
    counts: bool = False
    """Whether the number counts among the papers' numbers."""
    measure: str = ""
    """Name of the measure; empty without a number."""


def make_table(
    layout: Callable[..., TableContent],
    ours: Callable[[DisplayInputs], pd.DataFrame] | None,
    inputs: DisplayInputs,
) -> tuple[TableContent, pd.DataFrame | None]:
    """Return a table and its frame of numbers.

    Args:
        layout: Function from the frame, if there is one, and the inputs to the table.
        ours: Function from the inputs to our rows of the frame; None for a table of texts.
        inputs: Inputs of the table.
    """
    numbers = numbers_for(inputs, ours(inputs)) if ours else None
    content = layout(inputs) if numbers is None else layout(numbers, inputs)
    if numbers is None and inputs.data == "own":
        content = _without_printed(content)
    notes = [*content.notes, *inputs.origins()]
    if inputs.mark:
        notes.insert(0, inputs.mark)
    elif inputs.data == "released":
        notes += _not_compared(content)
    return replace(content, notes=tuple(notes)), numbers


def _not_compared(content: TableContent) -> list[str]:
    """Return a note with the reasons why numbers are not compared with the printed ones."""
    reasons: dict[str, None] = {}
    for group in content.groups:
        for row in group.rows:
            for number in (cell.number for cell in row.cells):
                if number and number.printed is not None and number.verdict == NOT_COMPARABLE:
                    reasons[number.reason] = None
    if not reasons:
        return []
    stated = "; ".join([*reasons][:_STATED_REASONS])
    if len(reasons) > _STATED_REASONS:
        stated += "; and other reasons, which the CSV states"
    return [f"Not compared with printed numbers: {stated}."]


def _without_printed(content: TableContent) -> TableContent:
    """Return a table of texts without printed texts, and without rows that have no other texts."""
    groups = []
    for group in content.groups:
        rows = [replace(row, cells=tuple(map(_of_ours, row.cells))) for row in group.rows]
        groups.append(replace(group, rows=tuple(filter(_has_ours, rows))))
    return replace(content, groups=tuple(groups))


def _of_ours(cell: Cell) -> Cell:
    """Return a cell without its printed text."""
    if cell.stated is None:
        return cell
    return replace(cell, stated=StatedText(ours=cell.stated.ours, printed="", reason=""))


def _has_ours(row: Row) -> bool:
    """Return whether a row states a text of ours, or no text."""
    stated = [cell.stated for cell in row.cells if cell.stated]
    return not stated or any(text.ours for text in stated)


def write_table(
    name: str,
    content: TableContent,
    numbers: pd.DataFrame | None,
    *,
    templates: str | Path,
    tex: str | Path,
    csv: str | Path,
    html: str | Path,
) -> None:
    """Write a table as LaTeX, CSV and HTML.

    Args:
        name: Name of the table, for its label.
        content: Content of the table.
        numbers: Its frame of numbers, which is the CSV; None for a table of texts, whose CSV has a
            line per cell.
        templates: Folder of table.tex.jinja and table.html.jinja.
        tex: LaTeX output.
        csv: CSV output.
        html: HTML output.
    """
    values: dict[str, Any] = {
        "name": name,
        "table": content,
        "footnotes": content.footnotes,
        "shown": shown,
        "model_of": lambda row: next((each.number.model for each in row.cells if each.number), ""),
    }
    render_latex(Path(templates) / "table.tex.jinja", tex, **values)
    render_html(Path(templates) / "table.html.jinja", html, **values)
    if numbers is None:
        write_csv(csv, ("row", "column", "ours", "printed", "reason"), _text_lines(content))
    else:
        write_numbers(csv, numbers, without_empty=True)


def _text_lines(content: TableContent) -> Iterable[dict[str, str]]:
    """Yield the cells of a table of texts."""
    heads = [head.text for head in content.heads[-1]][content.label_columns :]
    for group in content.groups:
        for row in group.rows:
            for head, cell in zip(heads, row.cells, strict=False):
                stated = cell.stated or StatedText(ours=cell.text, printed="", reason="")
                yield {
                    "row": " / ".join(filter(None, (group.title, *row.labels))),
                    "column": head,
                    **stated.model_dump(),
                }


def shown(cell: Cell) -> ShownCell:
    """Return the texts and appearance of a cell."""
    if stated := cell.stated:
        ours = cell.text or stated.ours or "–"
        differs = stated.printed if stated.printed != stated.ours else ""
        return ShownCell(ours, differs, cell.best, cell.mark, "", stated.reason, ())
    if cell.number is None:
        return ShownCell(cell.text or "–", "", cell.best, cell.mark, "", "", ())
    number, deviation = cell.number, cell.deviation
    ours = _text(number.ours, deviation.ours if deviation else None, number.decimals)
    printed = (
        f"{number.printed:g}"
        if cell.text and number.printed is not None
        else _text(
            number.printed, deviation.printed if deviation else None, number.decimals, unknown=""
        )
    )
    return ShownCell(
        ours=cell.text or ours,
        printed=printed,
        best=cell.best,
        mark=cell.mark,
        verdict="" if number.printed is None else number.verdict,
        reason=number.reason,
        metrics=number.files,
        counts=number.counts,
        measure=number.measure.removesuffix(DEVIATION),
    )


def _text(
    value: float | None, deviation: float | None, decimals: int, *, unknown: str = "–"
) -> str:
    """Format a mean with its deviation, if any; without a mean, return `unknown`."""
    if value is None:
        return unknown
    spread = f" ± {rounded(deviation, decimals)}" if deviation is not None else ""
    return rounded(value, decimals) + spread


def mark_best(content: TableContent, *, different: int = 1) -> TableContent:
    """Return the table with the best displayed number of each column in bold.

    Args:
        content: The table.
        different: Minimum number of distinct values in a column; columns with fewer are unmarked.
    """
    rows = [row for group in content.groups for row in group.rows]
    best: list[str | None] = []
    """Best displayed number of each column; None if the column is not marked."""
    for place in range(max((len(row.cells) for row in rows), default=0)):
        numbers = [number for row in rows if (number := row.cells[place].number)]
        known = {number.shown for number in numbers if number.shown}
        better = {number.better for number in numbers if number.better}
        is_marked = better and len(known) >= different
        extreme = max if better == {"high"} else min
        best.append(extreme(known, key=float) if is_marked else None)
    groups = []
    for group in content.groups:
        marked = [replace(row, cells=_mark_cells(row.cells, best)) for row in group.rows]
        groups.append(replace(group, rows=tuple(marked)))
    return replace(content, groups=tuple(groups))


def _mark_cells(cells: Iterable[Cell], best: Sequence[str | None]) -> tuple[Cell, ...]:
    marked = []
    for cell, best_of_column in zip(cells, best, strict=False):
        is_best = cell.number is not None and cell.number.shown == best_of_column
        marked.append(replace(cell, best=is_best))
    return tuple(marked)


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        measure: Name of the measure.
        header: Header.
        latex: LaTeX source of the header, if different.
        interval: Decimals of number and interval, which are then shown together.
        p_value: Whether to show the corrected p-value instead of the number.
    """

    measure: str
    header: str
    latex: str | None = None
    interval: int | None = None
    p_value: bool = False

    def cell(self, numbers: Mapping[str, Number]) -> Cell:
        """Return the cell of a row, from its numbers by measure."""
        number = numbers.get(self.measure)
        text = ""
        if number and self.p_value and number.p_holm is not None:
            text = probability(number.p_holm)
        elif number and self.interval is not None:
            text = interval_text(number, self.interval)
        elif self.p_value:
            return Cell()
        return Cell(number, numbers.get(f"{self.measure}{DEVIATION}"), text)


def interval_text(number: Number, decimals: int) -> str:
    """Format a number with its interval; empty without an interval."""
    if number.low is None or number.high is None:
        return ""
    ours, low, high = (rounded(each, decimals) for each in (number.ours, number.low, number.high))
    return f"{ours} [{low}, {high}]"


def headers(labels: Iterable[str], columns: Iterable[Column] = ()) -> tuple[Head, ...]:
    """Return a header row: the headers of the label columns, then those of `columns`."""
    return (*map(Head, labels), *(Head(column.header, latex=column.latex) for column in columns))


def in_order(
    rows: Mapping[tuple[str, ...], dict[str, Number]], inputs: DisplayInputs
) -> dict[tuple[str, ...], dict[str, Number]]:
    """Return table rows (see `rows_of`; their first key is the model) in the order of the models.

    Rows of runs come first, in their own order, unless only this run's models have rows.
    """
    places = {model.name: place for place, model in enumerate(inputs.row_models())}

    def place(item: tuple[tuple[str, ...], Mapping[str, Number]]) -> int:
        (model, *_), numbers = item
        is_run = any(number.files for number in numbers.values())
        return -1 if is_run and inputs.rows == "paper" else places[model]

    return dict(sorted((item for item in rows.items() if item[0][0] in places), key=place))


def number_row(
    labels: tuple[str, ...], columns: Iterable[Column], numbers: Mapping[str, Number]
) -> Row:
    """Return a row of numbers; if all are missing for one reason, the row states it."""
    cells = tuple(column.cell(numbers) for column in columns)
    in_cells = [cell.number for cell in cells if cell.number]
    reasons = {number.missing for number in in_cells or numbers.values()}
    return Row(labels, cells, reasons.pop() if len(reasons) == 1 else "")
