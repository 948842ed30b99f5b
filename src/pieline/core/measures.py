"""Measures: quantities in metric records, declared beside the functions that compute them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from pieline.core.uncertainty import Interval

R = TypeVar("R")
Unit = Literal["", "%", "points"]


@dataclass(frozen=True)
class Measure(Generic[R]):
    """A quantity in a metric record.

    Attributes:
        name: Name of the measure. The column with the printed numbers in published/ has the same
            name, possibly with the suffix `_pct`.
        value: Function that returns the value in a record, converted to `unit`, or None if the
            value is unknown.
        interval: Function that returns the 95% interval in a record, converted to `unit`, or None
            if the record has no interval.
        unit: Unit of the value.
        decimals: Number of decimals of the printed numbers.
        better: Whether high or low values are better; empty if neither is.
        unknown: Reason why a record may lack the value.
        tolerance: Largest difference from the printed number that counts as reproduced.
    """

    name: str
    value: Callable[[R], float | None]
    interval: Callable[[R], Interval | None] = lambda _: None
    unit: Unit = ""
    decimals: int = 2
    better: Literal["", "high", "low"] = ""
    unknown: str = ""
    tolerance: float = 0.0

    def row(self, record: R | None) -> dict[str, Any]:
        """Return the measure's cells in a row of the frame of numbers, by column.

        Args:
            record: Metric record that contains the value; None if there is no record.
        """
        value = None if record is None else self.value(record)
        interval = None if record is None else self.interval(record)
        return {
            "measure": self.name,
            "ours": value,
            "low": interval.low if interval else None,
            "high": interval.high if interval else None,
            "unit": self.unit,
            "decimals": self.decimals,
            "better": self.better,
            "tolerance": self.tolerance,
            "unknown": self.unknown if record is not None and value is None else "",
        }


def share(
    name: str,
    value: Callable[[R], float | None],
    interval: Callable[[R], Interval | None] = lambda _: None,
    *,
    unit: Unit = "%",
    **options: Any,
) -> Measure[R]:
    """Return a measure in per cent or percentage points, given functions that return fractions.

    Args:
        name: Name of the measure.
        value: Function that returns the value in a record as a fraction, or None if the value is
            unknown.
        interval: Function that returns the interval in a record as fractions, or None if the record
            has no interval.
        unit: Unit of the measure: per cent or percentage points.
        options: Further fields of `Measure`.
    """

    def percentage(record: R) -> float | None:
        fraction = value(record)
        return None if fraction is None else 100 * fraction

    def percentage_interval(record: R) -> Interval | None:
        fractions = interval(record)
        if fractions is None:
            return None
        return Interval(low=100 * fractions.low, high=100 * fractions.high)

    return Measure(name, percentage, percentage_interval, unit=unit, **options)
