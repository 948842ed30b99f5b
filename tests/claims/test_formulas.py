"""Arithmetic over named columns."""

import re

import numpy as np
import pandas as pd
import pytest

from pieline.results.claims.formulas import ClaimError, Values, evaluate, names_in

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


def test_columns_are_not_modified() -> None:
    before = COLUMNS["plain"]
    evaluate(["plain / 2 - one"], COLUMNS)
    assert np.array_equal(before, [1.0, 4.0])


def test_names_exclude_functions() -> None:
    assert names_in("largest(mean(a), b) - 2 * abs(c)") == {"a", "b", "c"}
