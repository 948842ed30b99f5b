"""Tokenize variants and project the tags of their originals onto them."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from pieline.studies.jam.bio import BEGIN, INSIDE, OUTSIDE, Span, Tag

_TOKEN = re.compile(r"(?:['’]\w+|\w+|[^\w\s])\s*")
_TOKEN_ELIDED = re.compile(r"(?:\w+['’](?=\w)|\w+|[^\w\s])\s*")
_APOSTROPHES = str.maketrans("’‘`´", "''''")


def tokenize(text: str, *, elides: bool = False) -> list[str]:
    """Split text as ID10M does: into words and punctuation marks, each with its trailing space.

    The concatenation of the tokens is the text; leading space belongs to the first token. An
    apostrophe begins a word ("it", "'s") or, in languages that elide (`elides`), ends a word ("l'",
    "uovo").
    """
    start = len(text) - len(text.lstrip())
    tokens = (_TOKEN_ELIDED if elides else _TOKEN).findall(text, start)
    if tokens:
        tokens[0] = text[:start] + tokens[0]
    return tokens


def find_original(original: str, variant: str) -> Span | None:
    """Return the character span of the original in the variant, allowing for minor differences.

    Letters, digits and word boundaries must be the same; punctuation, spacing and case may differ
    (section 3.4, criterion 1). Returns the span of the last match, or None if there is no match.
    """
    verbatim = variant.rfind(original)
    if verbatim >= 0 and _is_apart(variant, verbatim, verbatim + len(original)):
        return Span(verbatim, verbatim + len(original))
    letters = _letters(variant)
    text, target = _only_letters(variant), _only_letters(original)
    at = text.rfind(target) if target else -1
    while at >= 0:
        start, end = letters[at][1], letters[at + len(target) - 1][1] + 1
        if _is_apart(variant, start, end) and _same_words(original, variant[start:end]):
            return Span(start, end + _closing_punctuation(variant[end:]))
        at = text.rfind(target, 0, at + len(target) - 1)
    return None


def context_of(original: str, variant: str) -> str | None:
    """Return the context added before the original; None if the original is missing."""
    place = find_original(original, variant)
    return None if place is None else variant[: place.start].strip()


def added_context(original: str, variant: str) -> str:
    """Return the context added before the original.

    If the original was edited, the context is approximated by removing as many characters from the
    end of the variant as the original has.
    """
    context = context_of(original, variant)
    return variant[: max(0, len(variant) - len(original))] if context is None else context


def project_tags(
    tokens: Sequence[str], tags: Sequence[Tag], variant: str, *, elides: bool = False
) -> tuple[list[str], list[Tag]] | None:
    """Project the tags of an original onto its variant, with O for all other tokens (section 3.3).

    Args:
        tokens: Tokens of the original with their trailing spaces.
        tags: Tags of the original.
        variant: Text of the variant.
        elides: Whether the language elides (see `tokenize`).

    Returns:
        Tokens whose concatenation is the variant, and their tags; None if the original is missing.
            A verbatim original keeps its tokens. If the punctuation of the original differs, each
            of its words keeps its tag.
    """
    original = "".join(tokens)
    place = find_original(original, variant)
    if place is None:
        return None
    # The space after the original belongs to its last token.
    end = len(variant) - len(variant[place.end :].lstrip())
    before, inside, after = variant[: place.start], variant[place.start : end], variant[end:]
    before_tokens = tokenize(before, elides=elides)
    if inside.rstrip() == original.rstrip():
        inside_tokens, inside_tags = list(tokens), list(tags)
        inside_tokens[-1] = inside_tokens[-1].rstrip() + inside[len(inside.rstrip()) :]
    else:
        inside_tokens, inside_tags = _carry_over(tokens, tags, inside)
    if not before_tokens:
        inside_tokens[0] = before + inside_tokens[0]
    after_tokens = tokenize(after, elides=elides)
    outside: Tag = OUTSIDE
    return (
        [*before_tokens, *inside_tokens, *after_tokens],
        [outside] * len(before_tokens) + inside_tags + [outside] * len(after_tokens),
    )


def _carry_over(
    tokens: Sequence[str], tags: Sequence[Tag], text: str
) -> tuple[list[str], list[Tag]]:
    """Return tokens and tags of a text that differs from the original only in punctuation."""
    new_tokens: list[str] = []
    new_tags: list[Tag] = []
    done = 0
    for word in _tagged_words(tokens, tags, text):
        # Punctuation between two words of an idiom belongs to the idiom.
        gap_tag: Tag = INSIDE if new_tokens and word.tag == INSIDE else OUTSIDE
        _append_gap(text[done : word.start], gap_tag, new_tokens, new_tags)
        new_tokens.append(text[word.start : word.end])
        new_tags.append(word.tag)
        done = word.end
    _append_gap(text[done:], OUTSIDE, new_tokens, new_tags)
    return new_tokens, new_tags


class _TaggedWord(NamedTuple):
    """Characters of a word and its tag."""

    start: int
    end: int
    tag: Tag


def _tagged_words(tokens: Sequence[str], tags: Sequence[Tag], text: str) -> list[_TaggedWord]:
    """Locate the original's tokens that have letters in a text with the same letters."""
    letters = _letters(text)
    words: list[_TaggedWord] = []
    position = 0
    for token, token_tag in zip(tokens, tags, strict=True):
        count = len(_letters(token))
        if not count:
            continue
        first, last = letters[position][1], letters[position + count - 1][1] + 1
        start, end = _with_apostrophe(token, text, first, last)
        # If an idiom's first token was a removed punctuation mark, the idiom begins here.
        begins = token_tag == INSIDE and (not words or words[-1].tag == OUTSIDE)
        words.append(_TaggedWord(start, end, BEGIN if begins else token_tag))
        position += count
    return words


def _append_gap(gap: str, tag: Tag, tokens: list[str], tags: list[Tag]) -> None:
    """Append the punctuation between two words; leading space belongs to the token before it."""
    if tokens:
        punctuation = gap.lstrip()
        tokens[-1] += gap[: len(gap) - len(punctuation)]
        gap = punctuation
    pieces = tokenize(gap)
    tokens += pieces
    tags += [tag] * len(pieces)


def _with_apostrophe(token: str, text: str, first: int, last: int) -> tuple[int, int]:
    """Extend the span of a token such as "'s" or "l'" to include its apostrophe."""
    token, text = token.strip().translate(_APOSTROPHES), text.translate(_APOSTROPHES)
    if token[0] == "'" and first > 0 and text[first - 1] == "'":
        first -= 1
    if token[-1] == "'" and text[last : last + 1] == "'":
        last += 1
    return first, last


def _letters(text: str) -> list[tuple[str, int]]:
    """Return the lowercase letters and digits of a text, each with its position."""
    return [(character.lower()[0], at) for at, character in enumerate(text) if character.isalnum()]


def _only_letters(text: str) -> str:
    return "".join(letter for letter, _ in _letters(text))


def _is_apart(text: str, start: int, end: int) -> bool:
    """Return whether a part of the text starts and ends at word boundaries."""
    starts_in_word = start > 0 and text[start - 1].isalnum() and text[start].isalnum()
    ends_in_word = end < len(text) and text[end].isalnum() and text[end - 1].isalnum()
    return not (starts_in_word or ends_in_word)


def _same_words(original: str, text: str) -> bool:
    """Return whether two texts with the same letters also have the same word boundaries.

    Hyphens and apostrophes may differ; spaces within a word may not.
    """
    return _words(original) == _words(text)


def _words(text: str) -> list[str]:
    """Return the letters of each word; hyphens and dashes separate words."""
    words = [_only_letters(word) for word in re.split(r"\s+|[-–—]", text)]
    return [word for word in words if word]


def _closing_punctuation(rest: str) -> int:
    """Return the length of sentence-final punctuation at the start of `rest`."""
    match = re.match(r"[.!?…]*[\"'”’»)]*", rest)
    return match.end() if match else 0
