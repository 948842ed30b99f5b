"""Locks between processes that vanish with the process that holds them."""

from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from pathlib import Path

from filelock import FileLock, Timeout


def lock(folder: Path, name: str, on_taken: Callable[[], None]) -> AbstractContextManager[object]:
    """Take the lock `name` of a folder, a file in its `.locks`, which git ignores.

    Args:
        folder: where the files lie that the lock protects.
        name: of the lock.
        on_taken: called once if another process has the lock, before waiting for it; may raise.

    Returns:
        What frees the lock when its block ends.
    """
    # Without the fallback for file systems that know no locks: its files outlive a kill.
    held = FileLock(folder / ".locks" / f"{name}.lock", fallback_to_soft=False)
    with suppress(Timeout):
        return held.acquire(blocking=False)
    on_taken()
    return held.acquire(poll_interval=0.5)  # for hours, maybe on a network file system
