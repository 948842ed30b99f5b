"""The tables with which a run ends in the terminal: its models beside the reference rows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from io import StringIO
from typing import Literal

from rich.console import Console
from rich.table import Table

from pieline.reporting.numbers import COMPARED, NOT_RUN, Number
from pieline.reporting.printed import rounded
from pieline.results.numbers import in_words, run_in_words, word
from pieline.results.run_results import RunResults, ShownStudy

_DIFFERENCE = "_difference"
"""Ending of the measure of a difference between two models."""
_INTERVAL = "95%"
_WIDEST = 1000
"""Width at which no table is folded."""


@dataclass
class _Row:
    """A row: the model, its numbers by measure, and their differences to the reference model."""

    model: str
    numbers: dict[str, Number] = field(default_factory=dict)
    differences: dict[str, Number] = field(default_factory=dict)


_Rows = dict[tuple[str, str], _Row]
"""Rows by group and label; a group is a query mode or a language, in words."""


def describe_scores(results: RunResults, numbers: Sequence[Number], width: int) -> str:
    """Return the main scores of a run's models as aligned tables, one per study.

    In each query mode or language, the models that are not in the paper come first, then the
    study's reference models, then the others, and last the best printed row.

    Args:
        results: What the run shows.
        numbers: All numbers of the run.
        width: Width of the terminal. If the measures do not fit side by side, each has a table.
    """
    texts = []
    for study in results.studies:
        rows = _rows(results, study, numbers)
        if not any(number.shown for row in rows.values() for number in row.numbers.values()):
            continue
        first = (*results.others, *study.reference_models)
        text = _table(results, study, rows, study.main_measures, first)
        if max(map(len, text.splitlines())) > width:
            tables = [_table(results, study, rows, [name], first) for name in study.main_measures]
            text = "\n".join(tables)
        texts.append(text)
    return "\n".join(texts)


def _rows(results: RunResults, study: ShownStudy, numbers: Sequence[Number]) -> _Rows:
    """Return the rows of a study's main tables, and the printed rows that the run lacks."""
    is_sample = results.data == "sample"  # not what the papers' numbers were computed on
    main = [
        replace(number, printed=None) if is_sample else number
        for number in numbers
        if {*study.main_tables} & {*number.tables} and number.measure in study.main_measures
    ]
    has_seeds = len({number.seed for number in main if number.shown}) > 1

    def key(number: Number) -> tuple[str, str]:
        run = replace(number, setting="", seed="", scope="")
        seed = number.seed if has_seeds else ""
        model = replace(run, setting=number.setting, seed=seed, what="", measure="")
        model = replace(model, query_mode="", language="")
        loss = f" ({number.loss} loss)" if number.loss else ""
        return run_in_words(run), f"{in_words(model, results.labels)}{loss}"

    rows: _Rows = {}
    for number in main:
        rows.setdefault(key(number), _Row(number.model)).numbers[number.measure] = number
    for number in numbers:
        row = None if number.scope else rows.get(key(number))
        if row and number.against in study.reference_models[:1]:
            row.differences[number.measure.removesuffix(_DIFFERENCE)] = number
        # A mean over one seed has the interval of this seed.
        same = row and row.numbers.get(number.measure)
        if row and same and same.low is None and number.seed == same.seeds and not number.against:
            row.numbers[number.measure] = replace(same, low=number.low, high=number.high)
    return rows


def _table(
    results: RunResults,
    study: ShownStudy,
    rows: _Rows,
    measures: Sequence[str],
    first: Sequence[str],
) -> str:
    """Return the table of some measures; a column without any value is left out."""
    lines: list[tuple[str, _Row | None]] = []
    for group in dict.fromkeys(group for group, _ in rows):
        of_group = {label: row for (name, label), row in rows.items() if name == group}
        run = [each for each in of_group.items() if any(n.shown for n in each[1].numbers.values())]
        run.sort(key=lambda each: [*first, each[1].model].index(each[1].model))
        lines += [(group or "all", None), *((f"  {label}", row) for label, row in run)]
        for is_tuned in sorted({_is_tuned(row) for _, row in run}):
            same = {label: row for label, row in of_group.items() if _is_tuned(row) == is_tuned}
            lines += _best_printed(same, measures[0])
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
    table.add_column(study.paper, no_wrap=True)
    columns: list[Callable[[_Row], str]] = []
    reference = results.labels.get(next(iter(study.reference_models), ""), "")
    every = [number for row in rows.values() for number in row.numbers.values()]
    units = {number.measure: number.unit for number in every if number.unit}
    for measure in measures:
        for header, text in _columns(measure, units.get(measure, ""), reference).items():
            if any(row and text(row) for _, row in lines):
                justify: Literal["left", "right"] = (
                    "left" if header.strip() == _INTERVAL else "right"
                )
                table.add_column(header, justify=justify, no_wrap=True)
                columns.append(text)
    for label, row in lines:
        table.add_row(label, *(text(row) if row else "" for text in columns))
    console = Console(file=(buffer := StringIO()), width=_WIDEST)
    console.print(table)
    return "".join(f"{line.rstrip()}\n" for line in buffer.getvalue().splitlines())


def _is_tuned(row: _Row) -> bool:
    return any(number.train_mode for number in row.numbers.values())


def _columns(measure: str, unit: str, reference: str) -> dict[str, Callable[[_Row], str]]:
    """Return the texts of the columns of a measure by header."""
    return {
        ", ".join(filter(None, (word(measure), unit))): partial(_score, measure),
        _INTERVAL: partial(_score_interval, measure),
        f"to {reference}": partial(_difference, measure),
        f"{_INTERVAL} ": partial(_difference_interval, measure),
        "printed": partial(_printed, measure),
        "ours - printed": partial(_difference_to_printed, measure),
    }


def _score(measure: str, row: _Row) -> str:
    number = row.numbers.get(measure)
    return number.shown if number else ""


def _score_interval(measure: str, row: _Row) -> str:
    return _interval(row.numbers.get(measure))


def _difference(measure: str, row: _Row) -> str:
    number = row.differences.get(measure)
    return _signed(number.ours, number) if number else ""


def _difference_interval(measure: str, row: _Row) -> str:
    return _interval(row.differences.get(measure))


def _printed(measure: str, row: _Row) -> str:
    number = row.numbers.get(measure)
    return rounded(number.printed, number.decimals) if number else ""


def _difference_to_printed(measure: str, row: _Row) -> str:
    number = row.numbers.get(measure)
    return _signed(number.difference, number) if number and number.verdict in COMPARED else ""


def _signed(value: float | None, number: Number) -> str:
    text = rounded(value, number.decimals)
    return f"+{text}" if value and value > 0 and float(text) else text


def _interval(number: Number | None) -> str:
    if number is None or number.low is None or number.high is None:
        return ""
    decimals = max(number.decimals - 1, 0)
    return f"[{rounded(number.low, decimals)}, {rounded(number.high, decimals)}]"


def _best_printed(rows: Mapping[str, _Row], measure: str) -> list[tuple[str, _Row]]:
    """Return the row with the best printed number of a measure, without our numbers."""
    numbers = {label: row.numbers[measure] for label, row in rows.items() if measure in row.numbers}
    printed = {label: one.printed for label, one in numbers.items() if one.printed is not None}
    if not printed:
        return []
    is_low = any(number.better == "low" for number in numbers.values())
    best = (min if is_low else max)(printed, key=lambda label: printed[label])
    theirs = {
        name: replace(number, ours=None, low=None, high=None, verdict=NOT_RUN)
        for name, number in rows[best].numbers.items()
    }
    return [(f"  best printed: {best}", _Row(rows[best].model, theirs))]
