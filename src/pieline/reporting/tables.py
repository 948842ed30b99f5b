"""One table, three renderings: LaTeX in the paper's layout, CSV, and HTML for the results page."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from pieline.reporting.latex import render_html, render_latex
from pieline.reporting.printed import VERDICTS, Comparison, StatedText, rounded, write_comparisons


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
    texts: bool = False
    wraps: bool = False

    def numbers(self) -> Iterator[Number]:
        """All numbers: row by row those of the cells and the unseen ones, then those of no row."""
        for group in self.groups:
            for row in group.rows:
                for cell in row.cells:
                    yield from (item for item in (cell.number, cell.deviation) if item)
                yield from row.unseen
        yield from self.unseen


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


@dataclass(frozen=True)
class ShownRow:
    """A row as text; `note` is the letter of its reason, if it was not run."""

    title: str
    title_rows: int
    labels: tuple[str, ...]
    cells: tuple[ShownCell, ...]
    note: str


@dataclass(frozen=True)
class Shown:
    """A table ready for a template."""

    name: str
    heads: tuple[tuple[Head, ...], ...]
    groups: tuple[tuple[ShownRow, ...], ...]
    group_heads: tuple[tuple[tuple[Head, ...], ...], ...]
    caption: str
    caption_latex: str | None
    notes: tuple[str, ...]
    reasons: dict[str, str] = field(default_factory=dict)
    titled: bool = False
    label_columns: int = 1
    columns: int = 1
    wide: bool = True
    long: bool = False
    texts: bool = False
    wraps: bool = False


def write_table(
    name: str,
    content: TableContent,
    *,
    templates: str | Path,
    tex: str | Path,
    csv: str | Path,
    html: str | Path,
    mark: str = "",
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
    """
    if mark:
        content = replace(content, notes=(mark, *content.notes))
    table = shown(name, content)
    render_latex(Path(templates) / "table.tex.jinja", tex, table=table)
    render_html(Path(templates) / "table.html.jinja", html, table=table)
    write_comparisons(
        csv,
        ((item.key, item.comparison, item.metrics) for item in content.numbers()),
        decimals=content.decimals,
        mark=mark,
    )


def shown(name: str, content: TableContent) -> Shown:
    """The table as text, with a letter for each reason why a row was not run."""
    reasons: dict[str, str] = {}
    for group in content.groups:
        for row in group.rows:
            if row.reason and row.reason not in reasons:
                reasons[row.reason] = _letter(len(reasons))
    titled = any(group.title for group in content.groups)
    first = content.groups[0].rows[0] if content.groups and content.groups[0].rows else None
    return Shown(
        name=name,
        heads=content.heads,
        group_heads=tuple(group.heads for group in content.groups if group.rows),
        groups=tuple(
            tuple(
                ShownRow(
                    title=group.title if place == 0 else "",
                    title_rows=len(group.rows) if place == 0 and group.title else 0,
                    labels=row.labels,
                    cells=tuple(_cell(cell, content.decimals) for cell in row.cells),
                    note=reasons.get(row.reason, ""),
                )
                for place, row in enumerate(group.rows)
            )
            for group in content.groups
            if group.rows
        ),
        caption=content.caption,
        caption_latex=content.caption_latex,
        notes=content.notes,
        reasons={letter: reason for reason, letter in reasons.items()},
        titled=titled,
        label_columns=(len(first.labels) if first else 1) + titled,
        columns=sum(head.span for head in content.heads[-1]),
        wide=content.wide,
        long=content.long,
        texts=content.texts,
        wraps=content.wraps,
    )


def stacked(content: TableContent, *, labels: int, cells: int) -> TableContent:
    """The table with so many columns of cells abreast; the others stand below, as do their heads.

    A row stands only where it has something to show.

    Args:
        content: the table; no heading reaches across a place where it is cut.
        labels: its columns before the cells, titles of groups included.
        cells: columns abreast.
    """
    width = sum(head.span for head in content.heads[-1]) - labels
    if width <= cells:
        return content
    groups: list[Group] = []
    told: set[tuple[str, ...]] = set()
    all_heads = []
    for start in range(0, width, cells):
        stop, missing = start + cells, max(0, start + cells - width)
        own = tuple(
            (
                *_between(row, 0, labels),
                *_between(row, labels + start, labels + stop),
                *((Head("", missing),) if missing else ()),
            )
            for row in content.heads
        )
        all_heads.append(own)
        for group in content.groups:
            rows = []
            for row in group.rows:
                part = row.cells[start:stop]
                if any(cell.number or cell.text for cell in part):
                    unseen = () if (group.title, *row.labels) in told else row.unseen
                    told.add((group.title, *row.labels))
                    blank = (Cell(text=" "),) * missing
                    rows.append(replace(row, cells=(*part, *blank), unseen=unseen))
            if rows:
                groups.append(Group(tuple(rows), group.title, own if start else ()))
                own = ()
    return replace(content, heads=all_heads[0], groups=tuple(groups))


def _between(heads: Iterable[Head], start: int, end: int) -> Iterator[Head]:
    """The headings over the columns from `start` to before `end`."""
    place = 0
    for head in heads:
        if start <= place < end:
            yield head
        place += head.span


def _letter(number: int) -> str:
    return chr(ord("a") + number) if number < 26 else f"a{number}"


def _cell(cell: Cell, decimals: int) -> ShownCell:
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


def best_of(values: Iterable[float | None], *, lowest: bool = False) -> float | None:
    """The best value of a column, at two decimals as readers compare them; None without any."""
    known = [round(value, 2) for value in values if value is not None]
    return (min if lowest else max)(known) if known else None
