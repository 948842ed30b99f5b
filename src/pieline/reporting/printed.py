"""The papers' printed numbers, and their comparison with ours."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from math import isclose
from pathlib import Path
from typing import Literal

from pydantic import Field, PositiveInt

from pieline.core.errors import UserError, pluralize
from pieline.core.files import line_ending_note, sha256
from pieline.core.records import Frozen, validated
from pieline.core.tables import read_table
from pieline.core.yamls import read_yaml

_SCALES = {"M": 1e6, "B": 1e9}
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?(e-[0-9]+)?[MB]?")
_LICENCE_WORDS = re.compile(r"(?i)\s*\b(licen[cs]e|agreement)\b")
Reproduced = Literal["yes", "within sampling range", "no"]
VERDICTS = {
    "yes": "reproduced",
    "within sampling range": "within sampling range",
    "no": "not reproduced",
}
"""Verdicts on a cell, by the value of its CSV column `reproduced`."""


class PrintedFile(Frozen):
    """Schema and digest of a file in published/, to detect changes to printed numbers.

    Attributes:
        texts: Names of the text columns.
        numbers: Names of the numeric columns, whose cells may be empty.
        rows: Number of rows.
        sha256: SHA-256 of the file.
    """

    texts: list[str] = Field(min_length=1)
    numbers: tuple[str, ...] = ()
    rows: PositiveInt
    sha256: str = Field(pattern="^[0-9a-f]{64}$")


class Comparison(Frozen):
    """Comparison of our number with the printed one.

    Attributes:
        ours: Our number in the unit of the printed table; None if unknown.
        printed: The printed number; None if unknown.
        comparable: Whether there is a printed number and no obstacle to comparing the two, such as
            different data or a different checkpoint.
        reason: Why the two are not comparable, why ours is missing, or the only readings under
            which ours is within sampling range; empty otherwise.
        tolerance: Largest difference that counts as reproduced, in the same unit.
        ranges: Sampling ranges, by reading (possible interpretation) of the printed number; our
            number is within sampling range if it is in one of them.
        decimals: Decimals of the printed number, if different from its table's.
    """

    ours: float | None
    printed: float | None
    comparable: bool
    reason: str
    tolerance: float = 0.0
    ranges: Mapping[str, tuple[float, float]] = {}
    decimals: int | None = None

    @property
    def reproduced(self) -> Reproduced | None:
        """Whether our number reproduces the printed one; None if the two cannot be compared."""
        difference = self.difference
        if not self.comparable or difference is None:
            return None
        # Rounding explains at most half a unit of the last printed decimal, because halves are
        # rounded up or down. Floating-point subtraction can turn a half into slightly more.
        decimals = 2 if self.decimals is None else self.decimals
        largest = self.tolerance + 0.5 * 10.0**-decimals
        if abs(difference) <= largest or isclose(abs(difference), largest, rel_tol=1e-9):
            return "yes"
        return "within sampling range" if self.readings() else "no"

    def readings(self) -> list[str]:
        """Return the readings of the printed number whose sampling range includes our number."""
        return [
            reading
            for reading, (low, high) in self.ranges.items()
            if self.ours is not None and low <= self.ours <= high
        ]

    def allowed(self) -> str:
        """Format the sampling range of each reading, or the tolerance if there are no ranges."""
        if not self.ranges:
            return f"{self.tolerance:g}"
        return "; ".join(
            f"{low:.3f} to {high:.3f} if {reading}" for reading, (low, high) in self.ranges.items()
        )

    @property
    def difference(self) -> float | None:
        """Ours minus printed; None if either is unknown."""
        if self.ours is None or self.printed is None:
            return None
        return self.ours - self.printed


class StatedText(Frozen):
    """Our text about a model, setting or package, and the printed one.

    The texts are not computed, so they never count as reproduced. Either text may be empty;
    `reason` states whether they are equal, how they differ, or why one is missing.
    """

    ours: str
    printed: str
    reason: str


def state(ours: str, printed: str, *, reason: str = "") -> StatedText:
    """Compare our text with the printed one; by default, derive `reason` from the texts."""
    if not reason:
        names = (_LICENCE_WORDS.sub("", text) for text in (ours, printed))
        alike = [re.sub(r"[\s_-]+", "-", name) for name in names]
        if not printed:
            reason = "not stated in the paper"
        elif ours == printed:
            reason = "as printed"
        else:
            reason = "spelled differently" if alike[0] == alike[1] else "not as printed"
    return StatedText(ours=ours, printed=printed, reason=reason)


def compare(
    ours: float | None,
    printed: float | None,
    *,
    obstacles: Sequence[str],
    tolerance: float = 0.0,
    ranges: Mapping[str, tuple[float, float]] | None = None,
    decimals: int | None = None,
) -> Comparison:
    """Compare our number with the printed one.

    Args:
        ours: Our number; None if unknown.
        printed: The printed number; None if the paper prints none.
        obstacles: Reasons why the two are not comparable, most important first.
        tolerance: Largest difference that counts as reproduced, in the same unit.
        ranges: Sampling ranges (see `Comparison`).
        decimals: Decimals of the printed number, if different from its table's.
    """
    problems = [*obstacles]
    if printed is None:
        problems.append("the paper prints no such number")
    comparison = Comparison(
        ours=ours,
        printed=printed,
        comparable=not problems,
        reason="; ".join(problems),
        tolerance=tolerance,
        ranges=ranges or {},
        decimals=decimals,
    )
    readings = comparison.readings()
    if comparison.reproduced == "within sampling range" and len(readings) < len(comparison.ranges):
        reason = f"within sampling range only if {' or '.join(readings)}"
        return comparison.model_copy(update={"reason": reason})
    return comparison


def read_printed(path: str | Path) -> list[dict[str, str]]:
    """Read a CSV of published/ as text.

    Raises:
        UserError: The file is missing, is not listed in schema.yaml next to it, or differs from its
            entry in columns, numbers, row count or digest.
    """
    path = Path(path)
    schema = path.with_name("schema.yaml")
    known = _schema(schema)
    if path.stem not in known:
        raise UserError("unknown table", where=path, hint=f"add it to {schema}")
    expected = known[path.stem]
    hint = f"restore the printed numbers, or update {schema}"
    columns = [*expected.texts, *expected.numbers]
    rows = read_table(path, columns, more=[], hint=hint)
    for line, row in rows:
        for name in expected.numbers:
            if row[name] and not _NUMBER.fullmatch(row[name]):
                problem = f"{name}: {row[name][:40]!r} is not a number"
                raise UserError(problem, where=f"{path}:{line}", hint=hint)
    if len(rows) != expected.rows:
        raise UserError(
            f"{pluralize(len(rows), 'row')}, expected {expected.rows}", where=path, hint=hint
        )
    if (digest := sha256(path)) != expected.sha256:
        problem = f"SHA-256 is {digest}, expected {expected.sha256}{line_ending_note(path)}"
        raise UserError(problem, where=path, hint=hint)
    return [row for _, row in rows]


@cache
def _schema(path: Path) -> dict[str, PrintedFile]:
    return validated(dict[str, PrintedFile], read_yaml(path), where=path, hint="fix it")


def read_published(
    path: str | Path, keys: Sequence[str]
) -> dict[tuple[str, ...], dict[str, float]]:
    """Read a CSV of printed numbers.

    Args:
        path: File in published/.
        keys: Columns that identify a row.

    Returns:
        The numbers of each row by column, by the values of `keys`. Empty cells and texts are
        omitted; 110M becomes 110,000,000.

    Raises:
        UserError: `read_printed` fails or a key column is missing.
    """
    rows = {}
    for row in read_printed(path):
        if missing := [key for key in keys if key not in row]:
            raise UserError(f"no column {missing[0]!r}", where=path, hint="fix the keys")
        numbers = {}
        for column, text in row.items():
            if column not in keys and (value := number_in(text)) is not None:
                numbers[column] = value
        rows[tuple(row[key] for key in keys)] = numbers
    return rows


def number_in(text: str) -> float | None:
    """Parse a number, possibly with the suffix M or B; None if the text is not a number."""
    digits, scale = (text[:-1], _SCALES[text[-1]]) if text[-1:] in _SCALES else (text, 1.0)
    try:
        return float(digits) * scale
    except ValueError:
        return None


def rounded(value: float | None, decimals: int) -> str:
    """Format a number with fixed decimals and no negative zero; empty if it is unknown."""
    if value is None:
        return ""
    text = f"{value:.{decimals}f}"
    return text.removeprefix("-") if float(text) == 0 else text


def general(value: float | None) -> str:
    """Format a setting with as many digits as it needs, such as 2e-5; empty if it is unknown."""
    return "" if value is None else f"{value:g}".replace("e-0", "e-")


def probability(value: float) -> str:
    """Format a p-value with three decimals, or as `< 0.001`."""
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def per_cent(share: float | None) -> float | None:
    """Convert a fraction to percent; None stays None."""
    return None if share is None else 100 * share
