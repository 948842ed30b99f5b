"""Arithmetic over named columns, and statements on numbers computed manually."""

import re
from typing import Any

import pandas as pd
import pytest
from pydantic import ValidationError

from pieline.results.claims.claim import Statement
from pieline.results.claims.formulas import ClaimError, Values, evaluate

COLUMNS: dict[str, Values] = {
    "plain": pd.Series({"a": 1.0, "b": 4.0}),
    "gained": pd.Series({"b": 5.0, "a": 3.0}),
    "other": pd.Series({"a": 3.0, "c": 5.0}),
    "constant": pd.Series({"a": 2.0, "b": 2.0}),
    "sizes": pd.Series({"a": 1.0, "b": 20.0, "c": 300.0, "d": 4000.0}),
    "scores": pd.Series({"d": 9.0, "c": 5.0, "b": 6.0, "a": 2.0}),
    "one": 10.0,
}


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("gained - plain", {"a": 2.0, "b": 1.0}),
        ("one * (plain + 1) / 2", {"a": 10.0, "b": 25.0}),
        ("abs(plain - gained)", {"a": 2.0, "b": 1.0}),
        ("-one", {"": -10.0}),
        ("7", {"": 7.0}),
        ("mean(plain)", {"": 2.5}),
        ("median(gained) + total(plain)", {"": 9.0}),
        ("largest(plain, one) - smallest(plain, gained)", {"": 9.0}),
        # Rows are paired by name; the two columns have opposite orders.
        ("correlation(plain, gained)", {"": 1.0}),
        ("correlation(plain, 3 - gained)", {"": -1.0}),
        # Ranks 1 2 3 4 and 1 3 2 4: the sum of d² is 2, and one of six pairs is discordant.
        ("spearman(sizes, scores)", {"": 1 - 6 * 2 / (4 * 15)}),
        ("kendall(sizes, scores)", {"": 4 / 6}),
        ("count(sizes) - count(plain, one)", {"": 1.0}),
    ],
)
def test_formulas(formula: str, expected: dict[str, float]) -> None:
    assert evaluate([formula], COLUMNS)[0].to_dict() == pytest.approx(expected)


def test_a_single_number_applies_to_every_row() -> None:
    table = evaluate(["plain", "one"], COLUMNS)
    assert table.to_dict("index") == {"a": {0: 1.0, 1: 10.0}, "b": {0: 4.0, 1: 10.0}}


@pytest.mark.parametrize(
    ("formula", "problem"),
    [
        ("plain - missing", "unknown number 'missing'"),
        ("plain -", "not a formula"),
        ("mean()", "not a formula"),
        ("correlation(plain)", "not a formula"),
        ("correlation(one, one)", "not a formula"),
        ("mean + one", "not a formula"),
        ("'text'", "not a formula"),
        ("__import__('os')", "unknown number '__import__'"),
        ("plain.to_csv('stolen.csv')", "unknown number 'to_csv'"),
        ("plain.real", "unknown number 'real'"),
        ("plain[0]", "not a formula"),
        ("one(plain)", "not a formula"),
        ("mean(plain, skipna=1)", "not a formula"),
        ("@plain", "not a formula"),
        ("list", "unknown number 'list'"),
    ],
)
def test_invalid_formulas(formula: str, problem: str) -> None:
    with pytest.raises(ClaimError, match=re.escape(problem)):
        evaluate([formula], COLUMNS)


@pytest.mark.parametrize(
    ("formula", "row"),
    [
        ("plain - other", " in row b"),
        ("plain / (one - 10)", " in row a"),
        ("one / (one - 10)", ""),
        # An undefined value must not be hidden by the function applied to it.
        ("mean(plain - other)", ""),
        ("largest(plain - other)", ""),
        ("smallest(plain, one / 0)", ""),
        ("correlation(plain, other)", ""),
        ("spearman(plain, other)", ""),
        ("spearman(plain, constant)", ""),
        ("kendall(plain, constant)", ""),
        ("correlation(plain, constant)", ""),
    ],
)
@pytest.mark.filterwarnings("error")
def test_undefined_formulas(formula: str, row: str) -> None:
    with pytest.raises(ClaimError, match=f"^undefined{row}: "):
        evaluate([formula], COLUMNS)


def test_columns_with_different_rows_cannot_be_combined() -> None:
    with pytest.raises(ClaimError, match="undefined in row b"):
        evaluate(["plain", "other"], COLUMNS)


def test_rows_keep_the_order_of_the_first_column() -> None:
    assert list(evaluate(["gained", "plain"], COLUMNS).index) == ["b", "a"]


TWO_RUNS: dict[str, Values] = {
    "before": pd.Series({"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0}),
    "after": pd.Series({"a": 2.0, "b": 4.0, "c": 6.0, "d": 4.0}),
    "target": 1.5,
}
COUNTED = "after > before"


@pytest.mark.parametrize(
    ("fields", "holds", "summary", "words"),
    [
        (
            {"formula": "after >= before"},
            True,
            "holds in all 4 rows",
            "after is at least before, in every row",
        ),
        (
            {"formula": "after > before"},
            False,
            "fails in 1 of 4 rows: d",
            "after is above before, in every row",
        ),
        (
            {"formula": "before <= after"},
            True,
            "holds in all 4 rows",
            "before is at most after, in every row",
        ),
        (
            {"formula": "before < after - 0.5"},
            False,
            "fails in 1 of 4 rows: d",
            "before is below after - 0.5, in every row",
        ),
        (
            {"formula": "target + 0.1 + 0.2 == 1.8"},
            True,
            "1.8 against 1.8",
            "target + 0.1 + 0.2 is equal to 1.8, in every row",
        ),
        (
            {"formula": "target == 1.4999"},
            False,
            "1.5 against 1.4999",
            "target is equal to 1.4999, in every row",
        ),
        (
            {"formula": "after == before", "within": 3},
            True,
            "holds in all 4 rows",
            "after is within 3 of before, in every row",
        ),
        (
            {"formula": "after == before", "within": 2},
            False,
            "fails in 1 of 4 rows: c",
            "after is within 2 of before, in every row",
        ),
        (
            {"formula": "mean(after - before) == target", "within": 0},
            True,
            "1.5 against 1.5",
            "the mean of after - before is within 0 of target",
        ),
        (
            {"formula": "median(after) > 4"},
            False,
            "4 against 4",
            "the median of after is above 4",
        ),
        (
            {"formula": "correlation(before, 2 * before) > 0.99"},
            True,
            "1 against 0.99",
            "Pearson's correlation of before and 2 * before is above 0.99",
        ),
        (
            {"formula": "spearman(before, 2 * before) < 0.404"},
            False,
            "1 against 0.404",
            "Spearman's rank correlation of before and 2 * before is below 0.404",
        ),
        (
            {"formula": "correlation(before, -before) > 0"},
            False,
            "-1 against 0",
            "Pearson's correlation of before and -before is above 0",
        ),
        (
            {"formula": "after", "highest": ["c"]},
            True,
            "c 6, b 4, d 4, a 2",
            "after from the highest: c",
        ),
        # b and d are tied for second place.
        (
            {"formula": "after", "highest": ["c", "b"]},
            False,
            "c 6, b 4, d 4, a 2",
            "after from the highest: c, b",
        ),
        (
            {"formula": "before", "lowest": ["a", "b", "c", "d"]},
            True,
            "a 1, b 2, c 3, d 4",
            "before from the lowest: a, b, c, d",
        ),
        (
            {"formula": COUNTED, "in_rows": "at least 75%"},
            True,
            "3 of 4 rows: a, b, c",
            "after is above before in at least 75% of the rows",
        ),
        (
            {"formula": COUNTED, "in_rows": "at least 76%"},
            False,
            "3 of 4 rows: a, b, c",
            "after is above before in at least 76% of the rows",
        ),
        (
            {"formula": COUNTED, "in_rows": "exactly 4"},
            False,
            "3 of 4 rows: a, b, c",
            "after is above before in exactly 4 of the rows",
        ),
        (
            {"formula": COUNTED, "in_rows": "at most 3"},
            True,
            "3 of 4 rows: a, b, c",
            "after is above before in at most 3 of the rows",
        ),
    ],
)
def test_statements(fields: dict[str, Any], holds: bool, summary: str, words: str) -> None:
    statement = Statement.model_validate(fields)
    assert statement.judge(TWO_RUNS) == (holds, summary)
    assert statement.in_words() == words


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"formula": "a"}, "one comparison"),
        ({"formula": "a < b < c"}, "one comparison"),
        ({"formula": "a", "highest": ["x"], "lowest": ["y"]}, "only one of highest and lowest"),
        ({"formula": "a", "highest": []}, "at least 1 item"),
        ({"formula": "a > b", "lowest": ["y"]}, "exclude a comparison"),
        ({"formula": "a", "lowest": ["y"], "within": 0}, "exclude a comparison"),
        ({"formula": "a", "lowest": ["y"], "in_rows": "exactly 1"}, "exclude a comparison"),
        ({"formula": "a > b", "within": 0.0}, "within needs"),
        ({"formula": "a == b", "within": -1}, "greater than or equal to 0"),
        ({"formula": "a > b", "in_rows": "exactly 1 or 2"}, "in_rows"),
        ({"formula": "a > b", "off": 1}, "Extra inputs"),
    ],
)
def test_invalid_statements(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        Statement.model_validate(fields)
