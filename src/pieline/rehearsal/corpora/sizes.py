"""How large the stand-ins are."""

from typing import Literal

Size = Literal["full", "small"]


def scaled(count: int, size: Size, *, least: int = 1) -> int:
    """A count of the papers, or a tenth of it, rounded, but not less than `least`."""
    return count if size == "full" else max(least, (count + 5) // 10)
