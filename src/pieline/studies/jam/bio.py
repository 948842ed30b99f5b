"""Convert between BIO tags of PIEs and token spans (ID10M-JAM, section 3.1)."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

Tag = Literal["O", "B-IDIOM", "I-IDIOM"]
OUTSIDE: Tag = "O"
BEGIN: Tag = "B-IDIOM"
INSIDE: Tag = "I-IDIOM"
TAGS: tuple[Tag, ...] = (OUTSIDE, BEGIN, INSIDE)
TAG_IDS: dict[str, int] = {tag: tag_id for tag_id, tag in enumerate(TAGS)}
"""Id of each tag, as in the field `tag_ids` of ID10M-JAM's public data."""


class Span(NamedTuple):
    """A range of token or character indices, which includes `start` but not `end`."""

    start: int
    end: int


def spans_of(tags: Sequence[str]) -> list[Span]:
    """Return the token spans that BIO tags mark, in order (section 3.1).

    Raises:
        ValueError: A tag is unknown, or an I tag does not follow a B or I tag. The message states
            the number (from 1) of the token.
    """
    spans: list[Span] = []
    for index, tag in enumerate(tags):
        if tag == BEGIN:
            spans.append(Span(index, index + 1))
        elif tag == INSIDE:
            continues_last_span = bool(spans) and spans[-1].end == index
            if not continues_last_span:
                raise ValueError(f"{INSIDE} without {BEGIN} at token {index + 1}")
            spans[-1] = Span(spans[-1].start, index + 1)
        elif tag != OUTSIDE:
            raise ValueError(f"unknown tag {tag!r} at token {index + 1}")
    return spans


def valid_tags(tags: Sequence[Tag], *, drop_stray_tags: bool = False) -> list[Tag]:
    """Return BIO tags in which each stray I tag is replaced.

    An I tag is stray if it does not follow a B or I tag. A stray I tag becomes a B tag, as in
    seqeval. With `drop_stray_tags`, a stray I tag and the I tags after it become O instead, as in
    the authors' code.
    """
    replacement = OUTSIDE if drop_stray_tags else BEGIN
    repaired_tags: list[Tag] = []
    for tag in tags:
        previous_tag = repaired_tags[-1] if repaired_tags else OUTSIDE
        is_stray = tag == INSIDE and previous_tag == OUTSIDE
        repaired_tags.append(replacement if is_stray else tag)
    return repaired_tags


def tags_of(spans: Iterable[Span], length: int) -> list[Tag]:
    """Return the BIO tags of a sentence with `length` tokens, given its token spans.

    This function is the inverse of `spans_of`. The spans must not overlap.
    """
    tags: list[Tag] = [OUTSIDE] * length
    for start, end in spans:
        tags[start:end] = [BEGIN] + [INSIDE] * (end - start - 1)
    return tags


def span_text(tokens: Sequence[str], span: Span) -> str:
    """Return the text of a token span without surrounding white space.

    `tokens` are the tokens of the sentence, each with its trailing space.
    """
    return "".join(tokens[span.start : span.end]).strip()


def whitespace_word_spans(tokens: Sequence[str]) -> list[Span]:
    """Return the token span of each word, where only white space separates words.

    For example, the tokens "lurch" and "!" form one word. `tokens` are the tokens of a sentence,
    each with its trailing space.
    """
    word_starts = []
    follows_space = True
    for index, token in enumerate(tokens):
        if follows_space or token[:1].isspace():
            word_starts.append(index)
        follows_space = token[-1:].isspace()
    return [Span(start, end) for start, end in pairwise([*word_starts, len(tokens)])]
