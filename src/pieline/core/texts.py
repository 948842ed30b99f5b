"""Compare texts regardless of their encoding, and detect damaged texts and shifted columns."""

import html
import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path

from pieline.core.errors import UserError

MOST_DAMAGED = 0.01
"""Maximum share of damaged texts in a file (see `damage`)."""
MOST_REPEATED = 0.01
"""Maximum share of texts in a file that repeat an earlier one."""
_EXAMPLES = 3
_ENTITY = re.compile(r"&(?:#\d+|#[xX][0-9a-fA-F]+|[A-Za-z][A-Za-z0-9]*);")
_HTML_TAG = re.compile(
    r"</?(?:a|b|br|div|em|font|i|li|mark|p|q|span|strong|sub|sup|td|tr|u)(?:\s[^<>]*)?/?>",
    re.IGNORECASE,
)
_COVERED = 0.75


def nfc(text: str) -> str:
    """Return a text in Unicode's composed form (NFC)."""
    return unicodedata.normalize("NFC", text)


def text_key(text: str) -> str:
    """Return a key that is equal for equal texts.

    Texts are equal if they differ only in case, spaces, punctuation, control characters, Unicode
    form or HTML entities. All checks for repeated and exchanged texts use this key.
    """
    folded = unicodedata.normalize("NFKC", html.unescape(text)).casefold()
    letters = "".join(filter(str.isalnum, unicodedata.normalize("NFKC", folded)))
    return letters or text


def covers(span: str, sentence: str) -> bool:
    """Return whether a span has at least three quarters of a sentence's letters and digits."""
    return len(text_key(span)) >= _COVERED * len(text_key(sentence))


def quote_both(one: str, other: str) -> tuple[str, str]:
    """Return two different texts in quotes; if they look alike, with their characters escaped."""
    first, second = (unicodedata.normalize("NFKC", text).casefold() for text in (one, other))
    alike = first.split() == second.split() or (
        len(first) == len(second)
        and all(a == b or not (a + b).isascii() for a, b in zip(first, second, strict=True))
    )
    return (_escape(one), _escape(other)) if alike else (repr(one), repr(other))


def _escape(text: str) -> str:
    # Error messages contain no repeated spaces.
    return ascii(text).replace("  ", r" \x20")


def damage(text: str) -> str:
    """Return what damaged a text in a conversion; empty if nothing is found.

    Damage is a control character, a character that replaces an unreadable one, an HTML entity or
    tag, or UTF-8 that was read in another encoding ("StraÃŸe").
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
                if text.encode(encoding).decode("utf-8") != text:
                    return "UTF-8 that was read in another encoding"
            except ValueError:
                continue
    return ""


Findings = Sequence[tuple[str | Path, str]]
"""Place and example of each finding."""


def refuse_above(
    most: float, findings: Findings, total: int, problem: str, *, fewest: int = 1, hint: str
) -> None:
    """Raise a `UserError` with up to three examples if too many rows of a file have a problem.

    Args:
        most: Maximum share of findings.
        findings: Place and example of each finding.
        total: Number of rows that were checked.
        problem: Problem of the rows, such as "sentences are repeated".
        fewest: Minimum number of findings.
        hint: Hint for the error message.
    """
    if len(findings) >= fewest and len(findings) > most * total:
        examples = ", ".join(example for _, example in findings[:_EXAMPLES])
        raise UserError(
            f"{len(findings)} of {total} {problem}, such as {examples}",
            where=findings[0][0],
            hint=hint,
        )


def fits_better(shifted: Sequence[int], fits: Sequence[int]) -> bool:
    """Return whether shifted predictions fit clearly better than unshifted ones.

    They do if there are more improved than worsened predictions, by more than three standard
    deviations (sign test).

    Args:
        shifted: How well each shifted prediction fits, such as the number of correct documents.
        fits: How well each unshifted prediction fits.
    """
    gained = sum(new > old for new, old in zip(shifted, fits, strict=True))
    lost = sum(old > new for new, old in zip(shifted, fits, strict=True))
    return gained - lost > 3 * math.sqrt(gained + lost)


def check_texts(texts: Iterable[tuple[str | Path, str]], *, repeated: bool = True) -> None:
    """Check the texts of a file, each with its place in the file.

    Args:
        texts: Place and text of each row.
        repeated: Whether to check for repeated texts.

    Raises:
        UserError: Too many texts are damaged or repeated (see `damage` and `text_key`).
    """
    rows = list(texts)
    damaged = []
    for where, text in rows:
        if problem := damage(text):
            damaged.append((where, f"{_escape(text[:60])} ({problem})"))
    hint = "export the texts again, as UTF-8"
    refuse_above(MOST_DAMAGED, damaged, len(rows), "texts are damaged", hint=hint)
    if not repeated:
        return
    first: dict[str, str | Path] = {}
    again = []
    for where, text in rows:
        earlier = first.setdefault(text_key(text), where)
        if earlier != where:
            again.append((where, f"{text[:60]!r} (also {earlier})"))
    hint = "remove the repetitions"
    refuse_above(MOST_REPEATED, again, len(rows), "texts are repeated", hint=hint)
