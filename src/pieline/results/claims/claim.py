"""Claims of the papers: their numbers, and the statements that test them."""

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
"""Difference up to which numbers count as equal, since printed numbers have few decimals."""


class Statement(Frozen):
    """A statement to test: a comparison in each row, or which rows are highest or lowest."""

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
    def _one_statement(self) -> Self:
        if self.highest and self.lowest:
            raise ValueError("set only one of highest and lowest")
        if self._first and (len(self._parts) > 1 or self.within is not None or self.in_rows):
            raise ValueError("highest and lowest exclude a comparison, within and in_rows")
        if not self._first and len(self._parts) != 3:
            raise ValueError("the formula must be one comparison, unless highest or lowest is set")
        if self.within is not None and self._parts[1] != "==":
            raise ValueError("within needs a formula with ==")
        return self

    @property
    def _parts(self) -> list[str]:
        return _RELATION.split(self.formula)

    @property
    def _first(self) -> list[str] | None:
        return self.highest or self.lowest

    def names(self) -> set[str]:
        """Return the names of the numbers in the formula.

        Raises:
            ClaimError: The formula is invalid.
        """
        return {name for side in self._parts[::2] for name in names_in(side)}

    def in_words(self) -> str:
        """Return the statement as a phrase."""
        if self._first:
            start = "highest" if self.highest else "lowest"
            return f"{self.formula} from the {start}: {', '.join(self._first)}"
        left, relation, right = self._parts
        near = f"is {_WORDS[relation]}" if self.within is None else f"is within {self.within:g} of"
        where = f" in {self.in_rows} of the rows" if self.in_rows else ", in every row"
        if statistic := _STATISTIC.fullmatch(left):
            left = f"{_STATISTICS[statistic[1]]} of {statistic[2].replace(', ', ' and ')}"
            where = ""  # a single number has no rows
        return f"{left} {near} {right}{where}"

    def judge(self, columns: Mapping[str, Values]) -> tuple[bool, str]:
        """Return whether the statement holds for the numbers, and a short summary of their values.

        If `highest` or `lowest` is set, a tie between a named row and the next row is a failure.

        Raises:
            ClaimError: The formula is invalid or undefined for these numbers.
        """
        table = evaluate(self._parts[::2], columns)
        if self._first:
            ranked = table[0].sort_index().sort_values(ascending=not self.highest, kind="stable")
            named = len(self._first)
            steps = ranked.diff().abs().iloc[1 : named + 1]
            values = [f"{row} {_number(value)}" for row, value in ranked.head(4).items()]
            holds = list(ranked.index[:named]) == self._first and bool((steps > _CLOSE).all())
            return holds, ", ".join(values)
        holds_in_row = _compare(table[0] - table[1], self._parts[1], _CLOSE + (self.within or 0))
        if self.in_rows:
            return _judge_count(holds_in_row, self.in_rows)
        if len(table) == 1:
            left, right = table.iloc[0]
            return bool(holds_in_row.all()), f"{_number(left)} against {_number(right)}"
        return bool(holds_in_row.all()), _summarize_rows(
            len(holds_in_row), list(holds_in_row.index[~holds_in_row])
        )


class Claim(Statement):
    """A claim of a paper in our words, with its numbers and the statement that tests it."""

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
    def _fill_in_what_is_shared(cls, fields: Any) -> Any:
        """Merge the fields of `shared` into every number from a table."""
        if not isinstance(fields, dict) or "shared" not in fields:
            return fields
        own = {name: value for name, value in fields.items() if name != "shared"}
        if isinstance(own.get("numbers"), dict):
            own["numbers"] = {
                name: _merged(fields["shared"], number) for name, number in own["numbers"].items()
            }
        return own

    @property
    def restates(self) -> bool:
        """Whether the claim has no measured number, in which case it is not counted."""
        return not any(number.measured for number in self.numbers.values())


def _merged(shared: Any, number: Any) -> Any:
    """Merge shared fields into the fields of a selection, whose own values take precedence.

    Mappings such as `where` are merged as well. Numbers from the running text are unchanged.
    """
    if not (isinstance(shared, dict) and isinstance(number, dict)) or "text" in number:
        return number
    inner = {
        name: shared[name] | number[name]
        for name in shared.keys() & number
        if isinstance(shared[name], dict) and isinstance(number[name], dict)
    }
    return shared | number | inner


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
        try:
            used = claim.names()
        except ClaimError as error:
            raise UserError(str(error), where=where, hint="correct the formula") from None
        if different := used ^ set(claim.numbers):
            word = "unused" if min(different) in claim.numbers else "unknown"
            raise UserError(
                f"{word} number {min(different)!r}",
                where=where,
                hint="define and use each number",
            )
        claims.append(claim)
    repeated = [name for name, times in Counter(claim.id for claim in claims).items() if times > 1]
    if repeated:
        raise UserError(f"duplicate id {repeated[0]!r}", where=path, hint="rename one")
    return claims


def _compare(difference: Any, relation: str, close: float = _CLOSE) -> Any:
    return {
        "==": abs(difference) <= close,
        ">=": difference >= -close,
        "<=": difference <= close,
        ">": difference > close,
        "<": difference < -close,
    }[relation]


def _judge_count(holds_in_row: pd.Series, in_rows: str) -> tuple[bool, str]:
    ((measure, number, percent),) = _SHARE.findall(in_rows)
    expected = int(number) * (len(holds_in_row) / 100 if percent else 1)
    relation = {"exactly": "==", "at least": ">=", "at most": "<="}[measure]
    matches = sorted(holds_in_row.index[holds_in_row])
    which = f": {', '.join(matches)}" if 0 < len(matches) <= 4 else ""
    return _compare(
        len(matches) - expected, relation
    ), f"{len(matches)} of {pluralize(len(holds_in_row), 'row')}{which}"


def _number(value: float) -> str:
    return f"{value:.4f}".rstrip("0").rstrip(".")


def _summarize_rows(rows: int, against: list[str]) -> str:
    if not against:
        return "holds in the only row" if rows == 1 else f"holds in all {rows} rows"
    more = f" and {len(against) - 3} more" if len(against) > 3 else ""
    return f"fails in {len(against)} of {pluralize(rows, 'row')}: {', '.join(against[:3])}{more}"
