"""User errors and how commands report them."""

import os
import re
import sys
from collections.abc import Callable, Collection
from difflib import get_close_matches
from pathlib import Path
from typing import NoReturn

_LONG = 500
"""Maximum length of a word in an error message; a longer word (file content) is cut off."""
_KEPT_OF_LONG = 99
"""Number of characters that are printed of a longer word."""


class UserError(Exception):
    """A user error, reported in one line: `where: what; hint`.

    Args:
        what: Short description of the problem.
        where: Location of the problem: file, `file:line` or `file: record`.
        hint: How to fix the problem.
    """

    def __init__(self, what: str, *, where: str | Path = "", hint: str = "") -> None:
        self.what, self.where, self.hint = what, str(where), hint
        message = f"{where}: {what}" if str(where) else what
        words = (f"{message}; {hint}" if hint else message).split()
        super().__init__(
            " ".join(word if len(word) <= _LONG else f"{word[:_KEPT_OF_LONG]}…" for word in words)
        )


def nearest(word: str, known: Collection[str]) -> str:
    """Return a hint with the known word closest to `word`, or all known words if none is close."""
    matches = get_close_matches(word, known, n=1)
    return f"did you mean {matches[0]!r}?" if matches else f"known: {', '.join(sorted(known))}"


def suggest_name(missing: str, candidates: Collection[str]) -> str:
    """Return a question that suggests a candidate similar to a missing name; "" if none is similar.

    If no candidate is spelled almost like the name, the only candidate that contains the name as a
    word counts as similar: `sentence_id` for `id`.
    """
    candidates_by_letters = {_letters_and_digits(candidate): candidate for candidate in candidates}
    close_matches = get_close_matches(_letters_and_digits(missing), candidates_by_letters, n=1)
    if close_matches:
        return f" (is it {candidates_by_letters[close_matches[0]]!r}?)"
    containing = [
        candidate for candidate in candidates if missing in re.split(r"\W|_", candidate.casefold())
    ]
    return f" (is it {containing[0]!r}?)" if len(containing) == 1 else ""


def _letters_and_digits(name: str) -> str:
    return "".join(character for character in name if character.isalnum()).casefold()


def pluralize(count: int, noun: str) -> str:
    """Format a count and a noun: `1 answer`, `2 answers`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


EXIT_USER_ERROR = 2
"""Exit status of commands after a user error."""
_EXIT_INTERRUPTED = 130
"""Exit status of commands after a keyboard interrupt, by the convention of shells."""


def to_user_error(error: OSError) -> UserError:
    """Convert an OS error, such as a full disk or a denied permission, to a user error."""
    place = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else ""
    hint = "check path, permissions and free space"
    return UserError(error.strerror or str(error), where=place, hint=hint)


def exit_with(error: UserError | OSError) -> NoReturn:
    """Print an error as one line on stderr and exit with status 2."""
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
        raise SystemExit(_EXIT_INTERRUPTED) from None
