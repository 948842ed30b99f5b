"""BIO tags of PIEs and the spans that they mark (ID10M-JAM, section 3.1)."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

Tag = Literal["O", "B-IDIOM", "I-IDIOM"]
OUTSIDE: Tag = "O"
BEGIN: Tag = "B-IDIOM"
INSIDE: Tag = "I-IDIOM"
TAGS: tuple[Tag, ...] = (OUTSIDE, BEGIN, INSIDE)
TAG_IDS: dict[str, int] = {tag: number for number, tag in enumerate(TAGS)}
"""Id of each tag, as in the field `tag_ids` of the ID10M-JAM release."""


class Span(NamedTuple):
    """A half-open range of token indices or of characters."""

    start: int
    end: int


def spans_of(tags: Sequence[str]) -> list[Span]:
    """Return the token spans marked by BIO tags, in order (section 3.1).

    Raises:
        ValueError: A tag is unknown, or an I tag does not follow a B or I tag; the message states
            the token number.
    """
    spans: list[Span] = []
    for number, tag in enumerate(tags):
        if tag == BEGIN:
            spans.append(Span(number, number + 1))
        elif tag == INSIDE:
            if not spans or spans[-1].end != number:
                raise ValueError(f"{INSIDE} without {BEGIN} at token {number + 1}")
            spans[-1] = Span(spans[-1].start, number + 1)
        elif tag != OUTSIDE:
            raise ValueError(f"unknown tag {tag!r} at token {number + 1}")
    return spans


def valid_tags(tags: Sequence[Tag], *, drop_unbegun: bool = False) -> list[Tag]:
    """Return valid BIO tags.

    An I tag at the start or after O becomes a B, as in seqeval. With `drop_unbegun`, this tag and
    the I tags after it become O instead, as in ID10M-JAM's code.
    """
    replacement = OUTSIDE if drop_unbegun else BEGIN
    valid: list[Tag] = []
    for tag in tags:
        is_inside_span = bool(valid) and valid[-1] != OUTSIDE
        valid.append(replacement if tag == INSIDE and not is_inside_span else tag)
    return valid


def tags_of(spans: Iterable[Span], length: int) -> list[Tag]:
    """Return one BIO tag for each of `length` tokens; the inverse function is `spans_of`.

    The spans must not overlap.
    """
    tags: list[Tag] = [OUTSIDE] * length
    for start, end in spans:
        tags[start:end] = [BEGIN] + [INSIDE] * (end - start - 1)
    return tags


def span_text(tokens: Sequence[str], span: Span) -> str:
    """Return the text of a token span without surrounding space.

    Tokens include their trailing spaces.
    """
    return "".join(tokens[span.start : span.end]).strip()


def white_space_words(tokens: Sequence[str]) -> list[Span]:
    """Return the token span of each word between white space, such as "lurch!" of two tokens."""
    bounds = []
    for number, token in enumerate(tokens):
        if number == 0 or token[:1].isspace() or tokens[number - 1][-1:].isspace():
            bounds.append(number)
    bounds.append(len(tokens))
    return [Span(start, end) for start, end in pairwise(bounds)]
