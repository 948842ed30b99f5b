"""Each kind of statement on numbers computed manually: one case that holds and one that fails."""

from typing import Any

import pandas as pd
import pytest
from pydantic import ValidationError

from pieline.results.claims.claim import Statement
from pieline.results.claims.formulas import Values

COLUMNS: dict[str, Values] = {
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
    assert statement.judge(COLUMNS) == (holds, summary)
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
