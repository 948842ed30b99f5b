"""The one exception that a user's mistake raises, and how a command shows it."""

import sys
from collections.abc import Callable, Collection
from difflib import get_close_matches
from pathlib import Path
from typing import NoReturn


class UserError(Exception):
    """A mistake in what the user gave, told in one line: `where: what; mend`.

    Args:
        what: what is wrong, in a few words.
        where: file, `file:line` or `file: record` in which it is wrong.
        mend: what to do about it.
    """

    def __init__(self, what: str, *, where: str | Path = "", mend: str = "") -> None:
        self.what, self.where, self.mend = what, str(where), mend
        line = f"{where}: {what}" if str(where) else what
        super().__init__(" ".join((f"{line}; {mend}" if mend else line).split()))


def nearest(given: str, known: Collection[str]) -> str:
    """A mend that names the nearest known word, or all of them."""
    near = get_close_matches(given, known, n=1)
    return f"did you mean {near[0]!r}?" if near else f"known: {', '.join(sorted(known))}"


def number_of(number: int, thing: str) -> str:
    """How many of a thing there are: `1 answer`, `2 answers`."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


EXIT_USER_ERROR = 2


def exit_with(error: UserError) -> NoReturn:
    """Print the error as one line on stderr and exit with status 2."""
    print(f"error: {error}", file=sys.stderr)
    raise SystemExit(EXIT_USER_ERROR)


def run_command(main: Callable[[], None]) -> None:
    """Run a command-line program; a `UserError` becomes one line on stderr and exit status 2."""
    try:
        main()
    except UserError as error:
        exit_with(error)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        raise SystemExit(130) from None
