"""Compare texts that are spelled or encoded differently, and detect damaged texts."""

import html
import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path

from pieline.core.errors import UserError

MOST_DAMAGED = 0.01
"""Maximum fraction of texts in a file that are damaged (see `damage`)."""
MOST_REPEATED = 0.01
"""Maximum fraction of texts in a file that repeat an earlier text of the file."""
_MAX_EXAMPLES = 3
"""Maximum number of examples in an error message."""
_EXAMPLE_LENGTH = 60
"""Maximum number of characters of a text in an error message."""
_ENTITY = re.compile(r"&(?:#\d+|#[xX][0-9a-fA-F]+|[A-Za-z][A-Za-z0-9]*);")
_HTML_TAG = re.compile(
    r"</?(?:a|b|br|div|em|font|i|li|mark|p|q|span|strong|sub|sup|td|tr|u)(?:\s[^<>]*)?/?>",
    re.IGNORECASE,
)
_COVERED = 0.75
"""Minimum fraction of a sentence's letters and digits in a span that covers the sentence."""


def nfc(text: str) -> str:
    """Return a text in Unicode's composed form (NFC)."""
    return unicodedata.normalize("NFC", text)


def text_key(text: str) -> str:
    """Return a key that is the same for texts that count as equal.

    Texts count as equal if they differ only in case, spaces, punctuation, control characters,
    Unicode form or HTML entities. All checks for repeated and exchanged texts use this key.
    """
    folded = unicodedata.normalize("NFKC", html.unescape(text)).casefold()
    # Changing the case may have undone the Unicode form.
    normalized = unicodedata.normalize("NFKC", folded)
    letters_and_digits = "".join(character for character in normalized if character.isalnum())
    return letters_and_digits or text


def covers(span: str, sentence: str) -> bool:
    """Return whether a span has at least 75% as many letters and digits as the sentence."""
    return len(text_key(span)) >= _COVERED * len(text_key(sentence))


def quote_both(one: str, other: str) -> tuple[str, str]:
    """Return two different texts in quotes; if the texts look alike, with escaped characters."""
    if _look_alike(one, other):
        return _escape(one), _escape(other)
    return repr(one), repr(other)


def _look_alike(one: str, other: str) -> bool:
    """Return whether readers may not see the difference between two different texts.

    This is the case if the texts differ only in case, spaces or Unicode form, or if they have the
    same length and one of any two characters that differ is outside ASCII.
    """
    one = unicodedata.normalize("NFKC", one).casefold()
    other = unicodedata.normalize("NFKC", other).casefold()
    if one.split() == other.split():
        return True
    if len(one) != len(other):
        return False
    pairs = [first + second for first, second in zip(one, other, strict=True) if first != second]
    # A character outside ASCII may look like any other character.
    return not any(pair.isascii() for pair in pairs)


def _escape(text: str) -> str:
    """Return a text in quotes as ASCII, in which repeated spaces are visible."""
    # Error messages join words by single spaces, so every second space is escaped.
    return ascii(text).replace("  ", r" \x20")


def damage(text: str) -> str:
    """Describe a trace of a wrong conversion in a text; return "" if the text has none.

    Traces are control characters, the character that replaces unreadable characters, HTML entities
    and tags, and UTF-8 that was read in another encoding ("StraÃŸe").
    """
    for character in text:
        if unicodedata.category(character) in ("Cc", "Cn") and character not in "\t\n\r":
            return f"the control character U+{ord(character):04X}"
    if "\ufffd" in text:
        return "the replacement character U+FFFD"
    for entity in _ENTITY.findall(text):
        if html.unescape(entity) != entity:
            return f"the HTML entity {entity}"
    if tag := _HTML_TAG.search(text):
        return f"the HTML tag {tag[0]}"
    if not text.isascii():
        for encoding in ("cp1252", "latin-1"):
            try:
                # Most texts cannot be encoded, or the bytes are not UTF-8.
                if text.encode(encoding).decode("utf-8") != text:
                    return "UTF-8 that was read in another encoding"
            except ValueError:
                continue
    return ""


Findings = Sequence[tuple[str | Path, str]]
"""Location and text of each row that has a problem."""


def refuse_above(
    most: float, findings: Findings, total: int, problem: str, *, fewest: int = 1, hint: str
) -> None:
    """Raise a `UserError` with up to three examples if too many rows of a file have a problem.

    Args:
        most: Maximum fraction of rows that may have the problem.
        findings: Location and text of each row that has the problem.
        total: Number of rows that were checked.
        problem: Description of the problem, such as "sentences are repeated".
        fewest: Number of findings below which no error is raised.
        hint: Hint for the error message.
    """
    if len(findings) < fewest or len(findings) <= most * total:
        return
    examples = ", ".join(text for _, text in findings[:_MAX_EXAMPLES])
    first_location, _ = findings[0]
    raise UserError(
        f"{len(findings)} of {total} {problem}, such as {examples}", where=first_location, hint=hint
    )


def fits_better(shifted: Sequence[int], fits: Sequence[int]) -> bool:
    """Return whether shifted predictions fit clearly better than the predictions as given.

    In a sign test, the predictions that fit better after the shift must outnumber the predictions
    that fit worse by more than three standard deviations.

    Args:
        shifted: How well each shifted prediction fits, such as the number of correct documents.
        fits: How well each prediction fits as given.
    """
    pairs_of_fits = list(zip(shifted, fits, strict=True))
    better = sum(shifted_fit > fit for shifted_fit, fit in pairs_of_fits)
    worse = sum(shifted_fit < fit for shifted_fit, fit in pairs_of_fits)
    standard_deviation = math.sqrt(better + worse)
    return better - worse > 3 * standard_deviation


def check_texts(texts: Iterable[tuple[str | Path, str]], *, repeated: bool = True) -> None:
    """Check that the texts of a file are not damaged or repeated.

    Args:
        texts: Location and text of each row.
        repeated: Whether to check for repeated texts.

    Raises:
        UserError: Too many texts are damaged or repeated (see `damage` and `text_key`).
    """
    rows = list(texts)
    damaged = []
    for where, text in rows:
        if problem := damage(text):
            damaged.append((where, f"{_escape(text[:_EXAMPLE_LENGTH])} ({problem})"))
    hint = "export the texts again, as UTF-8"
    refuse_above(MOST_DAMAGED, damaged, len(rows), "texts are damaged", hint=hint)
    if repeated:
        _check_repetitions(rows)


def _check_repetitions(rows: Sequence[tuple[str | Path, str]]) -> None:
    """Raise a `UserError` if too many texts repeat an earlier text of the file."""
    first_location_of_text: dict[str, str | Path] = {}
    repetitions = []
    for where, text in rows:
        first_location = first_location_of_text.setdefault(text_key(text), where)
        if first_location != where:
            repetitions.append((where, f"{text[:_EXAMPLE_LENGTH]!r} (also {first_location})"))
    hint = "remove the repetitions"
    refuse_above(MOST_REPEATED, repetitions, len(rows), "texts are repeated", hint=hint)
