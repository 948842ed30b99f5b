"""The frame of numbers: our rows, the printed ones, and their join."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from frame_cases import our_number

from pieline.core.errors import UserError
from pieline.core.files import sha256
from pieline.core.measures import Measure, share
from pieline.core.uncertainty import Interval, Spread
from pieline.reporting.inputs import DisplayInputs, PlannedRun
from pieline.reporting.models import ModelDescription
from pieline.reporting.numbers import (
    COLUMNS,
    EQUAL,
    NOT_EQUAL,
    Number,
    add_origin_and_tables,
    checked,
    frame_of,
    join,
    numbers_for,
    numbers_of,
    read_numbers,
    rows_of,
    write_numbers,
    write_parquet,
)
from pieline.reporting.ours import KEYS, OurNumbers, of_runs, over_seeds
from pieline.reporting.published import ANY, Place, load_catalogue, printed_frame

Record = tuple[float | None]
SCORE = Measure[Record]("score", lambda record: record[0], unknown="too few documents")
RUN = {"model": "m", "setting": "a"}
OTHERWISE = "nobody ran it"


def published(folder: Path, text: str, name: str = "p_table1", **fields: Any) -> None:
    """Add a file with printed numbers, its entry in tables.yaml and its digest."""
    (folder / f"{name}.csv").write_text(text, encoding="utf-8")
    header, *lines = text.splitlines()
    columns = header.split(",")
    entry = {"paper": "p", "number": "Table 1", "title": "T", "keys": ["model"], "table": "p_table"}
    digest = {
        "texts": [each for each in columns if each in KEYS],
        "numbers": [each for each in columns if each not in KEYS],
        "rows": len(lines),
        "sha256": sha256(folder / f"{name}.csv"),
    }
    for file, added in (("tables", entry | fields), ("schema", digest)):
        path = folder / f"{file}.yaml"
        known = yaml.safe_load(path.read_text()) if path.exists() else {}
        path.write_text(yaml.safe_dump(known | {name: added}, sort_keys=False))


def printed_rows(folder: Path, models: Mapping[str, list[str]] | None = None) -> pd.DataFrame:
    catalogue = load_catalogue(folder / "tables.yaml")
    files = {name: folder / f"{name}.csv" for name in catalogue}
    return printed_frame(files, catalogue, models or {"M": ["m"]})


def ours_of(*scores: float | None, seeds: bool = False, **options: Any) -> pd.DataFrame:
    """Return our rows of scores, each with a seed or without."""
    numbers = OurNumbers("p")
    for seed, score in enumerate(scores):
        keys = RUN | ({"seed": str(seed)} if seeds else {})
        record = None if options.get("not_run") else (score,)
        numbers.add(keys, [SCORE], record, files=[f"{seed}.json"], **options)
    return numbers.frame()


def joined(folder: Path, ours: pd.DataFrame, **options: Any) -> list[Number]:
    return numbers_of(
        join(in_table(ours), printed_rows(folder), why=lambda _: OTHERWISE, **options)
    )


def in_table(ours: pd.DataFrame) -> pd.DataFrame:
    return add_origin_and_tables(ours, DisplayInputs(display="p_table"))


ONE_TABLE = {"where": {"setting": "a"}}


# Our rows ----------------------------------------------------------------------------------------


def test_a_measure_reads_value_and_interval_from_a_record() -> None:
    def bounds(_: Record) -> Interval:
        return Interval(low=0.25, high=0.75)

    accuracy = share("accuracy", SCORE.value, bounds, decimals=1, better="high")
    row = accuracy.row((0.5,))
    assert (row["ours"], row["low"], row["high"], row["unit"]) == (50, 25, 75, "%")
    assert (row["measure"], row["decimals"], row["better"]) == ("accuracy", 1, "high")
    assert [SCORE.row((1.0,))[name] for name in ("ours", "low", "unit")] == [1.0, None, ""]
    unknown = SCORE.row((None,))
    assert (unknown["ours"], unknown["unknown"]) == (None, "too few documents")
    # A run without a record states why it was not run, not why a record lacks the value.
    assert (SCORE.row(None)["ours"], SCORE.row(None)["unknown"]) == (None, "")


def test_runs_that_cannot_be_made_have_rows_with_the_reason() -> None:
    def planned(model: str, seed: int, not_run: str = "") -> PlannedRun:
        path = f"{model}{seed}.json"
        return PlannedRun(keys={"model": model, "seed": str(seed)}, metrics=path, not_run=not_run)

    runs = [planned("a", 1), planned("a", 2, "no key"), planned("b", 1, "no key")]
    runs += [planned("b", 2, "no key")]
    inputs = DisplayInputs(study="p", runs=tuple(runs))
    ours = of_runs(
        inputs, [((0.5,), "a1.json")], [SCORE], lambda _: runs[0].keys, lambda _: ["x", "y", "x"]
    )
    rows = ours[["study", "model", "seed", "ours", "not_run"]].fillna("").values.tolist()
    assert rows == [
        ["p", "a", "1", 0.5, ""],
        # Another seed of this run has a record.
        ["p", "a", "2", "", "no key"],
        # No seed has one: the run has one row.
        ["p", "b", "", "", "no key"],
    ]
    assert list(ours["obstacles"]) == [("x", "y"), (), ()]
    assert list(ours["files"]) == [("a1.json",), (), ()]


def test_means_over_seeds_are_followed_by_their_deviations() -> None:
    mean, deviation = over_seeds(
        ours_of(10, 11, 13, seeds=True, obstacles=["sample data"])
    ).to_dict("records")
    assert (mean["measure"], deviation["measure"]) == ("score", "score_std")
    assert (mean["ours"], mean["deviation"]) == (pytest.approx(34 / 3), deviation["ours"])
    assert deviation["ours"] == pytest.approx((7 / 3) ** 0.5)  # ddof 1
    for row in (mean, deviation):
        assert (row["seed"], row["seeds"]) == ("", "0 1 2")
        assert row["files"] == ("0.json", "1.json", "2.json")
        assert row["obstacles"] == ("sample data",)


def test_a_mean_is_unknown_if_a_value_is() -> None:
    mean, deviation = over_seeds(ours_of(10, None, seeds=True)).to_dict("records")
    assert pd.isna(mean["ours"])
    assert pd.isna(deviation["ours"])
    assert mean["unknown"] == "too few documents"
    one = over_seeds(ours_of(10, seeds=True)).to_dict("records")
    assert one[0]["ours"] == 10
    assert pd.isna(one[1]["ours"])


# Printed rows ------------------------------------------------------------------------------------


def test_printed_numbers_have_the_keys_of_ours(tmp_path: Path) -> None:
    text = "model,score_pct,score_pct_std,size\nM,41.5,0.25,7\nN,40,,\n"
    published(
        tmp_path,
        text,
        where={"setting": ANY, "scope": "test"},
        kinds={"size": "count"},
        tolerances=[{"points": 0.5, "where": {"model": ["M"]}}],
    )
    rows = printed_rows(tmp_path, {"M": ["m", "m-weights"]}).to_dict("records")
    assert [(row["model"], row["measure"], row["printed"], row["kind"]) for row in rows] == [
        ("m", "score", 41.5, "score"),
        ("m-weights", "score", 41.5, "score"),
        ("m", "score_std", 0.25, "score"),
        ("m-weights", "score_std", 0.25, "score"),
        ("m", "size", 7, "count"),
        ("m-weights", "size", 7, "count"),
        # A model that models.yaml lacks keeps its printed name.
        ("N", "score", 40, "score"),
    ]
    first, last = rows[0], rows[-1]
    assert (first["study"], first["scope"], first["setting"], first["seed"]) == (
        "p",
        "test",
        "*",
        "",
    )
    assert first["printed_at"] == (Place("p_table1", ("M",), "score_pct"),)
    assert (first["shown_by"], first["place"]) == (("p_table",), "Table 1")
    # The column has one decimal, the number itself has none.
    assert (last["printed_decimals"], last["own_decimals"]) == (1, 0)
    assert (first["printed_tolerance"], last["printed_tolerance"]) == (0.5, 0)
    assert Place.parse(str(first["printed_at"][0])) == first["printed_at"][0]


def test_means_over_seeds_have_the_spreads_of_the_paper(tmp_path: Path) -> None:
    text = "setting,model,language,score,score_std\na,M,x,10,2\na,N,x,11,\nb,N,x,9,1\n"
    seeds = {"number": 3, "of_setting": {"b": 5}, "ddof": [1, 0], "pooled": True}
    published(tmp_path, text, keys=["setting", "model", "language"], seeds=seeds)
    rows = printed_rows(tmp_path).query("measure == 'score'").to_dict("records")
    mean, alone, five = rows
    assert mean["spread"] == Spread(mean=10, deviation=2, seeds=3)
    assert (alone["spread"], five["spread"].seeds) == (Spread(mean=11, deviation=None, seeds=1), 5)
    assert mean["ddof"] == (1, 0)
    # Rows with other numbers of seeds, or with one, are not pooled.
    assert mean["pool"] == alone["pool"] == (mean["spread"],)
    assert five["pool"] == (five["spread"],)


def test_a_repeated_number_counts_at_the_place_that_it_repeats(tmp_path: Path) -> None:
    published(tmp_path, "model,score\nM,10\nN,11\n", **ONE_TABLE)
    other = {"setting": "a", "scope": "again"}
    published(
        tmp_path,
        "model,score\nM,10\n",
        name="p_table2",
        number="Table 2",
        where=other,
        repeats={"score": {"table": "p_table1"}},
    )
    first, _, again = printed_rows(tmp_path).to_dict("records")
    assert (first["kind"], first["also_in"]) == ("score", ("Table 2",))
    assert (again["kind"], again["also_in"], again["scope"]) == ("", (), "again")


def test_the_same_number_at_two_places_is_one_row(tmp_path: Path) -> None:
    published(tmp_path, "model,score\nM,10\n", **ONE_TABLE)
    repeats = {"score": {"table": "p_table1"}}
    published(tmp_path, "model,score\nM,10\n", name="p_table2", repeats=repeats, **ONE_TABLE)
    (row,) = printed_rows(tmp_path).to_dict("records")
    assert [place.file for place in row["printed_at"]] == ["p_table1", "p_table2"]
    assert row["kind"] == "score"


def test_an_invalid_entry_is_a_one_line_error(tmp_path: Path) -> None:
    published(tmp_path, "model,score\nM,10\n", wehre={})
    with pytest.raises(UserError, match=r"tables\.yaml: p_table1: wehre: Extra inputs"):
        load_catalogue(tmp_path / "tables.yaml")


# The join ----------------------------------------------------------------------------------------


def test_every_number_of_either_side_has_a_row(tmp_path: Path) -> None:
    published(tmp_path, "model,score,other\nM,10.00,7\nN,11.00,\n", **ONE_TABLE)
    ours = OurNumbers("p")
    ours.add(RUN, [SCORE, replace(SCORE, name="more")], (10.004,), files=["0.json"])
    numbers = joined(tmp_path, ours.frame())
    assert [
        (each.model, each.measure, each.ours, each.printed, each.verdict, each.reason)
        for each in numbers
    ] == [
        ("m", "score", 10.004, 10, "reproduced", ""),
        ("m", "more", 10.004, None, "not comparable", "the paper prints no such number"),
        ("m", "other", None, 7, "not run", OTHERWISE),
        ("N", "score", None, 11, "not run", OTHERWISE),
    ]
    first = numbers[0]
    assert first.difference == pytest.approx(0.004)
    assert (first.shown, first.files, first.place) == ("10.00", ("0.json",), "Table 1")
    assert [each.counts for each in numbers] == [True, False, True, True]


@pytest.mark.parametrize(
    ("score", "options", "reason", "verdict"),
    [
        (1.0, {}, "", "reproduced"),
        (1.0, {"obstacles": ["sample", "prompt"]}, "sample; prompt", "not comparable"),
        (None, {"not_run": "no key", "obstacles": ["sample"]}, "no key; sample", "not run"),
        (3.0, {}, "", "not reproduced"),
    ],
)
def test_the_reason_for_a_missing_number_comes_first(
    score: float | None, options: dict[str, Any], reason: str, verdict: str, tmp_path: Path
) -> None:
    published(tmp_path, "model,score\nM,1.00\n", **ONE_TABLE)
    (number,) = joined(tmp_path, ours_of(score, **options))
    assert (number.verdict, number.reason) == (verdict, reason)
    assert number.missing == options.get("not_run", "")


def test_a_record_without_the_value_has_the_reason_of_its_measure(tmp_path: Path) -> None:
    published(tmp_path, "model,score\nM,1.00\n", **ONE_TABLE)
    (number,) = joined(tmp_path, ours_of(None))
    assert (number.verdict, number.reason) == ("not run", "too few documents")
    assert number.missing == "too few documents"


def test_the_larger_tolerance_applies(tmp_path: Path) -> None:
    tolerance = {"points": 0.5, "one_decimal": True}
    published(tmp_path, "model,score\nM,1.5\n", tolerances=[tolerance], **ONE_TABLE)

    def verdict(score: float, of_ours: float = 0.0) -> tuple[str, str]:
        numbers = OurNumbers("p")
        numbers.add(RUN, [replace(SCORE, tolerance=of_ours)], (score,))
        (number,) = joined(tmp_path, numbers.frame())
        return number.verdict, number.tolerance

    assert verdict(2.004) == ("reproduced", "0.5")
    assert verdict(2.006) == ("not reproduced", "0.5")
    assert verdict(2.006, 2.0) == ("reproduced", "2")


def test_a_key_that_matches_any_value_counts_one_number_of_ours(tmp_path: Path) -> None:
    published(tmp_path, "model,score\nM,10.00\nN,11.00\n", where={"setting": "a", "seed": ANY})
    ours = ours_of(None, 10.0, 12.0, seeds=True)
    numbers = joined(tmp_path, ours)
    rows = [(each.model, each.seed, each.verdict, each.counts) for each in numbers]
    assert rows == [
        # The first with a number counts.
        ("m", "0", "not run", False),
        ("m", "1", "reproduced", True),
        ("m", "2", "not reproduced", False),
        ("N", "", "not run", True),
    ]
    second = joined(
        tmp_path, ours_of(None, 10.0, 12.0, seeds=True), prefer={"p_table1": {"seed": "2"}}
    )
    assert [each.counts for each in second] == [False, False, True, True]
    # A preferred row without a number does not count.
    third = joined(
        tmp_path, ours_of(None, 10.0, 12.0, seeds=True), prefer={"p_table1": {"seed": "0"}}
    )
    assert [each.counts for each in third] == [False, True, False, True]


def test_a_number_of_two_entries_of_one_model_counts_once(tmp_path: Path) -> None:
    published(tmp_path, "model,score\nM,10.00\n", **ONE_TABLE)
    numbers = OurNumbers("p")
    for model, score in (("api", None), ("weights", 10.0)):
        keys = RUN | {"model": model}
        record = (score,) if score else None
        numbers.add(keys, [SCORE], record, not_run="" if record else "no key")
    printed = printed_rows(tmp_path, {"M": ["api", "weights"]})
    rows = numbers_of(join(in_table(numbers.frame()), printed, why=lambda _: OTHERWISE))
    assert [(row.model, row.counts) for row in rows] == [("api", False), ("weights", True)]


SEEDS = {"number": 3, "ddof": [1, 0]}


def with_seeds(folder: Path, *scores: float, text: str, seeds: Any = SEEDS) -> list[Number]:
    published(folder, text, seeds=seeds, **ONE_TABLE)
    return joined(folder, over_seeds(ours_of(*scores, seeds=True)))


def test_mean_and_deviation_over_seeds_have_sampling_ranges(tmp_path: Path) -> None:
    text = "model,score,score_std\nM,11.50,0.90\n"
    mean, deviation = with_seeds(tmp_path, 10, 11, 12, text=text)
    sampled = "within sampling range"
    assert (mean.ours, mean.printed, mean.verdict) == (11, 11.5, sampled)
    assert (deviation.ours, deviation.printed, deviation.verdict) == (1, 0.9, sampled)
    for number in (mean, deviation):
        assert number.tolerance.count(" to ") == 2
        assert "if printed with ddof 0" in number.tolerance
    (tmp_path / "tables.yaml").unlink()
    far, _ = with_seeds(tmp_path, 20, 21, 22, text=text)
    assert far.verdict == "not reproduced"


def test_one_seed_has_no_deviation(tmp_path: Path) -> None:
    text = "model,score,score_std\nM,10.00,1.00\n"
    mean, deviation = with_seeds(tmp_path, 10, text=text)
    assert (mean.verdict, mean.reason) == ("reproduced", "")
    assert (deviation.ours, deviation.reason) == (None, "one seed has no deviation")
    assert deviation.verdict == "not run"


def test_a_deviation_that_neither_side_has_has_no_row(tmp_path: Path) -> None:
    (mean,) = with_seeds(tmp_path, 10, text="model,score\nM,10.00\n")
    assert mean.measure == "score"


def test_a_deviation_that_is_not_printed_has_no_range(tmp_path: Path) -> None:
    mean, deviation = with_seeds(tmp_path, 10, 12, text="model,score\nM,11.00\n")
    assert (mean.verdict, deviation.printed) == ("reproduced", None)
    assert (deviation.ours, deviation.tolerance) == (pytest.approx(2**0.5), "")


def test_other_rows_provide_the_deviation_of_a_single_printed_seed(tmp_path: Path) -> None:
    text = "setting,model,language,score,score_std\na,M,,10.00,\na,N,,11.00,1.00\n"
    keys, verdicts = ["setting", "model", "language"], []
    for pooled in (True, False):
        seeds = {"number": 3, "of_setting": {"a": 3}, "pooled": pooled}
        published(tmp_path, text, keys=keys, seeds=seeds)
        # Two single seeds differ by at most 6.08.
        verdicts.append(joined(tmp_path, over_seeds(ours_of(15.5, seeds=True)))[0].verdict)
    assert verdicts == ["within sampling range", "not reproduced"]


def test_a_number_without_seeds_is_no_mean_over_seeds(tmp_path: Path) -> None:
    published(tmp_path, "model,score,score_std\nM,10.00,2.00\n", seeds=SEEDS, **ONE_TABLE)
    number, _ = joined(tmp_path, ours_of(10.5))
    assert (number.verdict, number.tolerance) == ("not reproduced", "0")


def test_ranges_of_our_rows_take_precedence(tmp_path: Path) -> None:
    published(tmp_path, "model,score\nM,2.00\n", **ONE_TABLE)
    (number,) = joined(tmp_path, ours_of(2.5, ranges={"as drawn": (1.0, 3.0)}))
    assert number.verdict == "within sampling range"
    assert number.tolerance == "1.000 to 3.000 if as drawn"


@pytest.mark.parametrize(
    ("score", "columns", "verdict", "reason"),
    [
        (10.004, {}, EQUAL, ""),
        (10.02, {}, NOT_EQUAL, ""),
        (10.02, {"released_note": "another version"}, NOT_EQUAL, "another version"),
        (10.0, {"released_note": "another version"}, EQUAL, ""),
        (10.0, {"obstacles": ["sample"]}, "", "sample"),
        (10.0, {"released_obstacles": ["other weights"]}, "", "other weights"),
        (None, {}, "", "our score is unknown"),
    ],
)
def test_the_released_run_is_a_second_reference(
    score: float | None, columns: dict[str, Any], verdict: str, reason: str, tmp_path: Path
) -> None:
    published(tmp_path, "model,score\nM,10.00\n", **ONE_TABLE)
    key = {**dict.fromkeys(KEYS, ""), **RUN, "study": "p", "measure": "score"}
    released = pd.DataFrame([key | {"released": 10.001}])
    (number,) = joined(tmp_path, ours_of(score, **columns), released=released)
    assert (number.released_verdict, number.released_reason) == (verdict, reason)
    assert (number.released, number.printed_is_released) == (10.001, "yes")
    far = released.assign(released=10.006)
    (number,) = joined(tmp_path, ours_of(score, **columns), released=far)
    assert number.printed_is_released == "no"


def test_a_table_has_its_own_rows_and_reasons(tmp_path: Path) -> None:
    published(tmp_path, "model,score\nM,10.00\nN,11.00\nO,12.00\nP,13.00\n", **ONE_TABLE)
    published(tmp_path, "model,more\nM,10.00\n", name="p_table2", table="other", **ONE_TABLE)

    def model(name: str, **fields: Any) -> ModelDescription:
        printed = name.upper()
        return ModelDescription(name=name, kind="llm", label=name, published_as=printed, **fields)

    run = PlannedRun(keys=RUN, metrics="0.json", origin="archive x")
    missing = PlannedRun(keys=RUN | {"model": "n"}, metrics="n.json", not_run="no key")
    inputs = DisplayInputs(
        study="p",
        display="p_table",
        runs=(run, missing),
        models=(
            *(model("m"), model("n")),
            model("o", is_configured=False, not_run="not in this configuration"),
            model("p"),
        ),
        files={path.stem: str(path) for path in tmp_path.iterdir()},
        otherwise=OTHERWISE,
    )
    numbers = numbers_of(numbers_for(inputs, ours_of(10.0)))
    assert [(each.model, each.measure, each.reason) for each in numbers] == [
        ("m", "score", ""),
        ("n", "score", "no key"),
        ("o", "score", "not in this configuration"),
        ("p", "score", OTHERWISE),
    ]
    assert [each.origin for each in numbers] == ["archive x", "", "", ""]
    assert {each.tables for each in numbers} == {("p_table",)}
    own = numbers_of(numbers_for(inputs.model_copy(update={"data": "own"}), ours_of(10.0)))
    assert [(each.ours, each.printed) for each in own] == [(10.0, None)]


# Schema and files --------------------------------------------------------------------------------


def test_a_frame_without_the_schema_is_an_error(tmp_path: Path) -> None:
    published(tmp_path, "model,score\nM,10.00\n", **ONE_TABLE)
    frame = frame_of(joined(tmp_path, ours_of(10.0)))
    assert list(frame.columns) == COLUMNS
    with pytest.raises(ValueError, match="columns"):
        checked(frame.drop(columns="verdict"))
    with pytest.raises(ValueError, match=r"duplicate number \('p', 'm'"):
        checked(pd.concat([frame, frame]))
    with pytest.raises(ValueError, match="unknown verdict 'maybe'"):
        checked(frame.assign(verdict="maybe"))


def test_a_frame_is_the_same_in_both_forms(tmp_path: Path) -> None:
    published(tmp_path, "model,score,score_std\nM,10.00,\nN,11.50,0.25\n", seeds=SEEDS, **ONE_TABLE)
    numbers = joined(tmp_path, over_seeds(ours_of(10, 11.123456789012345, seeds=True)))
    numbers[0] = replace(numbers[0], needs=("a key", "a GPU"), also_in=("Table 5", "Section 3"))
    frame, csv = frame_of(numbers), tmp_path / "numbers.csv"
    write_numbers(csv, frame)
    assert read_numbers(csv) == numbers
    parquet = tmp_path / "numbers.parquet"
    write_parquet(parquet, frame)
    read = pd.read_parquet(parquet)
    assert list(read.columns) == COLUMNS
    assert read["ours"].equals(frame["ours"].astype(float))
    assert list(read["files"].iloc[0]) == ["0.json", "1.json"]
    assert list(read["counts"]) == [number.counts for number in numbers]
    first = csv.read_bytes(), parquet.read_bytes()
    write_numbers(csv, frame_of(read_numbers(csv)))
    write_parquet(parquet, frame_of(read_numbers(csv)))
    assert (csv.read_bytes(), parquet.read_bytes()) == first


def test_a_tables_csv_has_no_empty_columns(tmp_path: Path) -> None:
    published(tmp_path, "model,score\nM,10.00\n", **ONE_TABLE)
    write_numbers(tmp_path / "t.csv", frame_of(joined(tmp_path, ours_of(10.0))), without_empty=True)
    header, line = (tmp_path / "t.csv").read_text().splitlines()
    assert header == (
        "study,model,setting,measure,ours,decimals,printed,tolerance,verdict,place,kind,counts,"
        "printed_at,tables,files"
    )
    assert line == (
        "p,m,a,score,10.0,2,10,0,reproduced,Table 1,score,yes,p_table1 | M | score,p_table,0.json"
    )
    with pytest.raises(UserError, match=r"t\.csv:1: no column"):
        read_numbers(tmp_path / "t.csv")


def test_rows_of_a_table_have_their_numbers_by_measure(tmp_path: Path) -> None:
    published(tmp_path, "model,score,other\nM,10.00,7\n", **ONE_TABLE)
    frame = frame_of(joined(tmp_path, ours_of(10.0)))
    rows = rows_of(frame, ["model", "setting"])
    assert {key: list(numbers) for key, numbers in rows.items()} == {("m", "a"): ["score", "other"]}
    assert rows["m", "a"]["score"].printed == 10


@pytest.mark.parametrize(
    ("kind", "ours", "shown"),
    [
        ("parameter", 2e-5, "2e-5"),
        ("parameter", 32.0, "32"),
        ("score", 2e-5, "0.00"),
        ("score", 32.0, "32.00"),
        ("parameter", None, ""),
    ],
)
def test_settings_are_not_rounded(kind: str, ours: float | None, shown: str) -> None:
    """A learning rate of 2e-5 with the two decimals of a score would be 0.00."""
    assert our_number(ours, kind=kind, decimals=2).shown == shown
