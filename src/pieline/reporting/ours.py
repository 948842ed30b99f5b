"""Our rows of the frame of numbers: values that measures read from metric files."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, TypeVar

import pandas as pd

from pieline.core.measures import Measure
from pieline.reporting.inputs import DisplayInputs

R = TypeVar("R")

KEYS = (
    "study", "model", "train_mode", "loss", "setting", "query_mode", "language",
    "composition", "scope", "against", "seed", "measure",
)  # fmt: skip
"""Columns that identify a number; a column that does not apply is empty."""
OURS = (
    "ours", "low", "high", "deviation", "p_value", "p_holm", "unit", "decimals", "better",
    "seeds", "files", "ranges", "tolerance", "unknown", "obstacles", "not_run",
    "released_obstacles", "released_note",
)  # fmt: skip
"""Other columns of our rows. Five of the columns state reasons:

- `obstacles`: why the number cannot be compared with the printed number,
- `released_obstacles`: why the number cannot be compared with the score of the authors' run,
- `released_note`: why the number may differ from the score of the authors' run,
- `unknown`: why the metric record does not contain the number,
- `not_run`: why there is no metric record.
"""
DEVIATION = "_std"
"""Suffix of the name of a measure that is a standard deviation over seeds."""


@dataclass
class OurNumbers:
    """Collects rows of the frame of numbers that contain our values.

    Attributes:
        study: Name of the study.
        rows: Rows collected so far.
    """

    study: str
    rows: list[dict[str, Any]] = field(default_factory=list)

    def add(
        self,
        keys: Mapping[str, str],
        measures: Iterable[Measure[R]],
        record: R | None,
        *,
        files: Sequence[str] = (),
        obstacles: Sequence[str] = (),
        not_run: str = "",
        **columns: Any,
    ) -> None:
        """Add one row per measure, with the measure's value in a metric record.

        Args:
            keys: Values of `KEYS` that are not empty.
            measures: Measures to read from the record.
            record: Metric record; None if there is no record, as `not_run` explains.
            files: Metric files that contain the record.
            obstacles: Reasons why the numbers cannot be compared with printed numbers.
            not_run: Why there is no record; empty if there is a record.
            columns: Values of other columns in `OURS`, by column.
        """
        shared = {
            **dict.fromkeys(KEYS, ""),
            "study": self.study,
            **keys,
            "seeds": keys.get("seed", ""),
            "files": tuple(files),
            "obstacles": tuple(dict.fromkeys(obstacles)),
            "not_run": not_run,
            **columns,
        }
        self.rows += [{**shared, **measure.row(record)} for measure in measures]

    def frame(self) -> pd.DataFrame:
        """Return the collected rows as a frame with the columns `KEYS` and `OURS`."""
        return pd.DataFrame(self.rows, columns=[*KEYS, *OURS]).astype(
            {"ours": float, "low": float, "high": float, "deviation": float}
        )


def of_runs(
    inputs: DisplayInputs,
    records: Iterable[tuple[R, str]],
    measures: Sequence[Measure[R]],
    keys: Callable[[R], Mapping[str, str]],
    obstacles: Callable[[R], Sequence[str]],
    **columns: Callable[[R], Any],
) -> pd.DataFrame:
    """Return one row per run and measure; impossible runs have rows without values.

    Args:
        inputs: Inputs of the display, which contain all runs.
        records: Metric records, each with the path of its file.
        measures: Measures to read from each record.
        keys: Function from a record to the values of `KEYS` that identify its run.
        obstacles: Function from a record to the reasons why its numbers cannot be compared with
            printed numbers.
        columns: Functions from a record to the value of another column in `OURS`, by column.
    """
    numbers = OurNumbers(inputs.study)
    for record, path in records:
        numbers.add(
            keys(record),
            measures,
            record,
            files=[path],
            obstacles=obstacles(record),
            **{name: value_of(record) for name, value_of in columns.items()},
        )
    # A run of which every seed is impossible has one row, with an empty seed.
    keys_of_possible_runs = [{**run.keys, "seed": ""} for run in inputs.runs if not run.not_run]
    keys_of_added_rows: list[Mapping[str, str]] = []
    for run in inputs.left_out():
        keys_without_seed = {**run.keys, "seed": ""}
        has_other_seeds = keys_without_seed in keys_of_possible_runs
        keys_of_row = run.keys if has_other_seeds else keys_without_seed
        if keys_of_row not in keys_of_added_rows:
            keys_of_added_rows.append(keys_of_row)
            numbers.add(keys_of_row, measures, None, not_run=run.not_run)
    return numbers.frame()


def over_seeds(ours: pd.DataFrame) -> pd.DataFrame:
    """Return a row for the mean of each number over seeds, and a row for the deviation (ddof 1).

    A mean is unknown if the value of any seed with a metric record is unknown. If no seed has a
    metric record, the rows state why the first run has none.

    Args:
        ours: Our rows of the frame of numbers, one per number and seed.
    """
    keys_without_seed = [key for key in KEYS if key != "seed"]
    has_record = ours["not_run"] == ""
    records_first = pd.concat([ours[has_record], ours[~has_record]])
    rows: list[dict[str, Any]] = []
    for _, all_seeds in records_first.groupby(keys_without_seed, sort=False):
        seeds_with_record = all_seeds[all_seeds["not_run"] == ""]
        seeds = all_seeds.head(1) if seeds_with_record.empty else seeds_with_record
        is_known = seeds["ours"].notna().all()
        mean: dict[str, Any] = {
            **{str(column): value for column, value in seeds.iloc[0].items()},
            "seed": "",
            "low": None,
            "high": None,
            "ours": seeds["ours"].mean(skipna=False),
            "deviation": seeds["ours"].std() if is_known else None,
            "seeds": " ".join(sorted(seeds_with_record["seed"], key=int)),
            "files": join_without_duplicates(seeds["files"]),
            "obstacles": join_without_duplicates(seeds["obstacles"]),
            # The reason of a known value is empty, so any other reason comes later in the alphabet.
            "unknown": max(seeds["unknown"]),
        }
        deviation = {
            **mean,
            "measure": f"{mean['measure']}{DEVIATION}",
            "ours": mean["deviation"],
            "unknown": "",
        }
        rows += [mean, deviation]
    return pd.DataFrame(rows, columns=ours.columns)


def join_without_duplicates(lists: Iterable[Collection[str]]) -> Any:
    """Return a tuple with each element of the lists once; typed as Any for pandas' `agg`."""
    return tuple(dict.fromkeys(chain.from_iterable(lists)))
