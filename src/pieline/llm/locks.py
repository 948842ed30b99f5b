"""Locks between processes that vanish with the process that holds them."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

LOCK_FOLDER = ".locks"
"""Folder beside the files that are locked, for the (empty) lock files; git ignores it."""


@contextmanager
def try_lock(path: Path) -> Iterator[bool]:
    """Hold an exclusive lock on `path` if it is free; yields whether it was."""
    handle = _open(path)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(handle)


@contextmanager
def wait_lock(path: Path, on_wait: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold an exclusive lock on `path`; when it is taken call `on_wait` once and wait."""
    handle = _open(path)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _open(path: Path) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    ignore = path.parent / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n", encoding="utf-8")
    # The lock belongs to the open file, so each holder opens its own; the file itself is never
    # deleted, because a lock on a deleted file excludes nobody.
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
