"""What a claim says of numbers: the predicates of claims.yaml and how each is judged."""

import statistics
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from scipy import stats

from pieline.results.claims.formulas import Row, Values, evaluate, names_in, paired, single

Relation = Literal["above", "below", "at_least", "at_most", "equal_to"]
_WORDS = {
    "above": "above",
    "below": "below",
    "at_least": "at least",
    "at_most": "at most",
    "equal_to": "equal to",
}
_CLOSE = 1e-9
"""Differences below this are floating-point noise: printed numbers have few decimals."""


@dataclass(frozen=True)
class Judgement:
    """Whether a predicate holds, and in a few words what the numbers came to."""

    holds: bool
    found: str


class _Predicate(BaseModel, ABC):
    model_config = ConfigDict(extra="forbid", frozen=True)

    @abstractmethod
    def judge(self, columns: Mapping[str, Values]) -> Judgement:
        """Judge it on the numbers of each name."""

    @abstractmethod
    def in_words(self) -> str:
        """The predicate as a phrase."""

    @abstractmethod
    def formulas(self) -> list[str]:
        """The formulas that it uses."""

    def names(self) -> set[str]:
        """The names of numbers that it uses."""
        return {name for formula in self.formulas() for name in names_in(formula)}


class Comparison(_Predicate):
    """`left` stands in `relation` to `right`, in every row if they are columns."""

    kind: Literal["comparison"]
    left: str
    relation: Relation
    right: str

    def judge(self, columns: Mapping[str, Values]) -> Judgement:
        """Judge it row by row."""
        pairs = paired(evaluate(self.left, columns), evaluate(self.right, columns))
        against = [row for row, pair in pairs.items() if not _compare(self.relation, *pair)]
        if len(pairs) == 1:
            ((left, right),) = pairs.values()
            return Judgement(not against, f"{_number(left)} against {_number(right)}")
        return Judgement(not against, _found_rows(len(pairs), against))

    def in_words(self) -> str:
        """The predicate as a phrase."""
        return f"{self.left} is {_WORDS[self.relation]} {self.right}, in every row"

    def formulas(self) -> list[str]:
        """The formulas that it uses."""
        return [self.left, self.right]


class Sign(_Predicate):
    """A number is positive or negative, in every row if it is a column."""

    kind: Literal["sign"]
    of: str
    sign: Literal["positive", "negative"]

    def judge(self, columns: Mapping[str, Values]) -> Judgement:
        """Judge it row by row."""
        relation: Relation = "above" if self.sign == "positive" else "below"
        values = evaluate(self.of, columns)
        against = [row for row, number in values.items() if not _compare(relation, number, 0)]
        if len(values) == 1:
            return Judgement(not against, _number(next(iter(values.values()))))
        return Judgement(not against, _found_rows(len(values), against))

    def in_words(self) -> str:
        """The predicate as a phrase."""
        return f"{self.of} is {self.sign}, in every row"

    def formulas(self) -> list[str]:
        """The formulas that it uses."""
        return [self.of]


class Ordering(_Predicate):
    """The rows of a column, from its highest or lowest number on, begin with these names."""

    kind: Literal["ordering"]
    of: str
    start: Literal["highest", "lowest"]
    rows: list[str] = Field(min_length=1)

    def judge(self, columns: Mapping[str, Values]) -> Judgement:
        """Judge it; a tie between the named rows and the next counts against it."""
        values = evaluate(self.of, columns)
        direction = -1 if self.start == "highest" else 1
        ranked = sorted(values, key=lambda row: (direction * values[row], row))
        found = [_row(row) for row in ranked[: len(self.rows)]]
        steps = [
            direction * (values[after] - values[before])
            for before, after in pairwise(ranked[: len(self.rows) + 1])
        ]
        distinct = all(step > _CLOSE for step in steps)
        first = ", ".join(f"{_row(row)} {_number(values[row])}" for row in ranked[:4])
        return Judgement(found == self.rows and distinct, first)

    def in_words(self) -> str:
        """The predicate as a phrase."""
        return f"{self.of} from the {self.start}: {', '.join(self.rows)}"

    def formulas(self) -> list[str]:
        """The formulas that it uses."""
        return [self.of]


class Average(_Predicate):
    """The mean or median over the rows stands in a relation to a target, or lies about it."""

    kind: Literal["average"]
    of: str
    statistic: Literal["mean", "median"] = "mean"
    relation: Relation | Literal["about"]
    target: str
    tolerance: float = Field(default=0.0, ge=0)

    def judge(self, columns: Mapping[str, Values]) -> Judgement:
        """Judge it."""
        numbers = list(evaluate(self.of, columns).values())
        middle = statistics.fmean(numbers) if self.statistic == "mean" else None
        found = statistics.median(numbers) if middle is None else middle
        target = single(evaluate(self.target, columns))
        if self.relation == "about":
            holds = abs(found - target) <= self.tolerance + _CLOSE
        else:
            holds = _compare(self.relation, found, target)
        return Judgement(holds, f"{_number(found)} against {_number(target)}")

    def in_words(self) -> str:
        """The predicate as a phrase."""
        relation = "within" if self.relation == "about" else _WORDS[self.relation]
        about = f"{self.tolerance:g} of " if self.relation == "about" else ""
        return f"the {self.statistic} of {self.of} is {relation} {about}{self.target}"

    def formulas(self) -> list[str]:
        """The formulas that it uses."""
        return [self.of, self.target]


class Correlation(_Predicate):
    """The correlation of two columns over their rows is above or below a threshold."""

    kind: Literal["correlation"]
    between: tuple[str, str]
    method: Literal["pearson", "spearman"] = "pearson"
    relation: Literal["above", "below"]
    threshold: float = Field(ge=-1, le=1)

    def judge(self, columns: Mapping[str, Values]) -> Judgement:
        """Judge it; a constant column has no correlation, which counts against it."""
        pairs = list(paired(*(evaluate(name, columns) for name in self.between)).values())
        left, right = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        if len(set(left)) == 1 or len(set(right)) == 1:
            return Judgement(False, "a column is constant")
        if self.method == "pearson":
            found = float(stats.pearsonr(left, right).statistic)
        else:
            found = float(stats.spearmanr(left, right).statistic)
        return Judgement(
            _compare(self.relation, found, self.threshold), f"{found:.2f} over {len(pairs)} rows"
        )

    def in_words(self) -> str:
        """The predicate as a phrase."""
        left, right = self.between
        return (
            f"{self.method.capitalize()}'s correlation of {left} and {right} is"
            f" {self.relation} {self.threshold:g}"
        )

    def formulas(self) -> list[str]:
        """The formulas that it uses."""
        return list(self.between)


class Within(_Predicate):
    """A number lies within a tolerance of a target, in every row if it is a column."""

    kind: Literal["within"]
    value: str
    target: str
    tolerance: float = Field(ge=0)

    def judge(self, columns: Mapping[str, Values]) -> Judgement:
        """Judge it row by row."""
        pairs = paired(evaluate(self.value, columns), evaluate(self.target, columns))
        limit = self.tolerance + _CLOSE
        against = [row for row, (value, target) in pairs.items() if abs(value - target) > limit]
        if len(pairs) == 1:
            ((value, target),) = pairs.values()
            return Judgement(not against, f"{_number(value)} against {_number(target)}")
        return Judgement(not against, _found_rows(len(pairs), against))

    def in_words(self) -> str:
        """The predicate as a phrase."""
        return f"{self.value} is within {self.tolerance:g} of {self.target}, in every row"

    def formulas(self) -> list[str]:
        """The formulas that it uses."""
        return [self.value, self.target]


class Count(_Predicate):
    """In so many rows `left` stands in `relation` to `right`."""

    kind: Literal["count"]
    left: str
    relation: Relation
    right: str
    rows: Literal["exactly", "at_least", "at_most"]
    number: int | None = Field(default=None, ge=0)
    share: float | None = Field(default=None, ge=0, le=1, description="Of all rows.")

    @model_validator(mode="after")
    def _one_measure(self) -> Self:
        if (self.number is None) == (self.share is None):
            raise ValueError("give either number or share")
        return self

    def judge(self, columns: Mapping[str, Values]) -> Judgement:
        """Judge it."""
        pairs = paired(evaluate(self.left, columns), evaluate(self.right, columns))
        found = [row for row, pair in pairs.items() if _compare(self.relation, *pair)]
        wanted = self.number if self.number is not None else (self.share or 0) * len(pairs)
        relation: Relation = "equal_to" if self.rows == "exactly" else self.rows
        few = 0 < len(found) <= 4
        which = f": {', '.join(sorted(map(_row, found)))}" if few else ""
        return Judgement(
            _compare(relation, len(found), wanted), f"{len(found)} of {len(pairs)} rows{which}"
        )

    def in_words(self) -> str:
        """The predicate as a phrase."""
        many = f"{self.number}" if self.number is not None else f"{100 * (self.share or 0):g} %"
        return (
            f"{self.left} is {_WORDS[self.relation]} {self.right} in"
            f" {self.rows.replace('_', ' ')} {many} of the rows"
        )

    def formulas(self) -> list[str]:
        """The formulas that it uses."""
        return [self.left, self.right]


AnyPredicate = Comparison | Sign | Ordering | Average | Correlation | Within | Count
Predicate = Annotated[AnyPredicate, Field(discriminator="kind")]


def _compare(relation: Relation, left: float, right: float) -> bool:
    difference = left - right
    return {
        "above": difference > _CLOSE,
        "below": difference < -_CLOSE,
        "at_least": difference >= -_CLOSE,
        "at_most": difference <= _CLOSE,
        "equal_to": abs(difference) <= _CLOSE,
    }[relation]


def _number(value: float) -> str:
    return f"{value:.4f}".rstrip("0").rstrip(".")


def _row(row: Row) -> str:
    return " / ".join(row)


def _found_rows(rows: int, against: list[Row]) -> str:
    if not against:
        return f"so in all {rows} rows"
    named = ", ".join(map(_row, against[:3]))
    more = f" and {len(against) - 3} more" if len(against) > 3 else ""
    return f"not so in {len(against)} of {rows} rows: {named}{more}"
