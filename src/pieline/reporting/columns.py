"""Table columns, and cells that compare our numbers with the printed ones."""

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
"""The numbers of published/text_numbers.csv by id, as returned by `read_published`."""


@dataclass(frozen=True)
class Source(Generic[R]):
    """Our records and the printed row behind the numbers of a table row.

    Attributes:
        key: Values that identify the row, by CSV column.
        records: Our records, one per seed; empty if nothing was run.
        files: Metric files of the records.
        printed: The paper's numbers.
        obstacles: Reasons why our numbers are not comparable with the printed ones, most important
            first.
        not_run: Reason why there are no records; empty if there are any.
        seeds: Seeds behind printed means; None if the printed numbers are not means over seeds.
        ranges: Sampling ranges (see `Comparison`) of printed numbers that are not means over seeds.
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
        name: Column in published/*.csv; the column of its deviations has the suffix `_std`. The
            name without `_pct` is the metric's name in our CSV.
        header: Header in the table; a column without a header is only in the CSV.
        value: Function that returns our number for a record, in the printed unit; None if unknown.
        latex: LaTeX source of the header, if different.
        decimals: Decimals of the printed numbers, if different from the table's.
        best: Which number `mark_best` marks; empty for none.
        unknown: Reason why the value of a record can be unknown.
        tolerance: Function that returns the largest difference from the printed number that counts
            as reproduced.
        details: Function that returns additional CSV columns and their values.
        text: Function that returns a text to show instead of our number; empty for the number.
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
    inputs: DisplayInputs,
    record: type[M],
    keys: Sequence[str],
    obstacles: Callable[..., Sequence[str]],
    *,
    order: Callable[[M], int] = lambda _: 0,
) -> dict[tuple[str, ...], Source[M]]:
    """Group our records into sources, by the values of `keys`.

    Args:
        inputs: Inputs with the metric files.
        record: Class of the records in the metric files.
        keys: Fields of a record that identify its source.
        obstacles: Function that returns why the records of a source are not comparable with
            printed numbers.
        order: Sort key of the records; by default, they keep the order of the files.
    """
    groups: dict[tuple[str, ...], list[tuple[M, str]]] = defaultdict(list)
    pairs = zip(load_records(inputs.metrics, record), inputs.metrics, strict=True)
    for item, path in sorted(pairs, key=lambda pair: order(pair[0])):
        groups[tuple(str(getattr(item, key)) for key in keys)].append((item, path))
    return {
        values: Source(
            key=dict(zip(keys, values, strict=True)),
            records=(records := [item for item, _ in members]),
            files=tuple(path for _, path in members),
            obstacles=obstacles(*records),
        )
        for values, members in groups.items()
    }


def records_of(sources_by_key: Mapping[K, Source[R]]) -> list[R]:
    """Return the records of all sources."""
    return [record for source in sources_by_key.values() for record in source.records]


def headers(labels: Iterable[str], columns: Iterable[Column[R]] = ()) -> tuple[Head, ...]:
    """Return a header row: the headers of the label columns, then those of `columns`."""
    shown = (Head(column.header, latex=column.latex) for column in columns if column.header)
    return (*map(Head, labels), *shown)


def over_seeds(records: Sequence[R], value: Callable[[R], float | None]) -> Spread | None:
    """Return the mean and deviation over records; None if there are none or a value is unknown."""
    known = [number for item in records if (number := value(item)) is not None]
    return spread(known) if known and len(known) == len(records) else None


def cell(column: Column[R], source: Source[R] | None) -> Cell:
    """Return a cell that compares our number (mean and deviation over seeds) with the printed one.

    If the value of any record is unknown, so is our number. Without a source, the cell shows a
    dash.
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
    """Return the cell of the number with id `<study>.<column name>` in the paper's text."""
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
    """Return a table row from its columns and their sources.

    Args:
        labels: Labels of the row.
        columns: Columns with their sources. Columns without a header, which are only in the CSV,
            are omitted if nothing was run.
        reason: Reason why nothing was run for this row; empty otherwise.
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
    inputs: DisplayInputs, record: type[N], columns: Sequence[Column[N]], *, caption: str
) -> TableContent:
    """Return a table that compares each model with the printed row in `inputs.files["published"]`.

    Records (field `model`) and printed rows both use the model names of models.yaml. Models that
    were not run get a row with the reason. Unless `inputs.rows` is "run", so do models that only
    the paper has.
    """
    printed = read_published(inputs.files["published"], ["model"])
    ours = sources(inputs, record, ["model"], lambda item: item.conditions.deviations)
    configured = {model.name for model in inputs.models}
    rows = []
    for model in inputs.row_models():
        name = model.name
        if inputs.rows == "paper" and name not in configured and (name,) not in printed:
            continue
        reason = "" if (name,) in ours else inputs.why_not(name)
        own = ours.get((name,), Source({"model": name}, not_run=reason))
        source = replace(own, printed=printed.get((name,), {}))
        rows.append(row((model.label,), [(column, source) for column in columns], reason=reason))
    return TableContent(
        heads=(headers(["Model"], columns),),
        groups=(Group(tuple(rows)),),
        caption=caption,
        notes=inputs.notes,
        wide=False,
    )


def mark_best(
    content: TableContent, columns: Sequence[Column[R]], *, different: int = 1
) -> TableContent:
    """Return the table with the best displayed number of each column marked (see `Column.best`).

    Args:
        content: The table.
        columns: Columns of the table's cells.
        different: Minimum number of distinct values in a column; columns with fewer are unmarked.
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
    """Return the CSV columns `low` and `high`: the bounds of a fraction's interval, in percent.

    Without an interval, both values are empty.
    """
    return dict(zip(("low", "high"), percent_bounds(interval, 2) or ("", ""), strict=True))


def interval_text(value: float | None, interval: Interval | None, decimals: int) -> str:
    """Format a number in percent with the interval of its fraction; empty without an interval."""
    shown = percent_bounds(interval, decimals)
    return f"{rounded(value, decimals)} [{', '.join(shown)}]" if shown else ""
