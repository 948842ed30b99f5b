"""How far a job is, told on stderr: a bar on a terminal, else a line every 30 seconds."""

import os
import sys
import threading
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, TextIO

from tqdm import tqdm

TERMINAL = "PIELINE_TERMINAL"
"""Environment variable: path of the terminal of a run whose jobs write stderr into a pipe."""

FIRST_S = 5.0
"""Seconds for which nothing is told; what is done by then needs no progress."""

EVERY_S = 30.0
"""Seconds between two lines."""

_LINE = (
    "{desc}: {n_fmt} of {total_fmt}{unit}{postfix}, {rate_noinv_fmt},"
    " {elapsed} gone, {remaining} left"
)


class Progress(tqdm):  # type: ignore[type-arg]  # tqdm takes no parameter when it runs
    """A tqdm bar that is seen also where stderr is a pipe, as in every job of the workflow.

    The bar is drawn on the terminal that `TERMINAL` names, so that no log file holds it, or on
    stderr. Where neither is a terminal, a line is printed every `EVERY_S` seconds and at the end,
    whether anything went on or not.

    Args:
        iterable: as in tqdm.
        desc: what is done.
        unit: what is counted.
        shown: whether to tell anything.
        options: as in tqdm.
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
        self._terminal = _terminal() if shown else None
        super().__init__(
            iterable,
            desc=desc,
            unit=unit if options.get("unit_scale") else f" {unit}",
            disable=not shown,
            file=self._terminal or sys.stderr,
            bar_format=None if self._terminal else _LINE,
            delay=FIRST_S,
            leave=False,
            dynamic_ncols=True,
            mininterval=0.5,
            **options,
        )
        self._ended = threading.Event()
        self._teller = threading.Thread(target=self._tell, daemon=True)
        if shown:
            self._teller.start()

    def display(self, msg: str | None = None, pos: int | None = None) -> bool:  # type: ignore[override]
        """Draw the bar where there is a terminal; part of tqdm."""
        return bool(self._terminal and super().display(msg, pos))

    def close(self) -> None:
        """End it: the bar goes away, of lines there is a last one."""
        if getattr(self, "disable", True):
            return
        self._ended.set()
        self._teller.join()
        if self._terminal is None and not self.delay:
            self._print_line()
        super().close()
        if self._terminal not in {None, sys.stderr}:
            with suppress(OSError):  # the terminal was closed in the meantime
                self._terminal.close()

    def _tell(self) -> None:
        """Show progress also while nothing goes on."""
        pause = FIRST_S
        while not self._ended.wait(pause):
            self.delay = 0  # something is shown from now on
            if self._terminal:
                self.refresh()
                pause = 1.0
            else:
                self._print_line()
                pause = EVERY_S

    def _print_line(self) -> None:
        print(self, file=sys.stderr, flush=True)


def _terminal() -> TextIO | None:
    """The terminal that a person looks at, if there is one."""
    if path := os.environ.get(TERMINAL):
        # On another machine the name may be missing, or that of another user's terminal.
        with suppress(OSError):
            terminal = os.fdopen(os.open(path, os.O_WRONLY | os.O_NOCTTY), "w", encoding="utf-8")
            if _is_visible(terminal):
                return terminal
            terminal.close()
    return sys.stderr if _is_visible(sys.stderr) else None


def _is_visible(stream: TextIO) -> bool:
    """Whether a stream is a terminal, and one that says how wide it is: tqdm draws on no other."""
    with suppress(OSError):
        return os.get_terminal_size(stream.fileno()).columns > 0
    return False
