"""Measures: quantities of metric records, declared beside the functions that compute them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from pieline.core.uncertainty import Interval

R = TypeVar("R")
Unit = Literal["", "%", "points"]


@dataclass(frozen=True)
class Measure(Generic[R]):
    """A quantity of a metric record.

    Attributes:
        name: Name, which is that of its column in published/ without `_pct`.
        value: Function from a record to the value in `unit`; None if it is unknown.
        interval: Function from a record to the 95% interval in `unit`.
        unit: Unit of the value.
        decimals: Decimals of the printed numbers.
        better: Which values are better.
        unknown: Why a record may lack the value.
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
        """Return the columns of the measure, with the value of a record if there is one."""
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
    """Return a measure in percent (or another unit), from functions that return fractions."""

    def percent(record: R) -> float | None:
        fraction = value(record)
        return None if fraction is None else 100 * fraction

    def bounds(record: R) -> Interval | None:
        found = interval(record)
        return found and Interval(low=100 * found.low, high=100 * found.high)

    return Measure(name, percent, bounds, unit=unit, **options)
