"""How large the stand-ins are."""

from collections.abc import Sequence
from typing import Literal, TypeVar

Size = Literal["full", "small"]

T = TypeVar("T")


def scaled(count: int, size: Size, *, least: int = 1) -> int:
    """A count of the papers, or a tenth of it, rounded, but not less than `least`."""
    return count if size == "full" else max(least, (count + 5) // 10)


def some(items: Sequence[T], size: Size) -> Sequence[T]:
    """All of them, or every tenth."""
    return items[:: 1 if size == "full" else 10]
