"""The frame of numbers: ours beside the papers', one row per number, joined only here.

A frame is a pandas table with the fields of `Number` as columns (docs/items.md describes them).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import chain
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
"""Largest difference, in percent, of two scores that are equal at four digits as fractions."""
_ONE_SEED = "one seed has no deviation"


@dataclass(frozen=True)
class Number:
    """A number: what was measured, our value, the papers', and the verdict.

    Attributes:
        study: Name of the study.
        model: Name in models.yaml; for a fine-tuned embedder, that of its base.
        train_mode, loss: Training mode and loss of a fine-tuned embedder.
        setting, query_mode, language, composition, seed: The run. The seed is empty for a mean over
            the seeds in `seeds`.
        scope: Part of the data, such as a usage or a split; empty for all.
        against: What the run is compared with.
        measure: Name of the measure; the deviation of a mean over seeds ends with `_std`.
        ours, low, high: Our value and its 95% interval, in `unit`; None if unknown.
        p_value, p_holm: P-value of a test, uncorrected and corrected within a family of tests.
        unit: `%`, `points` or empty.
        decimals: Decimals of the printed number.
        better: `high`, `low` or empty.
        seeds: Seeds behind our value.
        printed: The printed number; None if there is none.
        tolerance: Largest difference that counts as reproduced, or the sampling ranges.
        range_low, range_high: Bounds of the sampling ranges together; None without a range.
        verdict: One of `STATES`.
        reason: Why there is no comparison, or the only readings under which ours is in range.
        missing: Why ours is missing; empty if it is not.
        released: Score of the authors' run; None if there is none.
        released_verdict: Whether ours equals it at four digits, as a fraction; empty if the two are
            not comparable.
        released_reason: Why the two are not comparable, or why they may differ.
        printed_is_released: `yes` or `no`: whether the printed number is the released one, rounded.
        origin: Where our predictions come from if this run did not compute them.
        place: Place of the printed number in the paper.
        kind: `score`, `count` or `parameter`; empty if the papers do not print the number.
        counts: Whether it counts among the papers' numbers. A second loss, or a number that another
            place prints, does not.
        also_in: Other places that print it.
        printed_at: File, row and column in published/ of each place.
        needs: What comparing it requires; empty if it was compared.
        command: Command that computes it.
        tables: Tables that show it, or would show it if they were made.
        what: Description of a number that the text prints.
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
        """Our value with the decimals of the printed number, or as set if it is a parameter."""
        if self.kind == "parameter":
            return general(self.ours)
        return rounded(self.ours, self.decimals)

    @property
    def difference(self) -> float | None:
        """Ours minus printed; None if either is unknown."""
        if self.ours is None or self.printed is None:
            return None
        return self.ours - self.printed


COLUMNS = [field.name for field in fields(Number)]
_FLOATS = [field.name for field in fields(Number) if field.type == float | None]
_SEPARATORS = {"also_in": "; ", "printed_at": "; ", "needs": " + ", "tables": " ", "files": " "}
"""Separators of columns with several values in a CSV."""


def join(
    ours: pd.DataFrame,
    printed: pd.DataFrame,
    *,
    why: Callable[[Mapping[str, Any]], str],
    released: pd.DataFrame | None = None,
    prefer: Mapping[str, Mapping[str, str]] | None = None,
) -> pd.DataFrame:
    """Join our numbers with the printed ones, and decide the verdict on each.

    Our numbers come first, in their order, then those that only the papers have.

    Args:
        ours: Rows as `of_display` returns them.
        printed: Rows with the columns `KEYS` and `PRINTED`; a key that is `ANY` matches all values.
        why: Function from the columns of a printed number that we lack to the reason.
        released: Scores of the authors' run, with the columns `KEYS` and `released`.
        prefer: Values of keys by file in published/. If several numbers of ours match a printed
            one, the first with these values counts.
    """
    ours = ours.assign(_ours=range(len(ours)))
    printed = _matched(printed.assign(_printed=range(len(printed))), ours)
    joined = ours.merge(printed, on=list(KEYS), how="outer").sort_values(["_ours", "_printed"])
    if released is None:
        joined = joined.assign(released=None)
    else:
        joined = joined.merge(released, on=list(KEYS), how="left")
    rows = [_judged(row, why) for row in _records(joined) if not _is_empty_deviation(row)]
    _count_once(rows, prefer or {})
    return checked(pd.DataFrame(rows, columns=COLUMNS))


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a frame as dictionaries, with None for missing values."""
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return [{str(name): value for name, value in row.items()} for row in rows]


def _matched(printed: pd.DataFrame, ours: pd.DataFrame) -> pd.DataFrame:
    """Replace `ANY` by the values of our numbers that match in the other keys, else by ""."""
    known, parts = ours[list(KEYS)].drop_duplicates(), []
    open_keys = printed[list(KEYS)] == ANY
    for pattern, rows in printed.groupby([open_keys[key] for key in KEYS], sort=False):
        is_open = dict(zip(KEYS, pattern, strict=True))
        opened = [key for key in KEYS if is_open[key]]
        fixed = [key for key in KEYS if not is_open[key]]
        matched = rows.drop(columns=opened).merge(known, on=fixed, how="left")
        parts.append(matched.fillna(dict.fromkeys(opened, "")))
    return pd.concat(parts, ignore_index=True) if parts else printed


def _is_empty_deviation(row: Mapping[str, Any]) -> bool:
    is_empty = row["ours"] is None and row["printed"] is None
    return is_empty and str(row["measure"]).endswith(DEVIATION)


def _judged(row: Mapping[str, Any], why: Callable[[Mapping[str, Any]], str]) -> dict[str, Any]:
    """Return the columns of a `Number` for a joined row."""
    is_ours = row["_ours"] is not None
    not_run = row["not_run"] if is_ours else why(row)
    decimals = int(row["decimals"] if is_ours else row["printed_decimals"])
    problems = [not_run, row["unknown"]]
    if (
        row["spread"]
        and row["ours"] is None
        and is_ours
        and str(row["measure"]).endswith(DEVIATION)
    ):
        problems.append("" if not_run else _ONE_SEED)
    compared = compare(
        row["ours"],
        row["printed"],
        obstacles=[each for each in (*problems, *(row["obstacles"] or ())) if each],
        tolerance=max(row["tolerance"] or 0.0, row["printed_tolerance"] or 0.0),
        ranges=row["ranges"] or _ranges(row),
        decimals=decimals,
    )
    texts = {
        name: row[name] or ""
        for name in ("unit", "better", "seeds", "place", "kind", "origin", "what", *KEYS)
    }
    return {
        **dict.fromkeys(COLUMNS),
        **{name: row[name] for name in ("ours", "low", "high", "p_value", "p_holm", "printed")},
        **{"command": "", "needs": ()},
        **texts,
        **_against_released(row),
        "decimals": decimals,
        "tolerance": compared.allowed() if compared.comparable else "",
        **_bounds(compared),
        "verdict": VERDICTS.get(
            compared.reproduced or "", NOT_RUN if row["ours"] is None else NOT_COMPARABLE
        ),
        "reason": compared.reason,
        "missing": not_run or row["unknown"] or "",
        "counts": bool(row["kind"]),
        "also_in": row["also_in"] or (),
        "printed_at": row["printed_at"] or (),
        "tables": tuple(dict.fromkeys((*(row["tables"] or ()), *(row["shown_by"] or ())))),
        "files": row["files"] or (),
    }


def _bounds(compared: Comparison) -> dict[str, float | None]:
    bounds = [*chain.from_iterable(compared.ranges.values())] if compared.comparable else []
    return {"range_low": min(bounds, default=None), "range_high": max(bounds, default=None)}


def _against_released(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of `Number` on the authors' run."""
    theirs, ours, printed = row["released"], row["ours"], row["printed"]
    columns = {"released": theirs, "released_verdict": "", "released_reason": ""}
    if theirs is None:
        return {**columns, "printed_is_released": ""}
    obstacles = [*(row["obstacles"] or ()), *(row["released_obstacles"] or ())]
    if ours is None or obstacles:
        columns["released_reason"] = "; ".join(obstacles) or "our score is unknown"
    else:
        is_equal = abs(ours - theirs) <= _FOUR_DIGITS
        columns["released_verdict"] = EQUAL if is_equal else NOT_EQUAL
        columns["released_reason"] = "" if is_equal else row["released_note"] or ""
    if printed is None:
        return {**columns, "printed_is_released": ""}
    # A half may have been rounded up or down.
    is_printed = abs(theirs - printed) <= 0.5 * 10.0 ** -int(row["own_decimals"]) + 1e-9
    return {**columns, "printed_is_released": "yes" if is_printed else "no"}


def _ranges(row: Mapping[str, Any]) -> Ranges:
    """Return the sampling ranges of a mean or deviation over seeds; empty for other numbers."""
    theirs: Spread | None = row["spread"]
    if theirs is None or row["ours"] is None or not row["seeds"]:
        return {}
    ddof, pool, seeds = row["ddof"], row["pool"], len(row["seeds"].split())
    if not str(row["measure"]).endswith(DEVIATION):
        mine = Spread(mean=row["ours"], deviation=row["deviation"], seeds=seeds)
        return mean_ranges(mine, theirs, ddof=ddof, pool=pool)
    if theirs.deviation is None:
        return {}
    return deviation_ranges(seeds, theirs, ddof=ddof, pool=pool)


def _count_once(rows: Sequence[dict[str, Any]], prefer: Mapping[str, Mapping[str, str]]) -> None:
    """If several rows compare with one printed number, let only one count."""
    by_place: dict[Place, list[dict[str, Any]]] = {}
    for row in rows:
        for place in row["printed_at"][:1]:
            by_place.setdefault(place, []).append(row)
    for place, same in by_place.items():
        wanted = prefer.get(place.file, {}).items()

        def order(
            row: Mapping[str, Any], wanted: Iterable[tuple[str, str]] = wanted
        ) -> tuple[bool, bool]:
            return row["ours"] is None, any(row[key] != value for key, value in wanted)

        best = min(same, key=order)
        for row in same:
            row["counts"] = row["counts"] and row is best


def checked(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame if it has the schema of `Number`.

    Raises:
        ValueError: A column is missing, a key is not unique, or a verdict is unknown.
    """
    if list(frame.columns) != COLUMNS:
        raise ValueError(f"columns {list(frame.columns)} instead of {COLUMNS}")
    if (repeated := frame[frame.duplicated(list(KEYS))]).size:
        raise ValueError(f"duplicate number {tuple(repeated.iloc[0][list(KEYS)])}")
    if unknown := {*frame["verdict"]} - {*STATES}:
        raise ValueError(f"unknown verdict {min(unknown)!r}")
    return frame


def numbers_of(frame: pd.DataFrame) -> list[Number]:
    """Return the rows of a frame."""
    return [Number(**row) for row in _records(frame)]


def rows_of(
    frame: pd.DataFrame, by: Sequence[str], across: Sequence[str] = ()
) -> dict[tuple[str, ...], dict[str, Number]]:
    """Return the numbers of a frame by table row (the values of the keys `by`), then by column.

    A column is a measure, preceded by the values of the keys `across`, such as `span r_precision`.
    """
    rows: dict[tuple[str, ...], dict[str, Number]] = {}
    for number in numbers_of(frame):
        key = tuple(getattr(number, name) for name in by)
        column = (getattr(number, name) for name in (*across, "measure"))
        rows.setdefault(key, {})[" ".join(filter(None, column))] = number
    return rows


def of_display(ours: pd.DataFrame, inputs: DisplayInputs) -> pd.DataFrame:
    """Add the display's name, and the origin of the predictions behind each row, to our rows."""
    origins = {run.metrics: run.origin for run in inputs.runs}

    def origin(files: Sequence[str]) -> str:
        return ", ".join(dict.fromkeys(filter(None, (origins.get(path) for path in files))))

    return ours.assign(
        origin=ours["files"].map(origin), tables=ours["files"].map(lambda _: (inputs.display,))
    )


def _catalogue(inputs: DisplayInputs) -> Catalogue:
    return load_catalogue(inputs.files["tables"]) if "tables" in inputs.files else {}


def printed_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return the printed numbers in the files of a table; none for the user's own data."""
    catalogue = _catalogue(inputs)
    files = {name: inputs.files[name] for name in catalogue if name in inputs.files}
    return printed_frame({} if inputs.data == "own" else files, catalogue, inputs.names())


def numbers_for(inputs: DisplayInputs, ours: pd.DataFrame) -> pd.DataFrame:
    """Return the frame of a table: its rows of ours, and what the papers print in it."""
    catalogue, printed = _catalogue(inputs), _matched(printed_numbers(inputs), ours)
    # A number that several tables show has one table in published/.
    is_ours = printed.set_index([*KEYS]).index.isin(ours.set_index([*KEYS]).index)
    return join(
        of_display(ours, inputs),
        printed[is_ours | (printed["shown_by"].map(first_table) == inputs.display)],
        why=inputs.why_missing,
        released=read_released(inputs.files, inputs.names()),
        prefer={name: table.prefer for name, table in catalogue.items()},
    )


def write_numbers(path: str | Path, frame: pd.DataFrame, *, without_empty: bool = False) -> None:
    """Write a frame as CSV, one line per number.

    Args:
        path: Path of the file.
        frame: Frame of numbers.
        without_empty: Whether to omit columns without values, except for `ours` and `printed`.
    """
    texts = frame.assign(
        **{
            name: frame[name].map(lambda values, by=by: by.join(map(str, values)))
            for name, by in _SEPARATORS.items()
        },
        printed=frame["printed"].map(lambda value: "" if pd.isna(value) else f"{value:g}"),
        counts=frame["counts"].map({True: "yes", False: "no"}),
    )
    if without_empty:
        kept = texts.notna() & (texts != "")
        texts = texts.loc[:, kept.any() | texts.columns.isin(["ours", "printed"])]
    write_text(path, texts.to_csv(index=False, lineterminator="\n"))


def write_parquet(path: str | Path, frame: pd.DataFrame) -> None:
    """Write a frame as Parquet; columns with several values are lists."""
    lists = {name: frame[name].map(lambda values: list(map(str, values))) for name in _SEPARATORS}
    with atomic_path(path) as temporary:
        frame.assign(**lists).to_parquet(temporary, index=False)


def frame_of(numbers: Iterable[Number]) -> pd.DataFrame:
    """Return the frame of numbers."""
    return checked(pd.DataFrame([vars(number) for number in numbers], columns=COLUMNS))


def read_numbers(path: str | Path) -> list[Number]:
    """Read a CSV with all columns that `write_numbers` wrote.

    Raises:
        UserError: The file is missing or is not a CSV of numbers.
    """
    rows = read_table(path, COLUMNS, hint="name numbers.csv of a paper_tables/")
    return [_number(row) for _, row in rows]


def _number(row: Mapping[str, str]) -> Number:
    values: dict[str, Any] = dict(row)
    for name in _FLOATS:
        values[name] = float(row[name]) if row[name] else None
    for name, separator in _SEPARATORS.items():
        values[name] = tuple(filter(None, row[name].split(separator)))
    values["printed_at"] = tuple(map(Place.parse, values["printed_at"]))
    return Number(**values | {"decimals": int(row["decimals"]), "counts": row["counts"] == "yes"})
