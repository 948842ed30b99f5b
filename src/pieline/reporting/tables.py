"""Tables, rendered as LaTeX in the paper's layout, as CSV, and as HTML for the results page."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from string import ascii_lowercase
from typing import Any, Literal

from pieline.core.imports import import_object
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.latex import render_html, render_latex
from pieline.reporting.printed import VERDICTS, Comparison, StatedText, rounded, write_comparisons

BESIDE = "The printed value is shown where it differs from ours."


@dataclass(frozen=True)
class Number:
    """Our number or text in a table, and the printed one; both are in one line of the CSV.

    Attributes:
        key: Values that identify the line, by CSV column.
        comparison: Our number and the printed one in the unit of the printed table, or two texts.
        metrics: Metric files behind our number.
    """

    key: Mapping[str, str]
    comparison: Comparison | StatedText
    metrics: tuple[str, ...] = ()


@dataclass(frozen=True)
class Cell:
    """A table cell: a number with its deviation over seeds, or a text.

    Attributes:
        number: Our number, shown with the printed one in small type; a dash if ours is unknown.
        deviation: Deviation, shown after a plus-minus sign.
        text: Text shown if there is no number, or instead of the number; the printed number is
            then shown unrounded.
        best: Whether the number is the best of its column, which is shown in bold.
        mark: Arrow that shows a change relative to another cell; empty for no arrow.
    """

    number: Number | None = None
    deviation: Number | None = None
    text: str = ""
    best: bool = False
    mark: Literal["", "up", "down"] = ""

    @property
    def ours(self) -> float | None:
        """Our number; None if it is unknown or the cell is a text."""
        compared = self.number.comparison if self.number else None
        return compared.ours if isinstance(compared, Comparison) else None

    def numbers(self) -> Iterator[Number]:
        """Yield the number and its deviation, if the cell has them."""
        yield from (item for item in (self.number, self.deviation) if item)


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
        unseen: Numbers that are only in the CSV.
    """

    labels: tuple[str, ...]
    cells: tuple[Cell, ...]
    reason: str = ""
    unseen: tuple[Number, ...] = ()


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
    return cell.number is not None and cell.number.comparison.printed not in (None, "")


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
        unseen: Numbers outside any row, which are only in the CSV.
        decimals: Decimals of numbers whose comparison does not set them.
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
    unseen: tuple[Number, ...] = ()
    decimals: int = 2
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

    def numbers(self) -> Iterator[Number]:
        """Yield all numbers: row by row (cells, then unseen ones), then those outside any row."""
        for group in self.groups:
            for row in group.rows:
                for cell in row.cells:
                    yield from cell.numbers()
                yield from row.unseen
        yield from self.unseen


def make_table(maker: str, inputs: DisplayInputs) -> TableContent:
    """Call the maker of a table; if the data is the user's own, remove the printed numbers."""
    content: TableContent = import_object(maker)(inputs)
    if not inputs.is_own:
        return content
    return without_printed(content, [model.name for model in inputs.models])


def without_printed(content: TableContent, models: Collection[str]) -> TableContent:
    """Return the table without printed values and without rows that have only printed numbers.

    Args:
        content: The table.
        models: Models of this run, whose rows are kept even if they have no number of ours.
    """

    def of_ours(number: Number | None) -> Number | None:
        if number is None:
            return None
        unset: dict[str, Any] = {"printed": "", "reason": ""}
        if isinstance(number.comparison, Comparison):
            unset = {"printed": None, "comparable": False, "ranges": {}}
        return replace(number, comparison=number.comparison.model_copy(update=unset))

    def is_kept(row: Row) -> bool:
        numbers = [number for cell in row.cells for number in cell.numbers()]
        return not numbers or any(
            number.comparison.ours not in (None, "") or number.key.get("model") in models
            for number in numbers
        )

    def cell(old: Cell) -> Cell:
        return replace(old, number=of_ours(old.number), deviation=of_ours(old.deviation))

    def numbers(items: Iterable[Number]) -> tuple[Number, ...]:
        return tuple(number for each in items if (number := of_ours(each)))

    groups = (
        replace(
            group,
            rows=tuple(
                replace(row, cells=tuple(map(cell, row.cells)), unseen=numbers(row.unseen))
                for row in group.rows
                if is_kept(row)
            ),
        )
        for group in content.groups
    )
    return replace(
        content,
        groups=tuple(groups),
        caption=content.caption.replace(BESIDE, "").strip(),
        unseen=numbers(content.unseen),
    )


@dataclass(frozen=True)
class ShownCell:
    """Texts and appearance of a cell; `printed` is empty if there is no printed value to show."""

    ours: str
    printed: str
    best: bool
    mark: str
    verdict: str
    """Verdict: a value of `VERDICTS`, `not comparable`, or empty without a printed number."""
    reason: str
    metrics: tuple[str, ...]


def write_table(
    name: str,
    content: TableContent,
    *,
    templates: str | Path,
    tex: str | Path,
    csv: str | Path,
    html: str | Path,
    mark: str = "",
    archived: Mapping[str, str] | None = None,
) -> None:
    """Write a table as LaTeX, CSV and HTML.

    Args:
        name: Name of the table, for its label.
        content: Content of the table.
        templates: Folder of table.tex.jinja and table.html.jinja.
        tex: LaTeX output.
        csv: CSV output.
        html: HTML output.
        mark: Sentence at the start of the notes and of the reason in each CSV line.
        archived: Name of the archive from which the predictions were taken, by metric file.
    """
    if mark:
        content = replace(content, notes=(mark, *content.notes))
    values: dict[str, Any] = {
        "name": name,
        "table": content,
        "footnotes": content.footnotes,
        "shown": partial(shown, decimals=content.decimals),
    }
    render_latex(Path(templates) / "table.tex.jinja", tex, **values)
    render_html(Path(templates) / "table.html.jinja", html, **values)
    write_comparisons(
        csv,
        ((item.key, item.comparison, item.metrics) for item in content.numbers()),
        decimals=content.decimals,
        mark=mark,
        archived=archived,
    )


def shown(cell: Cell, decimals: int) -> ShownCell:
    """Return the texts and appearance of a cell; `decimals` is the table's default."""
    if cell.number is None:
        return ShownCell(cell.text or "–", "", cell.best, cell.mark, "", "", ())
    compared = cell.number.comparison
    if isinstance(compared, StatedText):
        ours, printed = cell.text or compared.ours or "–", compared.printed
        differs = printed if printed != compared.ours else ""
        return ShownCell(ours, differs, cell.best, cell.mark, "", compared.reason, ())
    compared_deviation = cell.deviation.comparison if cell.deviation else None
    deviation = compared_deviation if isinstance(compared_deviation, Comparison) else None
    return ShownCell(
        ours=cell.text
        or _text(compared.ours, deviation.ours if deviation else None, compared.places(decimals)),
        printed=f"{compared.printed:g}"
        if cell.text and compared.printed is not None
        else _text(
            compared.printed,
            deviation.printed if deviation else None,
            compared.places(decimals),
            unknown="",
        ),
        best=cell.best,
        mark=cell.mark,
        verdict=VERDICTS.get(compared.reproduced or "", "not comparable")
        if compared.printed is not None
        else "",
        reason=compared.reason,
        metrics=cell.number.metrics,
    )


def _text(
    value: float | None, deviation: float | None, decimals: int, *, unknown: str = "–"
) -> str:
    """Format a mean with its deviation, if any; without a mean, return `unknown`."""
    if value is None:
        return unknown
    spread = f" ± {rounded(deviation, decimals)}" if deviation is not None else ""
    return rounded(value, decimals) + spread
