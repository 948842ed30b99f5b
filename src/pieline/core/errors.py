"""The one exception that a user's mistake raises, and how a command shows it."""

import os
import sys
from collections.abc import Callable, Collection
from difflib import get_close_matches
from pathlib import Path
from typing import NoReturn

_LONG = 500
"""Characters of a word that no error repeats: a file's content, not a path."""


class UserError(Exception):
    """A user error, reported in one line: `where: what; hint`.

    Args:
        what: what is wrong, in a few words.
        where: file, `file:line` or `file: record` in which it is wrong.
        hint: what to do about it.
    """

    def __init__(self, what: str, *, where: str | Path = "", hint: str = "") -> None:
        self.what, self.where, self.hint = what, str(where), hint
        line = f"{where}: {what}" if str(where) else what
        words = (f"{line}; {hint}" if hint else line).split()
        super().__init__(
            " ".join(word if len(word) <= _LONG else f"{word[:99]}…" for word in words)
        )


def nearest(given: str, known: Collection[str]) -> str:
    """A hint that names the nearest known word, or all of them."""
    near = get_close_matches(given, known, n=1)
    return f"did you mean {near[0]!r}?" if near else f"known: {', '.join(sorted(known))}"


def pluralize(number: int, thing: str) -> str:
    """How many of a thing there are: `1 answer`, `2 answers`."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


EXIT_USER_ERROR = 2


def to_user_error(error: OSError) -> UserError:
    """What the system says of a file (no room, no permission, a folder), in one line."""
    place = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else ""
    hint = "check path, permissions and room"
    return UserError(error.strerror or str(error), where=place, hint=hint)


def exit_with(error: UserError | OSError) -> NoReturn:
    """Print the error as one line on stderr and exit with status 2."""
    told = to_user_error(error) if isinstance(error, OSError) else error
    print(f"error: {told}", file=sys.stderr)
    raise SystemExit(EXIT_USER_ERROR)


def run_command(main: Callable[[], None]) -> None:
    """Run a command-line program; what the user can fix becomes one line and exit status 2.

    That is a `UserError`, and an `OSError` such as that of a full disk.
    """
    try:
        main()
    except BrokenPipeError:
        raise
    except (UserError, OSError) as error:
        exit_with(error)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        raise SystemExit(130) from None
