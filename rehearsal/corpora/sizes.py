"""Sizes of the stand-ins."""

from collections.abc import Sequence
from typing import Literal, TypeVar

Size = Literal["full", "small"]

T = TypeVar("T")


def scaled(count: int, size: Size, *, least: int = 1, of_train: bool = False) -> int:
    """Return a count of the papers, or a tenth of it for the small size, but at least `least`.

    Training data of encoders is reduced to a hundredth, because 20 epochs over a tenth would take
    most of the time of a small rehearsal.
    """
    parts = 100 if of_train else 10
    return count if size == "full" else max(least, (count + parts // 2) // parts)


def some(items: Sequence[T], size: Size) -> Sequence[T]:
    """Return all items, or every tenth for the small size."""
    return items[:: 1 if size == "full" else 10]
