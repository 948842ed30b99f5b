"""Sizes of the stand-ins."""

from collections.abc import Sequence
from typing import Literal, TypeVar

Size = Literal["full", "small"]

T = TypeVar("T")


def scaled(count: int, size: Size, *, least: int = 1, of_train: bool = False) -> int:
    """Return `count` for the full size; for the small size, a tenth of it, but at least `least`.

    With `of_train`, the small size is a hundredth: 20 epochs over a tenth of the encoders' training
    data would take most of the time of a small rehearsal.
    """
    parts = 100 if of_train else 10
    return count if size == "full" else max(least, (count + parts // 2) // parts)


def some(items: Sequence[T], size: Size) -> Sequence[T]:
    """Return all items for the full size, every tenth item for the small size."""
    return items[:: 1 if size == "full" else 10]
