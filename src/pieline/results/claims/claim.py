"""Claims of the papers: the numbers of each claim, and the statement that tests it."""

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self

import pandas as pd
from pydantic import Field, model_validator

from pieline.core.errors import UserError, pluralize
from pieline.core.records import Frozen, validated
from pieline.core.yamls import read_yaml
from pieline.results.claims.formulas import ClaimError, Values, evaluate, names_in
from pieline.results.claims.tables import Selection

_WORDS = {"==": "equal to", ">=": "at least", "<=": "at most", ">": "above", "<": "below"}
_RELATION = re.compile(r"\s*(==|>=|<=|>|<)\s*")
_STATISTICS = {
    "mean": "the mean",
    "median": "the median",
    "largest": "the largest",
    "count": "the number",
    "correlation": "Pearson's correlation",
    "spearman": "Spearman's rank correlation",
    "kendall": "Kendall's rank correlation",
}
_STATISTIC = re.compile(rf"({'|'.join(_STATISTICS)})\(([^()]*)\)")
_SHARE = re.compile(r"(exactly|at least|at most) ([0-9]+)(%)?")
_CLOSE = 1e-9
"""Largest difference between equal numbers, which allows for floating-point arithmetic."""
_MOST_NAMES = 4
"""Largest number of rows that a summary names if the statement holds in some of the rows."""


class Statement(Frozen):
    """A statement to test: a comparison in each row, or the names of the highest or lowest rows."""

    formula: str = Field(description="A comparison `left > right`, or the column to rank.")
    within: float | None = Field(default=None, ge=0, description="Tolerance of `==`.")
    in_rows: str | None = Field(
        default=None,
        pattern=f"^{_SHARE.pattern}$",
        description="Number of rows in which the comparison must hold; null: all.",
    )
    highest: list[str] | None = Field(default=None, min_length=1)
    lowest: list[str] | None = Field(default=None, min_length=1)

    @model_validator(mode="after")
    def _check_formula(self) -> Self:
        """Check that the formula fits the other fields: a comparison, or a column to rank."""
        if self.highest and self.lowest:
            raise ValueError("set only one of highest and lowest")
        is_comparison = len(self._parts) > 1
        is_restricted = self.within is not None or bool(self.in_rows)
        if self._extreme_rows and (is_comparison or is_restricted):
            raise ValueError("highest and lowest exclude a comparison, within and in_rows")
        if not self._extreme_rows and len(self._parts) != 3:
            raise ValueError("the formula must be one comparison, unless highest or lowest is set")
        if self.within is not None and "==" not in self._parts:
            raise ValueError("within needs a formula with ==")
        return self

    @property
    def _parts(self) -> list[str]:
        """Left side, relation and right side of a comparison; otherwise, only the formula."""
        return _RELATION.split(self.formula)

    @property
    def _extreme_rows(self) -> list[str] | None:
        """Names of the highest or lowest rows, most extreme first; None for a comparison."""
        return self.highest or self.lowest

    def names(self) -> set[str]:
        """Return the names of the numbers in the formula.

        Raises:
            ClaimError: The formula is invalid.
        """
        sides = self._parts[::2]  # without the relation
        return {name for side in sides for name in names_in(side)}

    def in_words(self) -> str:
        """Return the statement as an English phrase."""
        if self._extreme_rows:
            start = "highest" if self.highest else "lowest"
            return f"{self.formula} from the {start}: {', '.join(self._extreme_rows)}"
        left, relation, right = self._parts
        if self.within is None:
            relation_in_words = f"is {_WORDS[relation]}"
        else:
            relation_in_words = f"is within {self.within:g} of"
        statistic = _STATISTIC.fullmatch(left)
        if statistic:
            name, columns = statistic.groups()
            left = f"{_STATISTICS[name]} of {columns.replace(', ', ' and ')}"
            where = ""  # a single number has no rows
        elif self.in_rows:
            where = f" in {self.in_rows} of the rows"
        else:
            where = ", in every row"
        return f"{left} {relation_in_words} {right}{where}"

    def judge(self, columns: Mapping[str, Values]) -> tuple[bool, str]:
        """Return whether the statement holds, and a short summary of the values that decide it.

        With `highest` or `lowest`, the statement fails if a named row and the next row are equal.

        Args:
            columns: Numbers of the formula by name.

        Raises:
            ClaimError: The formula is invalid or undefined for these numbers.
        """
        if self._extreme_rows:
            return self._judge_extremes(self._extreme_rows, columns)
        left, relation, right = self._parts
        table = evaluate([left, right], columns)
        tolerance = _CLOSE + (self.within or 0)
        left_minus_right = table[0] - table[1]
        holds_in_row = _compare(left_minus_right, relation, tolerance)
        if self.in_rows:
            return _judge_count(holds_in_row, self.in_rows)
        holds = bool(holds_in_row.all())
        if len(table) == 1:
            left_value, right_value = table.iloc[0]
            return holds, f"{_format(left_value)} against {_format(right_value)}"
        failing_rows = list(holds_in_row.index[~holds_in_row])
        return holds, _summarize_rows(len(holds_in_row), failing_rows)

    def _judge_extremes(
        self, named_rows: list[str], columns: Mapping[str, Values]
    ) -> tuple[bool, str]:
        """Return whether the named rows have the most extreme values, and a summary."""
        values = evaluate([self.formula], columns)[0]
        ranked = values.sort_index().sort_values(ascending=not self.highest, kind="stable")
        count = len(named_rows)
        # The distance of each named row to the row that follows it.
        distances_to_next = ranked.diff().abs().iloc[1 : count + 1]
        has_ties = bool((distances_to_next <= _CLOSE).any())
        holds = list(ranked.index[:count]) == named_rows and not has_ties
        summary = [f"{row} {_format(value)}" for row, value in ranked.head(_MOST_NAMES).items()]
        return holds, ", ".join(summary)


class Claim(Statement):
    """A claim of a paper in our words, with the numbers and the statement that test it."""

    id: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")
    paper: str
    section: str
    says: str
    numbers: dict[str, Selection] = Field(min_length=1)
    remark: str = ""
    reading: Literal["ours"] | None = Field(
        default=None,
        description="'ours' for a statement that no paper makes in this form; it is counted apart.",
    )
    verify: Literal["holds", "fails"] | None = Field(
        default=None, description="Verdict of `make verify`; null if a number is missing."
    )

    @model_validator(mode="before")
    @classmethod
    def _add_shared_fields(cls, fields: Any) -> Any:
        """Merge the claim's `shared` fields into each of its numbers from a table."""
        if not isinstance(fields, dict) or "shared" not in fields:
            return fields
        without_shared = {name: value for name, value in fields.items() if name != "shared"}
        numbers = without_shared.get("numbers")
        if isinstance(numbers, dict):
            without_shared["numbers"] = {
                name: _merge_shared(fields["shared"], number) for name, number in numbers.items()
            }
        return without_shared

    @property
    def restates(self) -> bool:
        """Whether none of the claim's numbers is measured; such a claim is not counted."""
        return not any(number.measured for number in self.numbers.values())


def _merge_shared(shared: Any, number: Any) -> Any:
    """Merge shared fields into the fields of a selection, whose own values take precedence.

    Mappings such as `where` are merged as well. Numbers from the running text are unchanged.
    """
    both_have_fields = isinstance(shared, dict) and isinstance(number, dict)
    if not both_have_fields or "text" in number:
        return number
    merged = dict(shared)
    for name, value in number.items():
        if isinstance(value, dict) and isinstance(shared.get(name), dict):
            merged[name] = {**shared[name], **value}
        else:
            merged[name] = value
    return merged


def load_claims(path: str | Path) -> list[Claim]:
    """Read published/claims.yaml.

    Raises:
        UserError: A field is invalid, an id is not unique, or the numbers do not match the formula;
            the message names the file and the claim.
    """
    claims = []
    raw_claims = validated(list[Any], read_yaml(path), where=path, hint="see the top of the file")
    for number, fields in enumerate(raw_claims, start=1):
        name = fields.get("id", number) if isinstance(fields, Mapping) else number
        where = f"{path}: claim {name}"
        claim = validated(Claim, fields, where=where, hint="see the other claims")
        _check_names(claim, where)
        claims.append(claim)
    count_by_id = Counter(claim.id for claim in claims)
    repeated = [name for name, count in count_by_id.items() if count > 1]
    if repeated:
        raise UserError(f"duplicate id {repeated[0]!r}", where=path, hint="rename one")
    return claims


def _check_names(claim: Claim, where: str) -> None:
    """Check that the formula of a claim uses all numbers of the claim, and no other numbers.

    Raises:
        UserError: The names differ, or the formula is invalid; `where` starts the message.
    """
    try:
        used = claim.names()
    except ClaimError as error:
        raise UserError(str(error), where=where, hint="correct the formula") from None
    defined = set(claim.numbers)
    different = used ^ defined
    if different:
        first = min(different)
        problem = "unused" if first in defined else "unknown"
        raise UserError(
            f"{problem} number {first!r}", where=where, hint="define and use each number"
        )


def _compare(difference: Any, relation: str, tolerance: float = _CLOSE) -> Any:
    """Return whether a relation holds, given the difference left - right or one per row."""
    return {
        "==": abs(difference) <= tolerance,
        ">=": difference >= -tolerance,
        "<=": difference <= tolerance,
        ">": difference > tolerance,
        "<": difference < -tolerance,
    }[relation]


def _judge_count(holds_in_row: pd.Series, in_rows: str) -> tuple[bool, str]:
    """Return whether a comparison holds in the stated number of rows, and a summary.

    Args:
        holds_in_row: Whether the comparison holds, by row.
        in_rows: Stated number of rows, such as `at least 3` or `exactly 50%`.
    """
    [(quantifier, number, percent_sign)] = _SHARE.findall(in_rows)
    stated_count = float(number)
    if percent_sign:
        stated_count *= len(holds_in_row) / 100
    relation = {"exactly": "==", "at least": ">=", "at most": "<="}[quantifier]
    matching_rows = sorted(holds_in_row.index[holds_in_row])
    holds = _compare(len(matching_rows) - stated_count, relation)
    summary = f"{len(matching_rows)} of {pluralize(len(holds_in_row), 'row')}"
    if 0 < len(matching_rows) <= _MOST_NAMES:
        summary += f": {', '.join(matching_rows)}"
    return holds, summary


def _format(value: float) -> str:
    """Format a number with at most four decimals, without trailing zeros."""
    return f"{value:.4f}".rstrip("0").rstrip(".")


def _summarize_rows(rows: int, failing_rows: list[str]) -> str:
    """Return in how many rows a comparison holds, or the first three rows in which it fails."""
    if not failing_rows:
        return "holds in the only row" if rows == 1 else f"holds in all {rows} rows"
    more = f" and {len(failing_rows) - 3} more" if len(failing_rows) > 3 else ""
    named = ", ".join(failing_rows[:3])
    return f"fails in {len(failing_rows)} of {pluralize(rows, 'row')}: {named}{more}"
