"""Make tables, and write them as LaTeX, as CSV and as HTML for the results page."""

from collections.abc import Callable, Iterable, Mapping
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
"""Largest number of reasons that a note below a table lists."""
BESIDE = "The printed value is shown where it differs from ours."


@dataclass(frozen=True)
class Cell:
    """A table cell: a number with its deviation over seeds, or a text.

    Attributes:
        number: Number to show, with the printed number in small type. If our value is unknown, the
            cell shows a dash.
        deviation: Deviation over seeds, shown after a plus-minus sign.
        text: Text to show instead of our value; the printed number is then not rounded.
        stated: Our text and the printed text; None if the cell is not compared with a text.
        best: Whether the number is shown in bold, as the best of its column.
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
        """Our value of the number; None if the value is unknown or the cell is a text."""
        return self.number.ours if self.number else None


@dataclass(frozen=True)
class Head:
    """A heading over `span` columns; `latex` is its LaTeX source if it differs from the text."""

    text: str
    span: int = 1
    latex: str | None = None


@dataclass(frozen=True)
class Row:
    """A row of a table.

    Attributes:
        labels: Texts of the label columns.
        cells: Cells after the label columns.
        reason: Why no run computed the row, shown as a note below the table; otherwise empty.
    """

    labels: tuple[str, ...]
    cells: tuple[Cell, ...]
    reason: str = ""


@dataclass(frozen=True)
class Group:
    """Rows between two horizontal rules.

    Attributes:
        rows: Rows of the group.
        title: Text in an additional first column; empty if there is no such column.
        heads: Header rows that replace the table's header rows from this group on.
    """

    rows: tuple[Row, ...]
    title: str = ""
    heads: tuple[tuple[Head, ...], ...] = ()


_LINES_PER_PAGE = 56


def _has_printed(cell: Cell) -> bool:
    """Return whether the paper prints a number or a text for a cell."""
    if cell.number:
        return cell.number.printed is not None
    return cell.stated is not None and cell.stated.printed != ""


@dataclass(frozen=True)
class TableContent:
    """Content of a table and its CSV.

    Attributes:
        heads: Header rows from top to bottom. The spans of each header row add up to the number of
            columns.
        groups: Rows of the table, in groups.
        caption: Caption in plain text.
        caption_latex: LaTeX source of the caption; None if it is the plain text.
        notes: Sentences after the caption, such as a notice that the data is a sample.
        wide: Whether the table spans both columns of a page.
        long: Whether the table may span several pages even if it has few rows.
        label_widths: Widths of label columns with wrapped texts, as fractions of the line; empty if
            label columns are not wrapped.
        texts: Whether the cells contain texts, which are left-aligned.
        wraps: Whether the texts in cells are wrapped.
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
        """Whether the table has a first column that shows the titles of groups."""
        return any(group.title for group in self.groups)

    @property
    def label_columns(self) -> int:
        """Number of columns before the cells: labels and, if any, the column of group titles."""
        rows = self.groups[0].rows if self.groups else ()
        labels = len(rows[0].labels) if rows else 1
        return labels + 1 if self.titled else labels

    @property
    def columns(self) -> int:
        """Number of columns of the table, including label columns."""
        return sum(head.span for head in self.heads[-1])

    @property
    def spans_pages(self) -> bool:
        """Whether the table may span several pages."""
        lines = 0
        for group in self.groups:
            for row in group.rows:
                # Printed numbers are shown on an additional line.
                lines += 2 if any(_has_printed(cell) for cell in row.cells) else 1
        return self.long or lines > _LINES_PER_PAGE

    @property
    def footnotes(self) -> dict[str, str]:
        """Mark of each footnote (a, b, …), by the reason why no run computed a row."""
        rows = [row for group in self.groups for row in group.rows]
        reasons = dict.fromkeys(row.reason for row in rows if row.reason)
        marks = [*ascii_lowercase, *(f"a{number}" for number in range(26, len(reasons)))]
        return dict(zip(reasons, marks, strict=False))


@dataclass(frozen=True)
class ShownCell:
    """Texts and appearance of a cell.

    Attributes:
        ours: Our value or text.
        printed: The printed value or text; empty if there is none to show.
        best: Whether our value is shown in bold.
        mark: Arrow to show (see `Cell`).
        verdict: Verdict on a number; empty if the paper prints no number.
        reason: Reason for the verdict.
        metrics: Metric files behind our value.
        counts: Whether the number counts among the papers' numbers.
        measure: Name of the measure; empty for a text.
    """

    ours: str
    printed: str
    best: bool
    mark: str
    verdict: str = ""
    reason: str = ""
    metrics: tuple[str, ...] = ()
    counts: bool = False
    measure: str = ""


def make_table(
    layout: Callable[..., TableContent],
    ours: Callable[[DisplayInputs], pd.DataFrame] | None,
    inputs: DisplayInputs,
) -> tuple[TableContent, pd.DataFrame | None]:
    """Return a table's content and frame of numbers; a table of texts has None instead of a frame.

    Args:
        layout: Function that returns the content. It is called with the frame of numbers and the
            inputs, or with only the inputs if `ours` is None.
        ours: Function from the inputs to our rows of the frame; None for a table of texts.
        inputs: Inputs of the table.
    """
    if ours is None:
        numbers = None
        content = layout(inputs)
        if inputs.data == "own":
            content = _remove_printed_texts(content)
    else:
        numbers = numbers_for(inputs, ours(inputs))
        content = layout(numbers, inputs)
    notes = [*content.notes, *inputs.origins()]
    if inputs.mark:
        notes.insert(0, inputs.mark)
    elif inputs.data == "released":
        notes += _note_on_comparisons(content)
    return replace(content, notes=tuple(notes)), numbers


def _note_on_comparisons(content: TableContent) -> list[str]:
    """Return a list of one note with the reasons why numbers are not compared with the paper's.

    The list is empty if all numbers that the paper prints are compared.
    """
    reasons: list[str] = []
    for group in content.groups:
        for row in group.rows:
            for cell in row.cells:
                number = cell.number
                if number is None or number.printed is None or number.verdict != NOT_COMPARABLE:
                    continue
                if number.reason not in reasons:
                    reasons.append(number.reason)
    if not reasons:
        return []
    stated_reasons = reasons[:_STATED_REASONS]
    if len(reasons) > _STATED_REASONS:
        stated_reasons.append("and other reasons, which the CSV states")
    return [f"Not compared with printed numbers: {'; '.join(stated_reasons)}."]


def _remove_printed_texts(content: TableContent) -> TableContent:
    """Remove the printed texts from a table, and the rows that contain only printed texts."""
    groups = []
    for group in content.groups:
        rows = []
        for row in group.rows:
            texts = [cell.stated for cell in row.cells if cell.stated]
            is_only_printed = bool(texts) and not any(text.ours for text in texts)
            if not is_only_printed:
                cells = [_remove_printed_text(cell) for cell in row.cells]
                rows.append(replace(row, cells=tuple(cells)))
        groups.append(replace(group, rows=tuple(rows)))
    return replace(content, groups=tuple(groups))


def _remove_printed_text(cell: Cell) -> Cell:
    if cell.stated is None:
        return cell
    return replace(cell, stated=StatedText(ours=cell.stated.ours, printed="", reason=""))


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
        name: Name of the table, which becomes its label in LaTeX.
        content: Content of the table.
        numbers: Frame of numbers, which becomes the CSV file. For a table of texts, it is None, and
            the CSV file has one line per cell.
        templates: Folder that contains table.tex.jinja and table.html.jinja.
        tex: Path of the LaTeX file.
        csv: Path of the CSV file.
        html: Path of the HTML file.
    """
    values: dict[str, Any] = {
        "name": name,
        "table": content,
        "footnotes": content.footnotes,
        "shown": shown,
        "model_of": _model_of,
    }
    render_latex(Path(templates) / "table.tex.jinja", tex, **values)
    render_html(Path(templates) / "table.html.jinja", html, **values)
    if numbers is None:
        write_csv(csv, ("row", "column", "ours", "printed", "reason"), _text_lines(content))
    else:
        write_numbers(csv, numbers, without_empty=True)


def _model_of(row: Row) -> str:
    """Return the name of the model in a row of numbers; empty for a row without numbers."""
    models = [cell.number.model for cell in row.cells if cell.number]
    return models[0] if models else ""


def _text_lines(content: TableContent) -> Iterable[dict[str, str]]:
    """Yield the fields of one line of the CSV file for each cell of a table of texts."""
    # The last row of headings has one heading per column.
    heads_of_cells = content.heads[-1][content.label_columns :]
    for group in content.groups:
        for row in group.rows:
            name_of_row = " / ".join(filter(None, (group.title, *row.labels)))
            for head, cell in zip(heads_of_cells, row.cells, strict=False):
                stated = cell.stated or StatedText(ours=cell.text, printed="", reason="")
                yield {
                    "row": name_of_row,
                    "column": head.text,
                    **stated.model_dump(),
                }


def shown(cell: Cell) -> ShownCell:
    """Return the texts to show in a cell, and the appearance of the cell."""
    if cell.stated:
        return ShownCell(
            ours=cell.text or cell.stated.ours or "–",
            printed="" if cell.stated.printed == cell.stated.ours else cell.stated.printed,
            best=cell.best,
            mark=cell.mark,
            reason=cell.stated.reason,
        )
    if cell.number is None:
        return ShownCell(ours=cell.text or "–", printed="", best=cell.best, mark=cell.mark)
    number = cell.number
    our_deviation = cell.deviation.ours if cell.deviation else None
    printed_deviation = cell.deviation.printed if cell.deviation else None
    if number.printed is None:
        printed = ""
    elif cell.text:
        printed = f"{number.printed:g}"
    else:
        printed = _format_mean(number.printed, printed_deviation, number.decimals)
    return ShownCell(
        ours=cell.text or _format_mean(number.ours, our_deviation, number.decimals),
        printed=printed,
        best=cell.best,
        mark=cell.mark,
        verdict="" if number.printed is None else number.verdict,
        reason=number.reason,
        metrics=number.files,
        counts=number.counts,
        measure=number.measure.removesuffix(DEVIATION),
    )


def _format_mean(mean: float | None, deviation: float | None, decimals: int) -> str:
    """Format a mean with its deviation, if that is known; a dash if the mean is unknown."""
    if mean is None:
        return "–"
    spread = f" ± {rounded(deviation, decimals)}" if deviation is not None else ""
    return rounded(mean, decimals) + spread


def mark_best(content: TableContent, *, different: int = 1) -> TableContent:
    """Return the table with the best displayed number of each column in bold.

    Args:
        content: The table.
        different: Number of distinct displayed numbers that a column must contain for its best
            number to be in bold.
    """
    rows = [row for group in content.groups for row in group.rows]
    columns = max((len(row.cells) for row in rows), default=0)
    best_by_column = []
    for column in range(columns):
        cells = [row.cells[column] for row in rows]
        best_by_column.append(_best_number(cells, different))
    groups = []
    for group in content.groups:
        marked_rows = []
        for row in group.rows:
            marked_cells = [
                replace(cell, best=cell.number is not None and cell.number.shown == best)
                for cell, best in zip(row.cells, best_by_column, strict=True)
            ]
            marked_rows.append(replace(row, cells=tuple(marked_cells)))
        groups.append(replace(group, rows=tuple(marked_rows)))
    return replace(content, groups=tuple(groups))


def _best_number(cells: Iterable[Cell], different: int) -> str | None:
    """Return the best number of a column, as displayed.

    The result is None if neither high nor low numbers are better, or if the column contains fewer
    than `different` distinct displayed numbers.
    """
    numbers = [cell.number for cell in cells if cell.number]
    displayed_numbers = {number.shown for number in numbers if number.shown}
    better = {number.better for number in numbers if number.better}
    if not better or len(displayed_numbers) < different:
        return None
    if better == {"high"}:
        return max(displayed_numbers, key=float)
    return min(displayed_numbers, key=float)


@dataclass(frozen=True)
class Column:
    """A column of a table of numbers.

    Attributes:
        measure: Name of the measure.
        header: Header in plain text.
        latex: LaTeX source of the header; None if it is the plain text.
        interval: Decimals with which to show the number and its interval; None to show no interval.
        p_value: Whether to show the corrected p-value instead of the number.
    """

    measure: str
    header: str
    latex: str | None = None
    interval: int | None = None
    p_value: bool = False

    def cell(self, numbers: Mapping[str, Number]) -> Cell:
        """Return the column's cell in a row.

        Args:
            numbers: Numbers of the row by measure.
        """
        number = numbers.get(self.measure)
        text = ""
        if self.p_value:
            if number is None or number.p_holm is None:
                return Cell()
            text = probability(number.p_holm)
        elif number and self.interval is not None:
            text = interval_text(number, self.interval)
        deviation = numbers.get(f"{self.measure}{DEVIATION}")
        return Cell(number=number, deviation=deviation, text=text)


def interval_text(number: Number, decimals: int) -> str:
    """Format our value of a number with the 95% interval; empty if the number has no interval."""
    if number.low is None or number.high is None:
        return ""
    interval = f"[{rounded(number.low, decimals)}, {rounded(number.high, decimals)}]"
    return f"{rounded(number.ours, decimals)} {interval}"


def headers(labels: Iterable[str], columns: Iterable[Column] = ()) -> tuple[Head, ...]:
    """Return a header row: `labels` over the label columns, then the headers of `columns`."""
    heads = [Head(label) for label in labels]
    heads += [Head(column.header, latex=column.latex) for column in columns]
    return tuple(heads)


def in_order(
    rows: Mapping[tuple[str, ...], dict[str, Number]], inputs: DisplayInputs
) -> dict[tuple[str, ...], dict[str, Number]]:
    """Return the rows of the models that the table shows, in the order of the models in `inputs`.

    If the table also shows the paper's other models, rows with results of this run come first, in
    the order of `rows`.

    Args:
        rows: Rows as `rows_of` returns them; the first key of each row is the model.
        inputs: Inputs of the table.
    """
    place_of_model = {model.name: place for place, model in enumerate(inputs.row_models())}

    def place(keys: tuple[str, ...]) -> int:
        """Return the place of the row with these keys; rows with equal places keep their order."""
        model, *_ = keys
        has_results = any(number.files for number in rows[keys].values())
        if has_results and inputs.rows == "paper":
            return -1  # before all models
        return place_of_model[model]

    selected = [keys for keys in rows if keys[0] in place_of_model]
    return {keys: rows[keys] for keys in sorted(selected, key=place)}


def number_row(
    labels: tuple[str, ...], columns: Iterable[Column], numbers: Mapping[str, Number]
) -> Row:
    """Return a row of numbers; if all its numbers are missing for one reason, the row states it.

    Args:
        labels: Texts of the label columns.
        columns: Columns after the label columns.
        numbers: Numbers of the row by measure.
    """
    cells = tuple(column.cell(numbers) for column in columns)
    # If no cell has a number, the reasons are those of all numbers of the row.
    numbers_in_cells = [cell.number for cell in cells if cell.number]
    # The reason of a number that exists is empty, so a row with some numbers states no reason.
    reasons = {number.missing for number in numbers_in_cells or numbers.values()}
    shared_reason = reasons.pop() if len(reasons) == 1 else ""
    return Row(labels, cells, shared_reason)
