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
"""Numbers by row name, or a single number that applies to every row."""


class ClaimError(ValueError):
    """Error in the formula or in a selection of numbers of a claim."""


def _over_all(statistic: Callable[[Any], Any]) -> Callable[..., float]:
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
        formulas: Expressions with numbers, names, `+ - * /`, parentheses and `abs(x)`. Functions
            that reduce columns to a number are `mean(x)`, `median(x)`, `largest(x)`, `smallest(x)`,
            `total(x)`, `count(x)`, Pearson's `correlation(x, y)` and the rank correlations
            `spearman(x, y)` and `kendall(x, y)` (tau-b).
        columns: Numbers by name.

    Returns:
        A table with one column per formula; if all results are single numbers, its only row is
        unnamed.

    Raises:
        ClaimError: A formula is invalid, has an unknown name, or is undefined because a column
            lacks a row, a divisor is zero, or a correlated column is constant.
    """
    values = [_value(formula, columns) for formula in formulas]
    rows = dict.fromkeys(
        row for value in values if isinstance(value, pd.Series) for row in value.index
    )
    table = pd.DataFrame(dict(enumerate(values)), index=list(rows) or [""])
    undefined = table.index[~table.map(math.isfinite).all(axis=1)].tolist()
    if undefined:
        raise ClaimError(
            f"undefined{f' in row {undefined[0]}' if undefined[0] else ''}: a row is in one"
            " column only, a division by zero, or the correlation of a constant"
        )
    return table


def _value(formula: str, columns: Mapping[str, Values]) -> Values:
    if unknown := names_in(formula) - columns.keys():
        raise ClaimError(f"unknown number {min(unknown)!r}")
    known = _FUNCTIONS | {
        name: value if isinstance(value, pd.Series) else np.float64(value)
        for name, value in columns.items()
    }
    try:
        with np.errstate(all="ignore"):
            result: Any = eval(formula, {"__builtins__": {}}, known)  # noqa: S307 - our own file
        return result if isinstance(result, pd.Series) else float(result)
    except Exception as error:  # a formula may raise any exception
        raise ClaimError(f"not a formula: {formula!r} ({error})") from None
