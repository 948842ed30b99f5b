"""Our half of the frame of numbers: the rows that measures give for metric records."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pandas as pd

from pieline.core.measures import Measure
from pieline.reporting.inputs import DisplayInputs

R = TypeVar("R")

KEYS = (
    "study", "model", "train_mode", "loss", "setting", "query_mode", "language",
    "composition", "scope", "against", "seed", "measure",
)  # fmt: skip
"""Columns that identify a number; one that does not apply is empty."""
OURS = (
    "ours", "low", "high", "deviation", "p_value", "p_holm", "unit", "decimals", "better",
    "seeds", "files", "ranges", "tolerance", "unknown", "obstacles", "not_run",
    "released_obstacles", "released_note",
)  # fmt: skip
"""Other columns of our rows. `obstacles` are the reasons why a number is not comparable with the
paper's, `released_obstacles` why it is not comparable with that of the authors' run, and
`released_note` why it may differ from the latter. `unknown` is the reason why a record lacks the
number, and `not_run` why there is no record."""
DEVIATION = "_std"
"""Ending of the measure of a deviation over seeds."""


@dataclass
class OurNumbers:
    """Rows of ours while they are collected.

    Attributes:
        study: Name of the study.
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
        """Add a row per measure of a record, or of a run that has none (`not_run` says why)."""
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
        """Return the rows as a frame with the columns `KEYS` and `OURS`."""
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
    """Return a row per run and measure, including configured runs without records.

    Args:
        inputs: Inputs with the plan's runs.
        records: Metric records with their paths.
        measures: Measures of a record.
        keys: Function from a record to the values of `KEYS` that identify its run.
        obstacles: Function from a record to the reasons why it is not comparable.
        columns: Functions from a record to the values of other columns, by name.
    """
    numbers = OurNumbers(inputs.study)
    for record, path in records:
        more = {name: value(record) for name, value in columns.items()}
        numbers.add(
            keys(record), measures, record, files=[path], obstacles=obstacles(record), **more
        )
    # If no seed of a run can be made, the run has one row without a seed.
    made = [{**run.keys, "seed": ""} for run in inputs.runs if not run.not_run]
    added: list[Mapping[str, str]] = []
    for run in inputs.left_out():
        seedless = {**run.keys, "seed": ""}
        missing = run.keys if seedless in made else seedless
        if missing not in added:
            added.append(missing)
            numbers.add(missing, measures, None, not_run=run.not_run)
    return numbers.frame()


def over_seeds(ours: pd.DataFrame) -> pd.DataFrame:
    """Return means over seeds, each followed by its deviation (ddof 1) as a measure of its own.

    A mean is unknown if the value of any seed is unknown. A run without a record has a row only if
    no seed has a record.
    """
    by = [key for key in KEYS if key != "seed"]
    made = ours["not_run"] == ""
    rows: list[dict[str, Any]] = []
    for values, seeds in pd.concat([ours[made], ours[~made]]).groupby(by, sort=False):
        known = seeds[seeds["not_run"] == ""]
        group = known if len(known) else seeds.head(1)
        first = {str(name): value for name, value in group.iloc[0].items()}
        deviation = group["ours"].std() if group["ours"].notna().all() else None
        shared: dict[str, Any] = {
            **first,
            "seed": "",
            "low": None,
            "high": None,
            "ours": group["ours"].mean(skipna=False),
            "deviation": deviation,
            "seeds": " ".join(sorted(known["seed"], key=int)),
            "files": _joined(group["files"]),
            "obstacles": _joined(group["obstacles"]),
            "unknown": max(group["unknown"]),
        }
        rows.append(shared)
        name = f"{dict(zip(by, values, strict=True))['measure']}{DEVIATION}"
        rows.append({**shared, "measure": name, "ours": deviation, "unknown": ""})
    return pd.DataFrame(rows, columns=ours.columns)


def _joined(lists: Iterable[Collection[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for each in lists for text in each))
