"""How large the stand-ins are."""

from collections.abc import Sequence
from typing import Literal, TypeVar

Size = Literal["full", "small"]

T = TypeVar("T")


def scaled(count: int, size: Size, *, least: int = 1, of_train: bool = False) -> int:
    """A count of the papers, or a tenth of it, rounded, but not less than `least`.

    What encoders train on is cut to a hundredth: their 20 epochs over a tenth would take most of
    the time of a small rehearsal.
    """
    parts = 100 if of_train else 10
    return count if size == "full" else max(least, (count + parts // 2) // parts)


def some(items: Sequence[T], size: Size) -> Sequence[T]:
    """All of them, or every tenth."""
    return items[:: 1 if size == "full" else 10]
