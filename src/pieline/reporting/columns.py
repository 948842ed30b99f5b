"""Columns of tables, and the cells that put our numbers beside the printed ones."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, Literal, TypeVar

from pydantic import BaseModel

from pieline.core.conditions import MetricRecord
from pieline.core.records import load_records
from pieline.core.uncertainty import Interval, Spread, spread
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.printed import (
    PrintedRow,
    compare,
    percent_bounds,
    read_published,
    rounded,
)
from pieline.reporting.seeds import PrintedSeeds, Ranges
from pieline.reporting.tables import Cell, Group, Head, Number, Row, TableContent

K = TypeVar("K")
R = TypeVar("R")
M = TypeVar("M", bound=BaseModel)
N = TypeVar("N", bound=MetricRecord)
TextNumbers = Mapping[tuple[str, ...], PrintedRow]
"""published/text_numbers.csv by id, as `read_published` returns it."""


@dataclass(frozen=True)
class Source(Generic[R]):
    """What the numbers of a row come from: our records and the printed row.

    Attributes:
        key: columns of the CSV that identify the row.
        records: ours, one per seed; none if nothing was run.
        files: the metric files of the records.
        printed: the paper's numbers.
        obstacles: what makes ours incomparable with them, most important first.
        not_run: why there are no records.
        seeds: of the printed numbers, if these are means over seeds.
        ranges: of sampling (see `Comparison`), if these are no means over seeds.
    """

    key: Mapping[str, str]
    records: Sequence[R] = ()
    files: tuple[str, ...] = ()
    printed: PrintedRow = field(default_factory=dict)
    obstacles: Sequence[str] = ()
    not_run: str = ""
    seeds: PrintedSeeds | None = None
    ranges: Ranges = field(default_factory=dict)


@dataclass(frozen=True)
class Column(Generic[R]):
    """A column of a table.

    Attributes:
        name: in published/*.csv, where the column of its deviations ends in `_std`. Without `_pct`
            it is the metric in our CSV.
        header: in the table; a column without one is only in the CSV.
        value: our number from one record, in the printed unit; None if unknown.
        latex: the header in LaTeX, if not the same.
        decimals: of the printed numbers, if not the table's.
        best: which of its numbers `mark_best` marks.
        unknown: why the value can be unknown although there is a record.
        tolerance: how far ours may be from the printed number and count as reproduced.
        details: more columns of the CSV.
        text: shown instead of our number's digits; empty for the digits.
    """

    name: str
    header: str
    value: Callable[[R], float | None]
    latex: str | None = None
    decimals: int | None = None
    best: Literal["", "highest", "lowest"] = ""
    unknown: str = ""
    tolerance: Callable[[Source[R]], float] = lambda _: 0.0
    details: Callable[[Source[R]], Mapping[str, str]] = lambda _: {}
    text: Callable[[R], str] = lambda _: ""


def sources(
    given: DisplayInputs,
    record: type[M],
    keys: Sequence[str],
    obstacles: Callable[..., Sequence[str]],
    *,
    order: Callable[[M], int] = lambda _: 0,
) -> dict[tuple[str, ...], Source[M]]:
    """Our records from all metric files; those with the same values of `keys` share a source.

    Args:
        given: metrics.
        record: the class of a metric file.
        keys: fields that identify a source.
        obstacles: what makes the records of a source incomparable with printed numbers.
        order: of the records, if not that of the files.
    """
    found: dict[tuple[str, ...], list[tuple[M, str]]] = defaultdict(list)
    pairs = zip(load_records(given.metrics, record), given.metrics, strict=True)
    for item, path in sorted(pairs, key=lambda pair: order(pair[0])):
        found[tuple(str(getattr(item, key)) for key in keys)].append((item, path))
    return {
        values: Source(
            key=dict(zip(keys, values, strict=True)),
            records=(records := [item for item, _ in members]),
            files=tuple(path for _, path in members),
            obstacles=obstacles(*records),
        )
        for values, members in found.items()
    }


def records_of(found: Mapping[K, Source[R]]) -> list[R]:
    """The records of all sources."""
    return [record for source in found.values() for record in source.records]


def headers(labels: Iterable[str], columns: Iterable[Column[R]] = ()) -> tuple[Head, ...]:
    """A row of headers: those of the rows' labels, then those of the columns."""
    shown = (Head(column.header, latex=column.latex) for column in columns if column.header)
    return (*map(Head, labels), *shown)


def over_seeds(records: Sequence[R], value: Callable[[R], float | None]) -> Spread | None:
    """Mean and deviation over records; None without any, or if the value of one is unknown."""
    known = [number for item in records if (number := value(item)) is not None]
    return spread(known) if known and len(known) == len(records) else None


def cell(column: Column[R], source: Source[R] | None) -> Cell:
    """Our number beside the printed one: over seeds mean and deviation, unknown if one value is.

    Without a source it is a dash.
    """
    if source is None:
        return Cell()
    ours = over_seeds(source.records, column.value)
    obstacles = [f"not run: {source.not_run}"] if source.not_run else []
    if source.records and ours is None and column.unknown:
        obstacles.append(column.unknown)
    obstacles += source.obstacles

    def number(name: str, value: float | None, ranges: Ranges) -> Number:
        compared = compare(
            value,
            source.printed.get(name),
            obstacles=obstacles,
            tolerance=column.tolerance(source),
            ranges=ranges,
            decimals=column.decimals,
        )
        key = {**source.key, "metric": name.removesuffix("_pct"), **column.details(source)}
        return Number(key, compared, source.files)

    of_mean, of_deviation = source.ranges, Ranges()
    if source.seeds:
        of_mean, of_deviation = source.seeds.ranges(source.printed, column.name, ours)
    mean = number(column.name, ours.mean if ours else None, of_mean)
    text = column.text(source.records[0]) if source.records else ""
    deviation, name = ours.deviation if ours else None, f"{column.name}_std"
    if not source.seeds or (deviation is None and name not in source.printed):
        return Cell(mean, text=text)
    if ours and deviation is None:
        obstacles.insert(0, "one seed has no deviation")
    return Cell(mean, number(name, deviation, of_deviation), text=text)


def text_cell(column: Column[R], source: Source[R], study: str, printed: TextNumbers) -> Cell:
    """The cell of a number that the paper's text prints as `<study>.<name of the column>`."""
    identifier = f"{study}.{column.name}"
    row = printed.get((identifier,), {})
    return cell(
        replace(column, name="value"),
        replace(source, key={**source.key, "id": identifier}, printed=row),
    )


def row(
    labels: tuple[str, ...],
    columns: Iterable[tuple[Column[R], Source[R] | None]],
    *,
    reason: str = "",
) -> Row:
    """A row of a table, with the source of each column; `reason` says why it was not run.

    Numbers that only the CSV has are left out if nothing was run.
    """
    shown: list[Cell] = []
    unseen: list[Number] = []
    for column, source in columns:
        if column.header:
            shown.append(cell(column, source))
        elif source and source.records:
            unseen += cell(column, source).numbers()
    return Row(labels, tuple(shown), reason, tuple(unseen))


def model_table(
    given: DisplayInputs, record: type[N], columns: Sequence[Column[N]], *, caption: str
) -> TableContent:
    """Return one row per model, with the printed numbers of `given.files["published"]`.

    Both name a model as models.yaml does; `record` has the field `model`. A model that was not run
    has a row with the reason, also one that only the paper has.
    """
    printed = read_published(given.files["published"], ["model"])
    ours = sources(given, record, ["model"], lambda item: item.conditions.deviations)
    shown = {model.name: model.label for model in given.models}
    shown |= {name: label for name, label in given.labels().items() if (name,) in printed}
    rows = []
    for name, label in shown.items():
        reason = "" if (name,) in ours else given.why_not(name)
        found = ours.get((name,), Source({"model": name}, not_run=reason))
        source = replace(found, printed=printed.get((name,), {}))
        rows.append(row((label,), [(column, source) for column in columns], reason=reason))
    return TableContent(
        heads=(headers(["Model"], columns),),
        groups=(Group(tuple(rows)),),
        caption=caption,
        notes=given.notes,
        wide=False,
    )


def mark_best(
    content: TableContent, columns: Sequence[Column[R]], *, different: int = 1
) -> TableContent:
    """Mark the best number of each column, rounded as it is shown.

    Args:
        content: the table.
        columns: of its cells.
        different: numbers that a column must have for one to be marked.
    """

    def shown(cell: Cell) -> float | None:
        return None if cell.ours is None else round(cell.ours, content.decimals)

    rows = [row for group in content.groups for row in group.rows]
    best: set[tuple[int, float | None]] = set()
    for place, kind in enumerate(column.best for column in columns if column.header):
        known = {ours for row in rows if (ours := shown(row.cells[place])) is not None}
        if kind and len(known) >= different:
            best.add((place, max(known) if kind == "highest" else min(known)))

    def marked(row: Row) -> Row:
        cells = enumerate(row.cells)
        return replace(
            row,
            cells=tuple(replace(cell, best=(place, shown(cell)) in best) for place, cell in cells),
        )

    groups = (replace(group, rows=tuple(map(marked, group.rows))) for group in content.groups)
    return replace(content, groups=tuple(groups))


def bounds(interval: Interval | None) -> dict[str, str]:
    """The columns `low` and `high` of a CSV for the interval of a fraction, in per cent."""
    return dict(zip(("low", "high"), percent_bounds(interval, 2) or ("", ""), strict=True))


def interval_text(value: float | None, interval: Interval | None, decimals: int) -> str:
    """A number in per cent with the interval of its fraction; empty without an interval."""
    shown = percent_bounds(interval, decimals)
    return f"{rounded(value, decimals)} [{', '.join(shown)}]" if shown else ""
