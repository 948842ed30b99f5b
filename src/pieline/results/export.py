"""Export the scores of all runs as one table, for other benchmarks and meta-analyses."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pieline.core.tables import write_csv
from pieline.reporting.evidence import load_metric_file
from pieline.reporting.numbers import COMPARED, Number

EXPORT_COLUMNS = (
    "study", "model", "setting", "language", "composition", "seed", "part", "metric",
    "value", "low", "high", "printed", "data", "note", "conditions", "metrics",
)  # fmt: skip
_FIELDS_WITHOUT_SCORES = {"conditions", "computed_from", "tuning"}
_BOUNDS = {"low", "high"}
"""Names of the fields that contain the bounds of an interval."""


class ExportedScore(NamedTuple):
    """A score in a metric file.

    Attributes:
        part: Part of the data, such as `by_usage.literal`; `overall` or empty for all data.
        metric: Name of the metric.
        value: The score as a fraction.
        low, high: Bounds of the score's 95% interval; None if unknown.
    """

    part: str
    metric: str
    value: float
    low: float | None = None
    high: float | None = None


def scores_of(fields: Mapping[str, Any]) -> Iterator[ExportedScore]:
    """Yield the scores in the fields of a metric file; counts and unknown scores are omitted."""
    return _scores_in(fields, (), fields.get("intervals") or {})


def _scores_in(
    fields: Mapping[str, Any], path: tuple[str, ...], intervals: Mapping[str, Any]
) -> Iterator[ExportedScore]:
    """Yield the scores in a part of a metric file.

    Args:
        fields: Fields of the part.
        path: Names of the fields that contain the part, outermost first.
        intervals: Bounds of the scores directly in `fields`, by name of the score.
    """
    is_score_with_interval = fields.keys() >= {"value", *_BOUNDS}
    if is_score_with_interval:
        if fields["value"] is not None:
            *names_of_part, metric = path
            part = ".".join(names_of_part)
            yield ExportedScore(part, metric, fields["value"], fields["low"], fields["high"])
        return
    for name, value in fields.items():
        if isinstance(value, float):
            # The field `interval` belongs to the only score beside it.
            bounds = fields.get(f"{name}_interval") or fields.get("interval") or intervals.get(name)
            yield ExportedScore(".".join(path), name, value, **(bounds or {}))
        elif isinstance(value, dict) and name not in _FIELDS_WITHOUT_SCORES:
            is_interval = value.keys() == _BOUNDS
            if not is_interval:
                # The field `intervals` contains the intervals of the scores in `overall`.
                inner_intervals = intervals if name == "overall" else {}
                yield from _scores_in(value, (*path, name), inner_intervals)


def write_export(
    path: str | Path,
    studies: Mapping[str, Sequence[str]],
    numbers: Iterable[Number],
    *,
    data: str,
    note: str,
) -> None:
    """Write one row per run and score as CSV; identical inputs produce a byte-identical file.

    The column `note` contains the argument `note`, followed by sentences on how the data and
    settings of the row's run differ from the paper's.

    Args:
        path: Path of the CSV file, which is written atomically.
        studies: Paths of the metric files, by name of the study; files without a model are ignored.
        numbers: Numbers of the run, from which the printed numbers are taken.
        data: Data source: `sample`, `released` or `own`.
        note: Notice that the run uses limited data or the user's own data; otherwise empty.
    """
    compared_numbers: dict[tuple[str, str], Number] = {}
    for number in numbers:
        is_of_one_run = len(number.files) == 1 and not number.scope
        if number.verdict in COMPARED and is_of_one_run:
            compared_numbers[number.files[0], number.measure] = number
    rows = []
    for study, files in studies.items():
        for file in files:
            metric_file = load_metric_file(file)
            fields = metric_file.fields
            if "model" not in fields:
                continue
            deviations = fields["conditions"]["deviations"]
            columns_of_run = {
                "study": study,
                "model": fields["model"],
                "language": fields.get("language", ""),
                "composition": fields.get("composition", ""),
                "setting": fields.get("setting", fields.get("query_mode", "")),
                "seed": fields.get("seed", ""),
                "data": data,
                "note": "; ".join(filter(None, [note, fields.get("data_note"), *deviations])),
                "conditions": metric_file.conditions_digest,
                "metrics": metric_file.path,
            }
            for score in scores_of(fields):
                printed = None
                covers_all_data = score.part in ("", "overall")
                if covers_all_data:
                    compared = compared_numbers.get((metric_file.path, score.metric))
                    printed = _printed_as_fraction(compared)
                rows.append({**columns_of_run, **score._asdict(), "printed": printed})
    write_csv(path, EXPORT_COLUMNS, rows)


def _printed_as_fraction(number: Number | None) -> float | None:
    """Return the printed value of a number, with percent converted to a fraction.

    The result is None if there is no number or if the papers print no value of the number.
    """
    if number is None or number.printed is None:
        return None
    value = number.printed / 100 if number.unit == "%" else number.printed
    # The quotient may differ from the decimal fraction in its last digits.
    return round(value, 12)
