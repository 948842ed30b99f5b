"""Arithmetic over named columns of numbers, as claims write it: `with_instruction - plain`."""

import ast
import math
import operator
import statistics
from collections.abc import Callable, Mapping
from itertools import chain

Row = tuple[str, ...]
Values = dict[Row, float]
"""Numbers by the names of their row; a single number stands in the row without names."""

SINGLE: Row = ()
_OPERATIONS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_REDUCTIONS: dict[str, Callable[[list[float]], float]] = {
    "average": statistics.fmean,
    "median": statistics.median,
    "largest": max,
    "smallest": min,
    "total": math.fsum,
}


class FormulaError(ValueError):
    """A formula that is no such arithmetic, or whose columns have different rows."""


def names_in(formula: str) -> set[str]:
    """The names of columns that a formula uses.

    Raises:
        FormulaError: the text is no expression.
    """
    nodes = list(ast.walk(_parse(formula)))
    functions = [node.func for node in nodes if isinstance(node, ast.Call)]
    return {node.id for node in nodes if isinstance(node, ast.Name) and node not in functions}


def evaluate(formula: str, columns: Mapping[str, Values]) -> Values:
    """Compute a formula row by row; a single number applies to every row.

    Args:
        formula: numbers, names, `+ - * /`, parentheses, `abs(x)`, and `average(x)`, `median(x)`,
            `largest(x)`, `smallest(x)` and `total(x)`, which make one number of columns.
        columns: the numbers of each name.

    Raises:
        FormulaError: anything else, an unknown name, columns with different rows, or a division
            by zero.
    """
    return _value(_parse(formula), columns)


def single(values: Values) -> float:
    """The number of a formula that must come to a single one.

    Raises:
        FormulaError: it came to a column.
    """
    if set(values) != {SINGLE}:
        raise FormulaError(f"one number expected, found {len(values)}")
    return values[SINGLE]


def _parse(formula: str) -> ast.expr:
    try:
        return ast.parse(formula.strip(), mode="eval").body
    except SyntaxError:
        raise FormulaError(f"not a formula: {formula!r}") from None


def _value(node: ast.expr, columns: Mapping[str, Values]) -> Values:
    match node:
        case ast.Constant(value=int() | float() as number):
            return {SINGLE: float(number)}
        case ast.Name(id=name):
            if name not in columns:
                raise FormulaError(f"unknown name {name!r}")
            return columns[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return {row: -number for row, number in _value(operand, columns).items()}
        case ast.BinOp(left=left, op=operation, right=right) if type(operation) in _OPERATIONS:
            pairs = paired(_value(left, columns), _value(right, columns))
            compute = _OPERATIONS[type(operation)]
            try:
                return {row: compute(*pair) for row, pair in pairs.items()}
            except ZeroDivisionError:
                raise FormulaError("division by zero") from None
        case ast.Call(func=ast.Name(id="abs"), args=[argument], keywords=[]):
            return {row: abs(number) for row, number in _value(argument, columns).items()}
        case ast.Call(func=ast.Name(id=name), args=[_, *_], keywords=[]) if name in _REDUCTIONS:
            given = [_value(argument, columns).values() for argument in node.args]
            return {SINGLE: _REDUCTIONS[name](list(chain.from_iterable(given)))}
    raise FormulaError(f"not allowed in a formula: {ast.unparse(node)}")


def paired(left: Values, right: Values) -> dict[Row, tuple[float, float]]:
    """Both numbers of each row.

    Raises:
        FormulaError: the two have different rows, and neither is a single number.
    """
    if set(right) == {SINGLE}:
        return {row: (number, right[SINGLE]) for row, number in left.items()}
    if set(left) == {SINGLE}:
        return {row: (left[SINGLE], number) for row, number in right.items()}
    if set(left) != set(right):
        lonely = sorted(set(left) ^ set(right))[0]
        raise FormulaError(f"row {' / '.join(lonely)} stands in one column only")
    return {row: (number, right[row]) for row, number in left.items()}
