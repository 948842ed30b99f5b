"""Progress reporting on stderr: a bar on a terminal, else a line every 30 seconds."""

import os
import sys
import threading
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from tqdm import tqdm

FIRST_S = 5.0
"""Seconds before progress is first shown; a task that ends earlier prints nothing."""

EVERY_S = 30.0
"""Seconds between two progress lines."""

_REFRESH_S = 1.0
"""Seconds between two refreshes of the bar."""

_LINE = (
    "{desc}: {n_fmt} of {total_fmt}{unit}{postfix}, {rate_noinv_fmt},"
    " {elapsed} elapsed, {remaining} left"
)


class Progress(tqdm):  # type: ignore[type-arg]  # tqdm is generic only in its stubs
    """A tqdm progress bar that prints lines if stderr is not a terminal, as in workflow jobs.

    The lines are printed every `EVERY_S` seconds, even without progress, and at the end.

    Args:
        iterable: Iterable to wrap, as in tqdm.
        desc: Description of the task.
        unit: Plural noun for the counted items.
        shown: Whether to show progress.
        options: Further options of tqdm.
    """

    def __init__(
        self,
        iterable: Iterable[Any] | None = None,
        *,
        desc: str,
        unit: str,
        shown: bool = True,
        **options: Any,
    ) -> None:
        self._draws_bar = _is_terminal()
        super().__init__(
            iterable,
            desc=desc,
            # With a scale, tqdm writes a prefix (kB) directly before the unit.
            unit=unit if options.get("unit_scale") else f" {unit}",
            disable=not shown,
            file=sys.stderr,
            bar_format=None if self._draws_bar else _LINE,
            delay=FIRST_S,
            leave=False,
            dynamic_ncols=True,
            mininterval=0.5,
            **options,
        )
        self._ended = threading.Event()
        self._reporter = threading.Thread(target=self._report, daemon=True)
        if shown:
            self._reporter.start()

    def display(self, msg: str | None = None, pos: int | None = None) -> bool:  # type: ignore[override]
        """Draw the bar if stderr is a terminal; called by tqdm."""
        return bool(self._draws_bar and super().display(msg, pos))

    def close(self) -> None:
        """Remove the bar, or print the final line if the progress is printed as lines."""
        if getattr(self, "disable", True):  # not shown, or not completely initialized
            return
        self._ended.set()
        self._reporter.join()
        progress_was_shown = not self.delay
        if progress_was_shown and not self._draws_bar:
            self._print_line()
        super().close()

    def _report(self) -> None:
        """Refresh the bar or print a line at regular intervals, until the task ends."""
        pause = FIRST_S
        while not self._ended.wait(pause):
            self.delay = 0  # signals close() that progress was shown
            if self._draws_bar:
                self.refresh()
                pause = _REFRESH_S
            else:
                self._print_line()
                pause = EVERY_S

    def _print_line(self) -> None:
        print(self, file=sys.stderr, flush=True)


def _is_terminal() -> bool:
    """Return whether stderr is a terminal with a known width, which tqdm needs to draw."""
    with suppress(OSError):
        return os.get_terminal_size(sys.stderr.fileno()).columns > 0
    return False
