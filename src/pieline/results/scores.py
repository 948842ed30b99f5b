"""Format the scores that a finished run prints, with the best printed scores beside them."""

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
"""Suffix of the name of a measure that is a difference between two models."""
_INTERVAL = "95%"
_WIDEST = 1000
"""Width in characters at which no line of a table is wrapped."""


@dataclass
class _Row:
    """A row of a table.

    Attributes:
        model: Name of the model in models.yaml.
        numbers: Numbers of the model by measure.
        differences: Differences between the model and the first reference model, by measure.
    """

    model: str
    numbers: dict[str, Number] = field(default_factory=dict)
    differences: dict[str, Number] = field(default_factory=dict)


_Rows = dict[tuple[str, str], _Row]
"""Rows by group (a query mode or language, in words) and label of the row."""


def describe_scores(results: RunResults, numbers: Sequence[Number], width: int) -> str:
    """Return the main scores of a run's models as aligned tables, one per study.

    Each query mode or language lists the user's own models, the study's reference models, the
    paper's other models, and the row with the best printed score.

    Args:
        results: Studies of the run, and labels of its models.
        numbers: All numbers of the run.
        width: Width of the terminal in characters. If a table with all measures is wider, each
            measure has a table of its own.
    """
    tables = []
    for study in results.studies:
        rows = _rows_of_study(results, study, numbers)
        if not any(_has_score(row) for row in rows.values()):
            continue
        table = _format_table(results, study, rows, study.main_measures)
        if max(map(len, table.splitlines())) <= width:
            tables.append(table)
        else:
            tables += [
                _format_table(results, study, rows, [measure]) for measure in study.main_measures
            ]
    return "\n".join(tables)


def _has_score(row: _Row) -> bool:
    """Return whether a row contains a score that this run computed."""
    return any(number.shown for number in row.numbers.values())


def _rows_of_study(results: RunResults, study: ShownStudy, numbers: Sequence[Number]) -> _Rows:
    """Return the rows of a study's main tables, including rows that have only printed numbers."""
    main_numbers = [
        number
        for number in numbers
        if set(study.main_tables) & set(number.tables) and number.measure in study.main_measures
    ]
    if results.data == "sample":
        # The printed numbers were computed on other data.
        main_numbers = [replace(number, printed=None) for number in main_numbers]
    has_several_seeds = len({number.seed for number in main_numbers if number.shown}) > 1
    rows: _Rows = {}
    for number in main_numbers:
        key = _group_and_label(number, results.labels, names_seed=has_several_seeds)
        row = rows.setdefault(key, _Row(number.model))
        row.numbers[number.measure] = number
    for number in numbers:
        if number.scope:
            continue
        key = _group_and_label(number, results.labels, names_seed=has_several_seeds)
        if key in rows:
            if number.against in study.reference_models[:1]:
                rows[key].differences[number.measure.removesuffix(_DIFFERENCE)] = number
            elif not number.against:
                _add_interval(rows[key], number)
    return rows


def _group_and_label(
    number: Number, labels: Mapping[str, str], *, names_seed: bool
) -> tuple[str, str]:
    """Return the group of a number's row, and the label of the row.

    Args:
        number: The number.
        labels: Label of each model.
        names_seed: Whether the label contains the seed.
    """
    # Empty fields do not appear in the words.
    run = replace(number, setting="", seed="", scope="")
    model = replace(
        number,
        seed=number.seed if names_seed else "",
        scope="",
        what="",
        measure="",
        query_mode="",
        language="",
    )
    loss = f" ({number.loss} loss)" if number.loss else ""
    return run_in_words(run), f"{in_words(model, labels)}{loss}"


def _add_interval(row: _Row, number: Number) -> None:
    """Add the interval of a seed's number to the row's mean if the mean has only this seed."""
    mean = row.numbers.get(number.measure)
    if mean is None or mean.low is not None:
        return
    is_only_seed = number.seed == mean.seeds
    if is_only_seed:
        row.numbers[number.measure] = replace(mean, low=number.low, high=number.high)


def _format_table(
    results: RunResults, study: ShownStudy, rows: _Rows, measures: Sequence[str]
) -> str:
    """Format the table of a study's measures as text; columns without any value are omitted."""
    labeled_rows = _order_rows(rows, measures[0], (*results.others, *study.reference_models))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
    table.add_column(study.paper, no_wrap=True)
    reference_label = ""
    if study.reference_models:
        reference_label = results.labels.get(study.reference_models[0], "")
    cell_functions: list[Callable[[_Row], str]] = []
    for measure in measures:
        unit = _unit_of(measure, rows)
        for header, format_cell in _columns(measure, unit, reference_label):
            if any(row and format_cell(row) for _, row in labeled_rows):
                justify: Literal["left", "right"] = "left" if header == _INTERVAL else "right"
                table.add_column(header, justify=justify, no_wrap=True)
                cell_functions.append(format_cell)
    for label, row in labeled_rows:
        cells = [format_cell(row) if row else "" for format_cell in cell_functions]
        table.add_row(label, *cells)
    buffer = StringIO()
    Console(file=buffer, width=_WIDEST).print(table)
    return "".join(f"{line.rstrip()}\n" for line in buffer.getvalue().splitlines())


def _order_rows(
    rows: _Rows, measure: str, first_models: Sequence[str]
) -> list[tuple[str, _Row | None]]:
    """Return the lines of a table: per group, a title, rows with scores, and the best printed rows.

    Args:
        rows: Rows by group and label.
        measure: Measure that decides which printed row is the best.
        first_models: Names of the models whose rows come first.

    Returns:
        The label and the row of each line; for a title, the row is None.
    """

    def place_of_model(labeled_row: tuple[str, _Row]) -> int:
        """Return the place of the row's model in `first_models`; other models come last."""
        _, row = labeled_row
        return first_models.index(row.model) if row.model in first_models else len(first_models)

    lines: list[tuple[str, _Row | None]] = []
    for group in dict.fromkeys(group for group, _ in rows):
        rows_of_group = {
            label: row for (group_of_row, label), row in rows.items() if group_of_row == group
        }
        scored = [(label, row) for label, row in rows_of_group.items() if _has_score(row)]
        scored.sort(key=place_of_model)
        lines.append((group or "all", None))
        lines += [(f"  {label}", row) for label, row in scored]
        # Fine-tuned models and other models are compared with different printed rows.
        for is_tuned in sorted({_is_tuned(row) for _, row in scored}):
            comparable_rows = {
                label: row for label, row in rows_of_group.items() if _is_tuned(row) == is_tuned
            }
            lines += _best_printed(comparable_rows, measure)
    return lines


def _unit_of(measure: str, rows: _Rows) -> str:
    """Return the unit of a measure; empty if no number of the measure in the rows has a unit."""
    for row in rows.values():
        number = row.numbers.get(measure)
        if number and number.unit:
            return number.unit
    return ""


def _is_tuned(row: _Row) -> bool:
    return any(number.train_mode for number in row.numbers.values())


def _columns(
    measure: str, unit: str, reference_label: str
) -> list[tuple[str, Callable[[_Row], str]]]:
    """Return the header of each column of a measure, and the function that formats a row's cell.

    Args:
        measure: Name of the measure.
        unit: Unit of the measure; empty for no unit.
        reference_label: Label of the model with which other models are compared.
    """
    return [
        (f"{word(measure)}, {unit}" if unit else word(measure), partial(_score, measure)),
        (_INTERVAL, partial(_score_interval, measure)),
        (f"to {reference_label}", partial(_difference, measure)),
        (_INTERVAL, partial(_difference_interval, measure)),
        ("printed", partial(_printed, measure)),
        ("ours - printed", partial(_difference_to_printed, measure)),
    ]


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
    """Format a difference between values of a number, with a sign and the number's decimals."""
    text = rounded(value, number.decimals)
    is_positive = bool(text) and float(text) > 0
    return f"+{text}" if is_positive else text


def _interval(number: Number | None) -> str:
    if number is None or number.low is None or number.high is None:
        return ""
    decimals = max(number.decimals - 1, 0)  # bounds are less certain than the number
    return f"[{rounded(number.low, decimals)}, {rounded(number.high, decimals)}]"


def _best_printed(rows: Mapping[str, _Row], measure: str) -> list[tuple[str, _Row]]:
    """Return the label and the row with the best printed number, as a list of one pair.

    The row contains no numbers of ours. If no number of the measure is printed, the list is empty.

    Args:
        rows: Rows by label.
        measure: Measure whose printed numbers are compared.
    """
    number_by_label = {
        label: row.numbers[measure] for label, row in rows.items() if measure in row.numbers
    }
    printed = {
        label: number.printed
        for label, number in number_by_label.items()
        if number.printed is not None
    }
    if not printed:
        return []
    is_low_better = any(number.better == "low" for number in number_by_label.values())
    choose_best = min if is_low_better else max
    best_label = choose_best(printed, key=lambda label: printed[label])
    best_row = rows[best_label]
    printed_numbers = {
        name: replace(number, ours=None, low=None, high=None, verdict=NOT_RUN)
        for name, number in best_row.numbers.items()
    }
    return [(f"  best printed: {best_label}", _Row(best_row.model, printed_numbers))]
