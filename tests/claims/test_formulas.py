"""Arithmetic over named columns."""

import pytest

from pieline.results.claims.formulas import SINGLE, FormulaError, Values, evaluate, names_in

COLUMNS: dict[str, Values] = {
    "plain": {("a",): 1.0, ("b",): 4.0},
    "gained": {("a",): 3.0, ("b",): 5.0},
    "other": {("a",): 3.0, ("c",): 5.0},
    "one": {SINGLE: 10.0},
}


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("gained - plain", {("a",): 2.0, ("b",): 1.0}),
        ("one * (plain + 1) / 2", {("a",): 10.0, ("b",): 25.0}),
        ("abs(plain - gained)", {("a",): 2.0, ("b",): 1.0}),
        ("-one", {SINGLE: -10.0}),
        ("average(plain)", {SINGLE: 2.5}),
        ("median(gained) + total(plain)", {SINGLE: 9.0}),
        ("largest(plain, one) - smallest(plain, gained)", {SINGLE: 9.0}),
    ],
)
def test_formulas(formula: str, expected: Values) -> None:
    assert evaluate(formula, COLUMNS) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("formula", "problem"),
    [
        ("plain - other", "row b stands in one column only"),
        ("plain - missing", "unknown name 'missing'"),
        ("plain / (one - 10)", "division by zero"),
        ("plain -", "not a formula"),
        ("plain ** 2", "not allowed"),
        ("__import__('os')", "not allowed"),
        ("plain.real", "not allowed"),
        ("'text'", "not allowed"),
        ("average()", "not allowed"),
    ],
)
def test_what_is_no_formula(formula: str, problem: str) -> None:
    with pytest.raises(FormulaError, match=problem.replace("(", r"\(")):
        evaluate(formula, COLUMNS)


def test_names_are_columns_and_not_functions() -> None:
    assert names_in("largest(average(a), b) - 2 * abs(c)") == {"a", "b", "c"}
