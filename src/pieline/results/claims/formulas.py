"""Evaluate the formulas of claims: Python expressions over named numbers.

Example: `mean(span - sentence)`. Formulas come from this project and are not sandboxed.
"""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

Values = pd.Series | float
"""Numbers by name of the row, or a single number that applies to every row."""


class ClaimError(ValueError):
    """Error in the formula or in a selection of numbers of a claim."""


def _over_all(statistic: Callable[[Any], Any]) -> Callable[..., float]:
    """Return a function that applies a statistic to the numbers of all columns together."""

    def over_all(*columns: Values) -> float:
        numbers = np.hstack(columns)
        # The statistics of pandas would skip undefined values.
        return float(statistic(numbers)) if np.isfinite(numbers).all() else math.nan

    return over_all


def _pearson(left: Any, right: Any) -> float:
    return float(np.corrcoef(left, right)[0, 1])


# scipy.stats is imported lazily, since the import takes a second and only judging claims needs it.
def _spearman(left: Any, right: Any) -> float:
    from scipy.stats import rankdata

    return _pearson(rankdata(left), rankdata(right))


def _kendall(left: Any, right: Any) -> float:
    from scipy.stats import kendalltau

    return float(kendalltau(left, right).statistic)


def _paired(statistic: Callable[[Any, Any], float]) -> Callable[..., float]:
    """Return a function that applies a statistic to two columns, whose rows are paired by name."""

    def paired(left: pd.Series, right: pd.Series) -> float:
        return float(statistic(*left.align(right)))

    return paired


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": np.abs,
    "correlation": _paired(_pearson),
    "spearman": _paired(_spearman),
    "kendall": _paired(_kendall),
    "count": _over_all(len),
    "mean": _over_all(statistics.fmean),
    "median": _over_all(np.median),
    "largest": _over_all(np.max),
    "smallest": _over_all(np.min),
    "total": _over_all(math.fsum),
}


def names_in(formula: str) -> set[str]:
    """Return the names of the numbers in a formula.

    Raises:
        ClaimError: The formula is not an expression.
    """
    try:
        names = compile(formula, "formula", "eval").co_names
    except SyntaxError:
        raise ClaimError(f"not a formula: {formula!r}") from None
    return set(names) - _FUNCTIONS.keys()


def evaluate(formulas: Sequence[str], columns: Mapping[str, Values]) -> pd.DataFrame:
    """Evaluate formulas row by row.

    Args:
        formulas: Expressions with numbers, names, `+ - * /`, parentheses and `abs(x)`. These
            functions reduce columns to a single number: `mean(x)`, `median(x)`, `largest(x)`,
            `smallest(x)`, `total(x)`, `count(x)`, Pearson's `correlation(x, y)`, and the rank
            correlations `spearman(x, y)` and `kendall(x, y)` (tau-b).
        columns: Numbers by name.

    Returns:
        A table with one column per formula (0, 1, …) and one row per row of the columns. If all
        results are single numbers, the table has one row, whose name is empty.

    Raises:
        ClaimError: A formula is invalid, has an unknown name, or is undefined because a column
            lacks a row, a divisor is zero, or a correlated column is constant.
    """
    results = [_evaluate_formula(formula, columns) for formula in formulas]
    rows: list[Any] = []
    for result in results:
        if isinstance(result, pd.Series):
            rows.extend(result.index)
    distinct_rows = list(dict.fromkeys(rows))
    table = pd.DataFrame(dict(enumerate(results)), index=distinct_rows or [""])
    is_defined = table.map(math.isfinite).all(axis=1)
    undefined_rows = table.index[~is_defined].tolist()
    if undefined_rows:
        where = f" in row {undefined_rows[0]}" if undefined_rows[0] else ""
        raise ClaimError(
            f"undefined{where}: a row is in one"
            " column only, a division by zero, or the correlation of a constant"
        )
    return table


def _evaluate_formula(formula: str, columns: Mapping[str, Values]) -> Values:
    """Return the value of a formula for each row, or a single number (see `evaluate`)."""
    unknown_names = names_in(formula) - columns.keys()
    if unknown_names:
        raise ClaimError(f"unknown number {min(unknown_names)!r}")
    variables: dict[str, Any] = dict(_FUNCTIONS)
    for name, value in columns.items():
        # With NumPy's numbers, a division by zero has a result and raises no exception.
        variables[name] = value if isinstance(value, pd.Series) else np.float64(value)
    try:
        with np.errstate(all="ignore"):
            result: Any = eval(formula, {"__builtins__": {}}, variables)  # noqa: S307 - our file
        return result if isinstance(result, pd.Series) else float(result)
    except Exception as error:  # a formula may raise any exception
        raise ClaimError(f"not a formula: {formula!r} ({error})") from None
