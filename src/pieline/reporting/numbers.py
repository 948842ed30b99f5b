"""Join our numbers with the printed numbers, and decide the verdicts.

The result is the frame of numbers: a pandas table with one row per number. The columns are the
fields of `Number`, which docs/items.md describes.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pandas as pd

from pieline.core.files import atomic_path, write_text
from pieline.core.tables import read_table
from pieline.core.uncertainty import Spread
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.ours import DEVIATION, KEYS
from pieline.reporting.printed import VERDICTS, Comparison, compare, general, rounded
from pieline.reporting.published import (
    ANY,
    Catalogue,
    Place,
    first_table,
    load_catalogue,
    printed_frame,
    read_released,
)
from pieline.reporting.seeds import Ranges, deviation_ranges, mean_ranges

NOT_COMPARABLE, NOT_RUN = "not comparable", "not run"
STATES = (*VERDICTS.values(), NOT_COMPARABLE, NOT_RUN)
"""Possible verdicts on a number, best first."""
COMPARED = frozenset(VERDICTS.values())
"""Verdicts on numbers that were compared."""
EQUAL, NOT_EQUAL = "equal to the authors' run", "not equal to the authors' run"
_FOUR_DIGITS = 0.005 + 1e-9
"""Largest difference, in percent, between fractions that are equal when rounded to four digits."""
_ONE_SEED = "one seed has no deviation"


@dataclass(frozen=True)
class Number:
    """A row of the frame of numbers: keys, our value, the printed value and the verdict.

    Attributes:
        study: Name of the study.
        model: Name in models.yaml; for a fine-tuned embedder, the name of its base model.
        train_mode, loss: Training mode and loss of a fine-tuned embedder.
        setting, query_mode, language, composition: Keys that identify the model's run.
        scope: Part of the data, such as a usage or a split; empty for all data.
        against: What the run is compared with; empty if the number is no comparison.
        seed: Seed of the run; empty for a mean over the seeds in `seeds`.
        measure: Name of the measure; ends with `_std` for a standard deviation over seeds.
        ours: Our value in `unit`; None if it is unknown.
        low, high: Bounds of the 95% interval of our value, in `unit`; None if unknown.
        p_value, p_holm: P-value of a test, uncorrected and corrected within a family of tests; None
            if no test was made.
        unit: `%`, `points` or empty.
        decimals: Decimals of the printed number.
        better: Which values are better: `high`, `low` or empty.
        seeds: Seeds behind our value.
        printed: The printed number; None if the papers print none.
        tolerance: Largest difference that counts as reproduced, or the sampling ranges.
        range_low, range_high: Lowest and highest bound of the sampling ranges; None if there are
            none.
        verdict: One of `STATES`.
        reason: Why our value cannot be compared with the printed number. If our value is within the
            sampling range for only some readings of the printed number, these readings.
        missing: Why our value is missing; empty if it is not missing.
        released: Score of the authors' run; None if there is none.
        released_verdict: Whether our score equals `released`, as a fraction with four digits; empty
            if the two scores cannot be compared.
        released_reason: Why our score cannot be compared with `released`, or may differ from it.
        printed_is_released: `yes` if the printed number is `released`, rounded; otherwise `no`.
        origin: Where our predictions come from; empty if this run computed the predictions.
        place: Place of the printed number in the paper.
        kind: `score`, `count` or `parameter`; empty if the papers do not print the number.
        counts: Whether the number counts among the papers' numbers. Numbers for a second loss and
            numbers that repeat a number from another place do not count.
        also_in: Other places in the paper that print the number.
        printed_at: Places in published/ that contain the number.
        needs: What a comparison requires; empty if the number was compared.
        command: Command that computes the number.
        tables: Tables that show the number, or would show it if they were made.
        what: Description of a number from the running text.
        files: Metric files behind our value.
    """

    study: str
    model: str
    train_mode: str
    loss: str
    setting: str
    query_mode: str
    language: str
    composition: str
    scope: str
    against: str
    seed: str
    measure: str
    ours: float | None
    low: float | None
    high: float | None
    p_value: float | None
    p_holm: float | None
    unit: str
    decimals: int
    better: str
    seeds: str
    printed: float | None
    tolerance: str
    range_low: float | None
    range_high: float | None
    verdict: str
    reason: str
    missing: str
    released: float | None
    released_verdict: str
    released_reason: str
    printed_is_released: str
    origin: str
    place: str
    kind: str
    counts: bool
    also_in: tuple[str, ...]
    printed_at: tuple[Place, ...]
    needs: tuple[str, ...]
    command: str
    tables: tuple[str, ...]
    what: str
    files: tuple[str, ...]

    @property
    def shown(self) -> str:
        """Our value as text, rounded to the printed decimals unless the value is a parameter."""
        if self.kind == "parameter":
            return general(self.ours)
        return rounded(self.ours, self.decimals)

    @property
    def difference(self) -> float | None:
        """Our value minus the printed number; None if one of the two is unknown."""
        if self.ours is None or self.printed is None:
            return None
        return self.ours - self.printed


COLUMNS = [field.name for field in fields(Number)]
_FLOATS = [field.name for field in fields(Number) if field.type == float | None]
_SEPARATORS = {"also_in": "; ", "printed_at": "; ", "needs": " + ", "tables": " ", "files": " "}
"""Separator between the values in a CSV column with several values, by column."""


def join(
    ours: pd.DataFrame,
    printed: pd.DataFrame,
    *,
    why: Callable[[Mapping[str, Any]], str],
    released: pd.DataFrame | None = None,
    prefer: Mapping[str, Mapping[str, str]] | None = None,
) -> pd.DataFrame:
    """Join our numbers with the printed numbers, and decide the verdict on each number.

    Our numbers come first, in the order of `ours`. Numbers that only the papers contain follow.

    Args:
        ours: Our rows, as `add_origin_and_tables` returns them.
        printed: Rows with the columns `KEYS` and `PRINTED`; a key that is `ANY` matches all values.
        why: Function from the columns of a printed number to the reason why our number is missing.
        released: Scores of the authors' run, with the columns `KEYS` and `released`; None for no
            comparison with these scores.
        prefer: Preferred values of keys, by name of the file in published/. If several of our
            numbers match a printed number in the file, the first with the preferred values counts.
    """
    ours = ours.assign(_ours=range(len(ours)))
    printed = _expand_any_keys(printed.assign(_printed=range(len(printed))), ours)
    joined = ours.merge(printed, on=list(KEYS), how="outer").sort_values(["_ours", "_printed"])
    if released is None:
        joined = joined.assign(released=None)
    else:
        joined = joined.merge(released, on=list(KEYS), how="left")
    rows = [_compare_row(row, why) for row in _records(joined) if not _is_empty_deviation(row)]
    _count_once(rows, prefer or {})
    return checked(pd.DataFrame(rows, columns=COLUMNS))


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a frame as dictionaries by column, with None for missing values."""
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return [{str(name): value for name, value in row.items()} for row in rows]


def _expand_any_keys(printed: pd.DataFrame, ours: pd.DataFrame) -> pd.DataFrame:
    """Replace each key `ANY` of a printed number by the key's values in our numbers.

    The printed number gets one row for each of our numbers whose other keys are the same. If there
    is no such number, the key becomes empty.
    """
    our_keys = ours[list(KEYS)].drop_duplicates()
    is_any = printed[list(KEYS)] == ANY
    replaced_groups = []
    # Rows that have `ANY` in the same keys are merged together.
    for pattern, rows in printed.groupby([is_any[key] for key in KEYS], sort=False):
        any_keys = [key for key, is_any_key in zip(KEYS, pattern, strict=True) if is_any_key]
        other_keys = [key for key in KEYS if key not in any_keys]
        merged = rows.drop(columns=any_keys).merge(our_keys, on=other_keys, how="left")
        replaced_groups.append(merged.fillna(dict.fromkeys(any_keys, "")))
    if not replaced_groups:
        return printed
    return pd.concat(replaced_groups, ignore_index=True)


def _is_empty_deviation(row: Mapping[str, Any]) -> bool:
    return row["ours"] is None and row["printed"] is None and _is_deviation(row)


def _is_deviation(row: Mapping[str, Any]) -> bool:
    return str(row["measure"]).endswith(DEVIATION)


def _compare_row(row: Mapping[str, Any], why: Callable[[Mapping[str, Any]], str]) -> dict[str, Any]:
    """Compare our number in a joined row with the printed number; return the fields of `Number`.

    Args:
        row: Joined row by column.
        why: Function from a row to the reason why our number is missing.
    """
    is_ours = row["_ours"] is not None
    not_run = row["not_run"] if is_ours else why(row)
    decimals = int(row["decimals"] if is_ours else row["printed_decimals"])
    comparison = compare(
        row["ours"],
        row["printed"],
        obstacles=_obstacles(row, not_run),
        tolerance=max(row["tolerance"] or 0.0, row["printed_tolerance"] or 0.0),
        ranges=row["ranges"] or _sampling_ranges(row),
        decimals=decimals,
    )
    if comparison.reproduced is not None:
        verdict = VERDICTS[comparison.reproduced]
    elif row["ours"] is None:
        verdict = NOT_RUN
    else:
        verdict = NOT_COMPARABLE
    texts = ("unit", "better", "seeds", "place", "kind", "origin", "what", *KEYS)
    return {
        **{name: row[name] for name in ("ours", "low", "high", "p_value", "p_holm", "printed")},
        **{name: row[name] or "" for name in texts},
        **_compare_with_released(row),
        **_bounds(comparison),
        "decimals": decimals,
        "tolerance": comparison.allowed() if comparison.comparable else "",
        "verdict": verdict,
        "reason": comparison.reason,
        "missing": not_run or row["unknown"] or "",
        "counts": bool(row["kind"]),
        "also_in": row["also_in"] or (),
        "printed_at": row["printed_at"] or (),
        "needs": (),
        "command": "",
        "tables": tuple(dict.fromkeys([*(row["tables"] or ()), *(row["shown_by"] or ())])),
        "files": row["files"] or (),
    }


def _obstacles(row: Mapping[str, Any], not_run: str) -> list[str]:
    """Return why our number in a joined row cannot be compared with the printed number.

    Args:
        row: Joined row by column.
        not_run: Why our number was not computed; empty if it was computed.

    Returns:
        The reasons, most important first; empty if the numbers can be compared.
    """
    obstacles = [not_run, row["unknown"]]
    is_unknown_deviation = _is_deviation(row) and row["_ours"] is not None and row["ours"] is None
    if is_unknown_deviation and row["spread"] and not not_run:
        obstacles.append(_ONE_SEED)
    obstacles += row["obstacles"] or ()
    return [obstacle for obstacle in obstacles if obstacle]


def _bounds(comparison: Comparison) -> dict[str, float | None]:
    """Return the lowest lower and highest upper bound of all sampling ranges, by field name."""
    ranges = comparison.ranges.values() if comparison.comparable else ()
    return {
        "range_low": min((low for low, _ in ranges), default=None),
        "range_high": max((high for _, high in ranges), default=None),
    }


def _compare_with_released(row: Mapping[str, Any]) -> dict[str, Any]:
    """Compare the numbers in a joined row with the score of the authors' run.

    Returns:
        The fields of `Number` that concern the authors' run.
    """
    released, ours, printed = row["released"], row["ours"], row["printed"]
    verdict = ""
    reason = ""
    printed_is_released = ""
    if released is not None:
        obstacles = [*(row["obstacles"] or ()), *(row["released_obstacles"] or ())]
        if obstacles:
            reason = "; ".join(obstacles)
        elif ours is None:
            reason = "our score is unknown"
        elif abs(ours - released) <= _FOUR_DIGITS:
            verdict = EQUAL
        else:
            verdict = NOT_EQUAL
            reason = row["released_note"] or ""
        if printed is not None:
            # A half may be rounded up or down.
            largest_rounding = 0.5 * 10.0 ** -int(row["own_decimals"]) + 1e-9
            is_printed = abs(released - printed) <= largest_rounding
            printed_is_released = "yes" if is_printed else "no"
    return {
        "released": released,
        "released_verdict": verdict,
        "released_reason": reason,
        "printed_is_released": printed_is_released,
    }


def _sampling_ranges(row: Mapping[str, Any]) -> Ranges:
    """Return the sampling ranges for a mean or deviation over seeds; empty for other numbers."""
    printed: Spread | None = row["spread"]
    if printed is None or row["ours"] is None or not row["seeds"]:
        return {}
    ddof = row["ddof"]
    pool = row["pool"]
    seeds = len(row["seeds"].split())
    if not _is_deviation(row):
        ours = Spread(mean=row["ours"], deviation=row["deviation"], seeds=seeds)
        return mean_ranges(ours, printed, ddof=ddof, pool=pool)
    if printed.deviation is None:
        return {}
    return deviation_ranges(seeds, printed, ddof=ddof, pool=pool)


def _count_once(rows: Sequence[dict[str, Any]], prefer: Mapping[str, Mapping[str, str]]) -> None:
    """If several rows are compared with the same printed number, let only one of the rows count.

    Args:
        rows: Fields of `Number`; `counts` is changed in place.
        prefer: Preferred values of keys, by name of the file with the printed number.
    """
    rows_by_place: dict[Place, list[dict[str, Any]]] = {}
    for row in rows:
        if row["printed_at"]:
            rows_by_place.setdefault(row["printed_at"][0], []).append(row)
    for place, candidates in rows_by_place.items():
        counting_row = _choose_row(candidates, prefer.get(place.file, {}))
        for row in candidates:
            if row is not counting_row:
                row["counts"] = False


def _choose_row(
    candidates: Sequence[dict[str, Any]], preferred: Mapping[str, str]
) -> dict[str, Any]:
    """Return the first row that has a value of ours and the preferred values of keys.

    If no row has both, the value of ours takes precedence over the preferred values.
    """
    with_value = [row for row in candidates if row["ours"] is not None] or candidates
    with_preferred_keys = [
        row for row in with_value if all(row[key] == value for key, value in preferred.items())
    ]
    return (with_preferred_keys or with_value)[0]


def checked(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame unchanged, after checking its columns, keys and verdicts.

    Raises:
        ValueError: A column is missing, a key is not unique, or a verdict is unknown.
    """
    if list(frame.columns) != COLUMNS:
        raise ValueError(f"columns {list(frame.columns)} instead of {COLUMNS}")
    duplicates = frame[frame.duplicated(list(KEYS))]
    if len(duplicates):
        raise ValueError(f"duplicate number {tuple(duplicates.iloc[0][list(KEYS)])}")
    unknown_verdicts = set(frame["verdict"]) - set(STATES)
    if unknown_verdicts:
        raise ValueError(f"unknown verdict {min(unknown_verdicts)!r}")
    return frame


def numbers_of(frame: pd.DataFrame) -> list[Number]:
    """Return the rows of a frame of numbers."""
    return [Number(**row) for row in _records(frame)]


def rows_of(
    frame: pd.DataFrame, by: Sequence[str], across: Sequence[str] = ()
) -> dict[tuple[str, ...], dict[str, Number]]:
    """Arrange the numbers of a frame as the rows and columns of a table.

    Args:
        frame: Frame of numbers.
        by: Keys that identify a row of the table.
        across: Keys that identify a column of the table together with the measure.

    Returns:
        The numbers by row (the values of the keys `by`) and by column. A column is named by the
        values of `across` that are not empty, and the measure, such as `span r_precision`.
    """
    rows: dict[tuple[str, ...], dict[str, Number]] = {}
    for number in numbers_of(frame):
        row = tuple(getattr(number, key) for key in by)
        names_of_column = [getattr(number, key) for key in (*across, "measure")]
        column = " ".join(filter(None, names_of_column))
        rows.setdefault(row, {})[column] = number
    return rows


def add_origin_and_tables(ours: pd.DataFrame, inputs: DisplayInputs) -> pd.DataFrame:
    """Add the columns `origin` (of the predictions) and `tables` (name of the display) to our rows.

    Args:
        ours: Our rows of the frame of numbers.
        inputs: Inputs of the display.
    """
    origin_by_metric_file = {run.metrics: run.origin for run in inputs.runs}

    def join_origins(files: Sequence[str]) -> str:
        origins = [origin_by_metric_file.get(path, "") for path in files]
        return ", ".join(dict.fromkeys(filter(None, origins)))

    return ours.assign(
        origin=ours["files"].map(join_origins),
        tables=ours["files"].map(lambda _: (inputs.display,)),
    )


def _catalogue(inputs: DisplayInputs) -> Catalogue:
    return load_catalogue(inputs.files["tables"]) if "tables" in inputs.files else {}


def printed_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return the printed numbers in a table's input files; empty for the user's own data."""
    catalogue = _catalogue(inputs)
    names = [] if inputs.data == "own" else [name for name in catalogue if name in inputs.files]
    files = {name: inputs.files[name] for name in names}
    return printed_frame(files, catalogue, inputs.names())


def numbers_for(inputs: DisplayInputs, ours: pd.DataFrame) -> pd.DataFrame:
    """Return the frame of numbers of a table.

    The frame contains our numbers in the table, and the numbers that the paper prints in the table.

    Args:
        inputs: Inputs of the table.
        ours: Our rows of the frame.
    """
    catalogue = _catalogue(inputs)
    printed = _expand_any_keys(printed_numbers(inputs), ours)
    our_keys = ours.set_index([*KEYS]).index
    is_ours = printed.set_index([*KEYS]).index.isin(our_keys)
    # If several tables show a printed number, published/ lists it for the first of these tables.
    is_printed_in_table = printed["shown_by"].map(first_table) == inputs.display
    return join(
        add_origin_and_tables(ours, inputs),
        printed[is_ours | is_printed_in_table],
        why=inputs.why_missing,
        released=read_released(inputs.files, inputs.names()),
        prefer={name: table.prefer for name, table in catalogue.items()},
    )


def write_numbers(path: str | Path, frame: pd.DataFrame, *, without_empty: bool = False) -> None:
    """Write a frame of numbers as CSV, one line per number.

    Args:
        path: Path of the CSV file.
        frame: Frame of numbers.
        without_empty: Whether to omit columns without values, other than `ours` and `printed`.
    """
    texts = frame.copy()
    for column, separator in _SEPARATORS.items():
        texts[column] = [separator.join(map(str, values)) for values in frame[column]]
    texts["printed"] = ["" if pd.isna(value) else f"{value:g}" for value in frame["printed"]]
    texts["counts"] = ["yes" if counts else "no" for counts in frame["counts"]]
    if without_empty:
        has_value = (texts.notna() & (texts != "")).any()
        is_required = texts.columns.isin(["ours", "printed"])
        texts = texts.loc[:, has_value | is_required]
    write_text(path, texts.to_csv(index=False, lineterminator="\n"))


def write_parquet(path: str | Path, frame: pd.DataFrame) -> None:
    """Write a frame of numbers as Parquet, in which columns with several values are lists."""
    with_lists = frame.copy()
    for column in _SEPARATORS:
        with_lists[column] = [[str(value) for value in values] for values in frame[column]]
    with atomic_path(path) as temporary:
        with_lists.to_parquet(temporary, index=False)


def frame_of(numbers: Iterable[Number]) -> pd.DataFrame:
    """Return a frame with one row per number."""
    return checked(pd.DataFrame([vars(number) for number in numbers], columns=COLUMNS))


def read_numbers(path: str | Path) -> list[Number]:
    """Read the numbers in a CSV file that `write_numbers` wrote with all columns.

    Raises:
        UserError: The file is missing or is not a CSV of numbers.
    """
    rows = read_table(path, COLUMNS, hint="name numbers.csv of a paper_tables/")
    return [_parse_number(row) for _, row in rows]


def _parse_number(row: Mapping[str, str]) -> Number:
    """Parse a line of a file that `write_numbers` wrote, given as texts by column."""
    values: dict[str, Any] = dict(row)
    for name in _FLOATS:
        values[name] = float(row[name]) if row[name] else None
    for name, separator in _SEPARATORS.items():
        values[name] = tuple(filter(None, row[name].split(separator)))
    values["printed_at"] = tuple(map(Place.parse, values["printed_at"]))
    values["decimals"] = int(row["decimals"])
    values["counts"] = row["counts"] == "yes"
    return Number(**values)
