"""Read the numbers that the papers print, and compare them with our numbers."""

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
"""Verdict on a number for each value of `Comparison.reproduced`."""


class PrintedFile(Frozen):
    """Columns, size and digest of a file in published/, which reveal changes to printed numbers.

    Attributes:
        texts: Names of the columns that contain texts.
        numbers: Names of the columns that contain only numbers and empty cells.
        rows: Number of rows below the header.
        sha256: SHA-256 of the file.
    """

    texts: list[str] = Field(min_length=1)
    numbers: tuple[str, ...] = ()
    rows: PositiveInt
    sha256: str = Field(pattern="^[0-9a-f]{64}$")


class Comparison(Frozen):
    """Comparison of our number with the printed number.

    Attributes:
        ours: Our number in the unit of the printed table; None if unknown.
        printed: The printed number; None if unknown.
        comparable: Whether there is a printed number and no obstacle to the comparison, such as
            different data or a different checkpoint.
        reason: Why the numbers cannot be compared or why our number is missing. For a number that
            is within sampling range for only some readings, a text that lists these readings.
            Otherwise empty.
        tolerance: Largest difference that counts as reproduced, in the unit of the numbers.
        ranges: Sampling ranges by reading (possible interpretation) of the printed number. Our
            number is within sampling range if at least one range contains it.
        decimals: Decimals of the printed number; None for two decimals.
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
        """Whether our number reproduces the printed number; None if the two cannot be compared."""
        if not self.comparable or self.difference is None:
            return None
        decimals = 2 if self.decimals is None else self.decimals
        largest_rounding = 0.5 * 10.0**-decimals
        largest_difference = self.tolerance + largest_rounding
        difference = abs(self.difference)
        # Floating-point subtraction can turn a half into slightly more than a half.
        is_nearly_largest = isclose(difference, largest_difference, rel_tol=1e-9)
        if difference <= largest_difference or is_nearly_largest:
            return "yes"
        return "within sampling range" if self.readings() else "no"

    def readings(self) -> list[str]:
        """Return the readings of the printed number whose sampling range contains our number."""
        if self.ours is None:
            return []
        return [reading for reading, (low, high) in self.ranges.items() if low <= self.ours <= high]

    def allowed(self) -> str:
        """Return the sampling range of each reading as text, or the tolerance if there are none."""
        if not self.ranges:
            return f"{self.tolerance:g}"
        return "; ".join(
            f"{low:.3f} to {high:.3f} if {reading}" for reading, (low, high) in self.ranges.items()
        )

    @property
    def difference(self) -> float | None:
        """Our number minus the printed number; None if one of the two is unknown."""
        if self.ours is None or self.printed is None:
            return None
        return self.ours - self.printed


class StatedText(Frozen):
    """Our text about a model, setting or package, and the text that the paper prints.

    The texts are not computed, so they never count as reproduced.

    Attributes:
        ours: Our text; empty if it is missing.
        printed: The printed text; empty if it is missing.
        reason: Whether the texts are equal, how they differ, or why one of them is missing.
    """

    ours: str
    printed: str
    reason: str


def state(ours: str, printed: str, *, reason: str = "") -> StatedText:
    """Return our text and the printed text, with the result of their comparison as the reason.

    Args:
        ours: Our text; empty if it is missing.
        printed: The printed text; empty if it is missing.
        reason: Reason that replaces the comparison; if it is empty, the texts are compared.
    """
    if reason:
        return StatedText(ours=ours, printed=printed, reason=reason)
    if not printed:
        reason = "not stated in the paper"
    elif ours == printed:
        reason = "as printed"
    elif _normalize_spelling(ours) == _normalize_spelling(printed):
        reason = "spelled differently"
    else:
        reason = "not as printed"
    return StatedText(ours=ours, printed=printed, reason=reason)


def _normalize_spelling(text: str) -> str:
    """Remove "license" and "agreement" from a text; replace spaces and underscores by hyphens."""
    return re.sub(r"[\s_-]+", "-", _LICENCE_WORDS.sub("", text))


def compare(
    ours: float | None,
    printed: float | None,
    *,
    obstacles: Sequence[str],
    tolerance: float = 0.0,
    ranges: Mapping[str, tuple[float, float]] | None = None,
    decimals: int | None = None,
) -> Comparison:
    """Compare our number with the printed number.

    Args:
        ours: Our number; None if it is unknown.
        printed: The printed number; None if the paper prints none.
        obstacles: Reasons why the numbers cannot be compared, most important first.
        tolerance: Largest difference that counts as reproduced, in the unit of the numbers.
        ranges: Sampling ranges (see `Comparison`).
        decimals: Decimals of the printed number; None for two decimals.
    """
    problems = list(obstacles)
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
    is_in_every_range = len(readings) == len(comparison.ranges)
    if comparison.reproduced == "within sampling range" and not is_in_every_range:
        reason = f"within sampling range only if {' or '.join(readings)}"
        return comparison.model_copy(update={"reason": reason})
    return comparison


def read_printed(path: str | Path) -> list[dict[str, str]]:
    """Read a CSV file of published/, and check it against the file's entry in schema.yaml.

    Returns:
        The rows of the file, each with its texts by column.

    Raises:
        UserError: The file or its entry is missing, or columns, numbers, row count or digest differ
            from the entry.
    """
    path = Path(path)
    schema = path.with_name("schema.yaml")
    entries = _read_schema(schema)
    if path.stem not in entries:
        raise UserError("unknown table", where=path, hint=f"add it to {schema}")
    expected = entries[path.stem]
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
    digest = sha256(path)
    if digest != expected.sha256:
        problem = f"SHA-256 is {digest}, expected {expected.sha256}{line_ending_note(path)}"
        raise UserError(problem, where=path, hint=hint)
    return [row for _, row in rows]


@cache
def _read_schema(path: Path) -> dict[str, PrintedFile]:
    return validated(dict[str, PrintedFile], read_yaml(path), where=path, hint="fix it")


def read_published(
    path: str | Path, keys: Sequence[str]
) -> dict[tuple[str, ...], dict[str, float]]:
    """Read the numbers in a CSV file of published/.

    Args:
        path: File in published/.
        keys: Columns that identify a row.

    Returns:
        The numbers of each row by column, by the values of the row's `keys`. Empty cells and texts
        are omitted. The text 110M is returned as 110,000,000.

    Raises:
        UserError: A key column is missing, or the file does not match its entry in schema.yaml.
    """
    rows = {}
    for row in read_printed(path):
        for key in keys:
            if key not in row:
                raise UserError(f"no column {key!r}", where=path, hint="fix the keys")
        numbers = {}
        for column, text in row.items():
            number = number_in(text)
            if column not in keys and number is not None:
                numbers[column] = number
        rows[tuple(row[key] for key in keys)] = numbers
    return rows


def number_in(text: str) -> float | None:
    """Parse a number with an optional M (million) or B (billion).

    Returns None if the text is not a number.
    """
    suffix = text[-1:]
    digits = text.removesuffix(suffix) if suffix in _SCALES else text
    try:
        return float(digits) * _SCALES.get(suffix, 1.0)
    except ValueError:
        return None


def rounded(value: float | None, decimals: int) -> str:
    """Format a number with fixed decimals, without a negative zero; empty if the value is None."""
    if value is None:
        return ""
    text = f"{value:.{decimals}f}"
    return text.removeprefix("-") if float(text) == 0 else text


def general(value: float | None) -> str:
    """Format a number without trailing zeros, such as `2e-5`; empty if the value is None."""
    return "" if value is None else f"{value:g}".replace("e-0", "e-")


def probability(value: float) -> str:
    """Format a p-value with three decimals, or as `< 0.001`."""
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def per_cent(share: float | None) -> float | None:
    """Convert a fraction to percent; None if the fraction is None."""
    return None if share is None else 100 * share
