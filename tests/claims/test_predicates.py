"""Each kind of predicate on numbers worked out by hand: one case that holds, one that does not."""

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from pieline.results.claims.formulas import SINGLE, Values
from pieline.results.claims.predicates import AnyPredicate, Predicate

PREDICATE: TypeAdapter[AnyPredicate] = TypeAdapter(Predicate)
COLUMNS: dict[str, Values] = {
    "before": {("a",): 1.0, ("b",): 2.0, ("c",): 3.0, ("d",): 4.0},
    "after": {("a",): 2.0, ("b",): 4.0, ("c",): 6.0, ("d",): 4.0},
    "target": {SINGLE: 1.5},
}


@pytest.mark.parametrize(
    ("fields", "holds", "found"),
    [
        (
            {"kind": "comparison", "left": "after", "relation": "at_least", "right": "before"},
            True,
            "so in all 4 rows",
        ),
        (
            {"kind": "comparison", "left": "after", "relation": "above", "right": "before"},
            False,
            "not so in 1 of 4 rows: d",
        ),
        ({"kind": "sign", "of": "before", "sign": "positive"}, True, "so in all 4 rows"),
        ({"kind": "sign", "of": "before - 1", "sign": "positive"}, False, "not so in 1 of 4"),
        (
            {"kind": "ordering", "of": "after", "start": "highest", "rows": ["c"]},
            True,
            "c 6, b 4, d 4, a 2",
        ),
        # b and d tie for the second place, so neither has it alone.
        (
            {"kind": "ordering", "of": "after", "start": "highest", "rows": ["c", "b"]},
            False,
            "c 6, b 4",
        ),
        (
            {"kind": "ordering", "of": "before", "start": "lowest", "rows": ["a", "b", "c", "d"]},
            True,
            "a 1, b 2",
        ),
        (
            {
                "kind": "average",
                "of": "after - before",
                "relation": "about",
                "target": "target",
                "tolerance": 0.0,
            },
            True,
            "1.5 against 1.5",
        ),
        (
            {
                "kind": "average",
                "statistic": "median",
                "of": "after",
                "relation": "above",
                "target": "4",
            },
            False,
            "4 against 4",
        ),
        (
            {
                "kind": "correlation",
                "between": ["before", "2 * before"],
                "relation": "above",
                "threshold": 0.99,
            },
            True,
            "1.00 over 4 rows",
        ),
        (
            {
                "kind": "correlation",
                "method": "spearman",
                "between": ["before", "-before"],
                "relation": "above",
                "threshold": 0,
            },
            False,
            "-1.00 over 4 rows",
        ),
        (
            {"kind": "within", "value": "after", "target": "before", "tolerance": 3},
            True,
            "so in all 4 rows",
        ),
        (
            {"kind": "within", "value": "after", "target": "before", "tolerance": 2},
            False,
            "not so in 1 of 4 rows: c",
        ),
        (
            {
                "kind": "count",
                "left": "after",
                "relation": "above",
                "right": "before",
                "rows": "at_least",
                "share": 0.75,
            },
            True,
            "3 of 4 rows: a, b, c",
        ),
        (
            {
                "kind": "count",
                "left": "after",
                "relation": "above",
                "right": "before",
                "rows": "exactly",
                "number": 4,
            },
            False,
            "3 of 4 rows",
        ),
    ],
)
def test_predicates(fields: dict[str, Any], holds: bool, found: str) -> None:
    judgement = PREDICATE.validate_python(fields).judge(COLUMNS)
    assert judgement.holds is holds
    assert found in judgement.found


def test_a_constant_column_has_no_correlation() -> None:
    fields = {"kind": "correlation", "between": ["a", "b"], "relation": "above", "threshold": -1}
    columns: dict[str, Values] = {
        "a": {("x",): 1.0, ("y",): 2.0},
        "b": {("x",): 3.0, ("y",): 3.0},
    }
    assert not PREDICATE.validate_python(fields).judge(columns).holds


def test_count_takes_one_measure() -> None:
    fields = {"kind": "count", "left": "a", "relation": "above", "right": "b", "rows": "exactly"}
    for measure in ({}, {"number": 1, "share": 0.5}):
        with pytest.raises(ValidationError, match="either number or share"):
            PREDICATE.validate_python(fields | measure)


def test_an_unknown_field_is_an_error() -> None:
    with pytest.raises(ValidationError):
        PREDICATE.validate_python({"kind": "sign", "of": "a", "sign": "positive", "off": 1})
