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
"""Tag ids as in the ID10M-JAM release (`tag_ids`)."""


class Span(NamedTuple):
    """A half-open range of token indices or of characters."""

    start: int
    end: int


def spans_of(tags: Sequence[str]) -> list[Span]:
    """Return the spans marked by BIO tags (section 3.1), in order.

    Raises:
        ValueError: If a tag is unknown or an I follows no B or I; states the token number.
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


def tags_of(spans: Iterable[Span], length: int) -> list[Tag]:
    """Return the BIO tags of `length` tokens that mark these spans (the inverse of `spans_of`).

    The spans must not overlap.
    """
    tags: list[Tag] = [OUTSIDE] * length
    for start, end in spans:
        tags[start:end] = [BEGIN] + [INSIDE] * (end - start - 1)
    return tags


def span_text(tokens: Sequence[str], span: Span) -> str:
    """Return the text of a span. Tokens include their trailing space."""
    return "".join(tokens[span.start : span.end]).strip()


def white_space_words(tokens: Sequence[str]) -> list[Span]:
    """Group tokens into whitespace-separated words: `lurch` and `!` form one word."""
    starts = [
        number
        for number, token in enumerate(tokens)
        if not number or token[:1].isspace() or tokens[number - 1][-1:].isspace()
    ]
    return [Span(*ends) for ends in pairwise([*starts, len(tokens)])]
