"""Export the scores of all runs as one tidy table for other benchmarks and meta-analyses."""

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
_NO_SCORES = {"conditions", "computed_from", "tuning"}
_BOUNDS = {"low", "high"}


class ExportedScore(NamedTuple):
    """A score of a metric file as a fraction, with the bounds of its 95% interval if known.

    `part` is the part of the data that the score covers, such as `overall` or `by_usage.literal`;
    an empty part also means all data.
    """

    part: str
    metric: str
    value: float
    low: float | None = None
    high: float | None = None


def scores_of(fields: Mapping[str, Any]) -> Iterator[ExportedScore]:
    """Yield the scores in the fields of a metric file; counts and unknown scores are omitted."""
    return _scores(fields, (), fields.get("intervals") or {})


def _scores(
    fields: Mapping[str, Any], place: tuple[str, ...], intervals: Mapping[str, Any]
) -> Iterator[ExportedScore]:
    if {*fields} >= {"value", *_BOUNDS}:
        if fields["value"] is not None:
            part = ".".join(place[:-1])
            yield ExportedScore(part, place[-1], fields["value"], fields["low"], fields["high"])
        return
    for name, value in fields.items():
        if isinstance(value, float):
            # `interval` belongs to the only score at its level.
            bounds = fields.get(f"{name}_interval") or fields.get("interval") or intervals.get(name)
            yield ExportedScore(".".join(place), name, value, **(bounds or {}))
        elif isinstance(value, dict) and name not in _NO_SCORES and {*value} != _BOUNDS:
            # `intervals` contains the intervals of the scores over all queries.
            yield from _scores(value, (*place, name), intervals if name == "overall" else {})


def write_export(
    path: str | Path,
    studies: Mapping[str, Sequence[str]],
    numbers: Iterable[Number],
    *,
    data: str,
    note: str,
) -> None:
    """Write one row per run and score as CSV; identical inputs produce a byte-identical file.

    Args:
        path: Output path, written atomically.
        studies: Metric files by study; files without a model are ignored.
        numbers: Numbers of the run, which provide the comparable printed ones.
        data: Data source: `sample`, `released` or `own`.
        note: Notice in all rows if the run uses the user's own or limited data, else empty. The
            column also states how the data and the settings of a run differ from the paper's.
    """
    compared = {
        (number.files[0], number.measure): number
        for number in numbers
        if number.verdict in COMPARED and len(number.files) == 1 and not number.scope
    }
    rows = []
    for study, files in studies.items():
        for metric in map(load_metric_file, files):
            fields = metric.fields
            if "model" not in fields:
                continue
            deviations = fields["conditions"]["deviations"]
            run = {name: fields.get(name, "") for name in ("model", "language", "composition")}
            run |= {
                "study": study,
                "setting": fields.get("setting", fields.get("query_mode", "")),
                "seed": fields.get("seed", ""),
                "data": data,
                "note": "; ".join(filter(None, [note, fields.get("data_note"), *deviations])),
                "conditions": metric.conditions_digest,
                "metrics": metric.path,
            }
            for score in scores_of(fields):
                printed = None
                if score.part in ("", "overall"):
                    printed = _printed(score, compared.get((metric.path, score.metric)))
                rows.append({**run, **score._asdict(), "printed": printed})
    write_csv(path, EXPORT_COLUMNS, rows)


def _printed(score: ExportedScore, number: Number | None) -> float | None:
    """Return the printed number in the unit of the score; None if it was not compared."""
    if number is None or number.printed is None:
        return None
    return round(number.printed / (100 if number.unit == "%" else 1), 12)
