"""One table, three renderings: LaTeX in the paper's layout, CSV, and HTML for the results page."""

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

BESIDE = "The printed value stands beside ours where it is another."


@dataclass(frozen=True)
class Number:
    """One number of a table, ours beside the printed one: a line of its CSV.

    Attributes:
        key: what identifies it, by column of the CSV.
        comparison: ours and the printed one, in the unit of the printed table, or two texts.
        metrics: the metric files that ours comes from.
    """

    key: Mapping[str, str]
    comparison: Comparison | StatedText
    metrics: tuple[str, ...] = ()


@dataclass(frozen=True)
class Cell:
    """What stands in one place of a table: a number, with its deviation over seeds, or a text.

    Attributes:
        number: shown as ours, with the printed one small beside it; a dash where ours is unknown.
        deviation: shown after it with a plus-minus sign.
        text: shown where there is no number, or in place of the number's digits; the printed
            one then stands as it is printed.
        best: whether it is the best of its column, and so bold.
        mark: an arrow, up or down against another cell.
    """

    number: Number | None = None
    deviation: Number | None = None
    text: str = ""
    best: bool = False
    mark: Literal["", "up", "down"] = ""

    @property
    def ours(self) -> float | None:
        """Our number; None if it is unknown or the cell is text."""
        compared = self.number.comparison if self.number else None
        return compared.ours if isinstance(compared, Comparison) else None

    def numbers(self) -> Iterator[Number]:
        """The number and its deviation, as far as the cell has them."""
        yield from (item for item in (self.number, self.deviation) if item)


@dataclass(frozen=True)
class Head:
    """A heading over `span` columns; `latex` where LaTeX writes it otherwise than plain text."""

    text: str
    span: int = 1
    latex: str | None = None


@dataclass(frozen=True)
class Row:
    """A row: its labels, then its cells.

    `reason` says why there are no numbers of ours, if it was not run: it becomes a note under the
    table, and the row shows what the paper prints. `unseen` are numbers that only the CSV has.
    """

    labels: tuple[str, ...]
    cells: tuple[Cell, ...]
    reason: str = ""
    unseen: tuple[Number, ...] = ()


@dataclass(frozen=True)
class Group:
    """Rows between two rules; the title, if there is one, is a first column of its own.

    `heads` are headings of its own, from which on they hold in place of the table's.
    """

    rows: tuple[Row, ...]
    title: str = ""
    heads: tuple[tuple[Head, ...], ...] = ()


@dataclass(frozen=True)
class TableContent:
    """Everything that a table shows and its CSV holds.

    Attributes:
        heads: rows of headings from the top; the spans of each add up to all columns.
        groups: the table's rows.
        caption: in plain text; `caption_latex` where LaTeX writes it otherwise.
        notes: sentences that follow the caption, such as that the data are the sample's.
        unseen: numbers of no row, which only the CSV has.
        decimals: of numbers whose comparison does not say.
        wide: whether the table spans both columns of a page.
        long: whether it may go on over several pages.
        label_widths: of a long table whose labels are broken into lines, their columns' shares of
            the line.
        texts: whether its cells are texts, which stand left in their columns.
        wraps: whether they are long texts, which are broken into lines.
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
        """Whether the titles of groups are a column."""
        return any(group.title for group in self.groups)

    @property
    def label_columns(self) -> int:
        """Columns before the cells."""
        rows = self.groups[0].rows if self.groups else ()
        return (len(rows[0].labels) if rows else 1) + self.titled

    @property
    def columns(self) -> int:
        """All columns."""
        return sum(head.span for head in self.heads[-1])

    @property
    def footnotes(self) -> dict[str, str]:
        """The letter of each reason why a row was not run."""
        reasons = dict.fromkeys(row.reason for group in self.groups for row in group.rows)
        letters = (*ascii_lowercase, *(f"a{number}" for number in range(26, len(reasons))))
        return dict(zip(filter(None, reasons), letters, strict=False))

    def numbers(self) -> Iterator[Number]:
        """All numbers: row by row those of the cells and the unseen ones, then those of no row."""
        for group in self.groups:
            for row in group.rows:
                for cell in row.cells:
                    yield from cell.numbers()
                yield from row.unseen
        yield from self.unseen


def make_table(maker: str, given: DisplayInputs) -> TableContent:
    """Make a table by its declared function; of own data without printed numbers."""
    content: TableContent = import_object(maker)(given)
    if not given.is_own:
        return content
    return without_printed(content, [model.name for model in given.models])


def without_printed(content: TableContent, models: Collection[str]) -> TableContent:
    """The table without what the papers print; rows that nothing of ours is left of go.

    Args:
        content: the table.
        models: those that the run names: their rows stay, also with no number.
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

    def cell(found: Cell) -> Cell:
        return replace(found, number=of_ours(found.number), deviation=of_ours(found.deviation))

    def numbers(found: Iterable[Number]) -> tuple[Number, ...]:
        return tuple(number for each in found if (number := of_ours(each)))

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
    """A cell as text: ours, the printed number (empty where the paper prints none), and looks."""

    ours: str
    printed: str
    best: bool
    mark: str
    verdict: str
    """One of `VERDICTS`, `not comparable`, or empty without a printed number."""
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
    """Write a table in its three renderings.

    Args:
        name: of the table, for its label.
        content: what it shows.
        templates: folder of table.tex.jinja and table.html.jinja.
        tex: LaTeX output.
        csv: CSV output.
        html: HTML output.
        mark: sentence that begins the notes and the reason of each line of the CSV.
        archived: by metric file the archive that its predictions are from.
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
    """A cell as text; `decimals` are the table's."""
    if cell.number is None:
        return ShownCell(cell.text or "–", "", cell.best, cell.mark, "", "", ())
    compared = cell.number.comparison
    if isinstance(compared, StatedText):
        ours, printed = cell.text or compared.ours or "–", compared.printed
        differs = printed if printed != compared.ours else ""
        return ShownCell(ours, differs, cell.best, cell.mark, "", compared.reason, ())
    found = cell.deviation.comparison if cell.deviation else None
    deviation = found if isinstance(found, Comparison) else None
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
    """A mean with its deviation; `unknown` where there is none."""
    if value is None:
        return unknown
    spread = f" ± {rounded(deviation, decimals)}" if deviation is not None else ""
    return rounded(value, decimals) + spread
