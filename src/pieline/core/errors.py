"""User errors and how commands report them."""

import os
import re
import sys
from collections.abc import Callable, Collection
from difflib import get_close_matches
from pathlib import Path
from typing import NoReturn

_LONG = 500
"""Maximum length of a word in an error message; longer words (file contents) are truncated."""


class UserError(Exception):
    """A user error, reported in one line: `where: what; hint`.

    Args:
        what: Short description of the problem.
        where: Location of the problem: file, `file:line` or `file: record`.
        hint: How to fix the problem.
    """

    def __init__(self, what: str, *, where: str | Path = "", hint: str = "") -> None:
        self.what, self.where, self.hint = what, str(where), hint
        line = f"{where}: {what}" if str(where) else what
        words = (f"{line}; {hint}" if hint else line).split()
        super().__init__(
            " ".join(word if len(word) <= _LONG else f"{word[:99]}…" for word in words)
        )


def nearest(word: str, known: Collection[str]) -> str:
    """Return a hint with the closest known word, or with all known words if none is close."""
    matches = get_close_matches(word, known, n=1)
    return f"did you mean {matches[0]!r}?" if matches else f"known: {', '.join(sorted(known))}"


def meant(name: str, others: Collection[str]) -> str:
    """Return a question whether one of the other names was meant; empty if none is similar."""
    plain = {"".join(filter(str.isalnum, other)).casefold(): other for other in others}
    matches = get_close_matches("".join(filter(str.isalnum, name)).casefold(), plain, n=1)
    parts = [other for other in others if name in re.split(r"\W|_", other.casefold())]
    if matches or len(parts) == 1:
        return f" (is it {(plain[matches[0]] if matches else parts[0])!r}?)"
    return ""


def pluralize(number: int, thing: str) -> str:
    """Format a count with its noun: `1 answer`, `2 answers`."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


EXIT_USER_ERROR = 2


def to_user_error(error: OSError) -> UserError:
    """Convert an OS error, such as a full disk or a denied permission, to a user error."""
    place = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else ""
    hint = "check path, permissions and free space"
    return UserError(error.strerror or str(error), where=place, hint=hint)


def exit_with(error: UserError | OSError) -> NoReturn:
    """Print the error as one line on stderr and exit with status 2."""
    user_error = to_user_error(error) if isinstance(error, OSError) else error
    print(f"error: {user_error}", file=sys.stderr)
    raise SystemExit(EXIT_USER_ERROR)


def run_command(main: Callable[[], None]) -> None:
    """Run a command-line program.

    On a `UserError`, or an `OSError` other than `BrokenPipeError`, prints one line on stderr and
    exits with status 2. On a keyboard interrupt, exits with status 130.
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
