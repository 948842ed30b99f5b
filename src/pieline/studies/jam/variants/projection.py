"""Tokenize variants, locate their originals, and project the tags of the originals onto them."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from pieline.studies.jam.bio import BEGIN, INSIDE, OUTSIDE, Span, Tag

_TOKEN = re.compile(r"(?:['’]\w+|\w+|[^\w\s])\s*")
"""Pattern of a word or punctuation mark with its trailing space; an apostrophe begins a word."""
_TOKEN_ELIDED = re.compile(r"(?:\w+['’](?=\w)|\w+|[^\w\s])\s*")
"""Pattern of a word or punctuation mark with its trailing space; an apostrophe ends a word."""
_TO_STRAIGHT_APOSTROPHES = str.maketrans("’‘`´", "''''")


def tokenize(text: str, *, elides: bool = False) -> list[str]:
    """Split text into words and punctuation marks, as in ID10M.

    Each token includes its trailing space, and the first token also includes leading space.
    Therefore, the concatenation of the tokens is the text. An apostrophe begins a word ("it", "'s")
    or, in languages that elide (`elides`), ends a word ("l'", "uovo").
    """
    leading_space = text.removesuffix(text.lstrip())
    pattern = _TOKEN_ELIDED if elides else _TOKEN
    tokens = pattern.findall(text.lstrip())
    if tokens:
        tokens[0] = leading_space + tokens[0]
    return tokens


def count_words(text: str) -> int:
    """Return the number of tokens of a text that begin with a letter or digit."""
    return sum(token[0].isalnum() for token in tokenize(text.strip()))


def find_original(original: str, variant: str) -> Span | None:
    """Return the character span of the original in the variant; None if the original is missing.

    Letters, digits and word boundaries must be identical, but punctuation, spacing and case may
    differ (section 3.4, criterion 1). If there are several matches, the result is the last one.
    """
    start = variant.rfind(original)
    if start >= 0 and _is_at_word_boundaries(variant, start, start + len(original)):
        return Span(start, start + len(original))
    return _find_by_letters(original, variant)


def _find_by_letters(original: str, variant: str) -> Span | None:
    """Return the character span of the original in the variant, ignoring punctuation and case.

    The span includes closing punctuation. If there are several matches, the result is the last one.
    The result is None if no part of the variant has the letters and words of the original.
    """
    letters = _only_letters(original)
    if not letters:
        return None
    variant_letters = _only_letters(variant)
    positions = _letter_positions(variant)
    index = variant_letters.rfind(letters)
    while index >= 0:
        last_index = index + len(letters) - 1
        start, end = positions[index], positions[last_index] + 1
        has_same_words = _split_words(variant[start:end]) == _split_words(original)
        if has_same_words and _is_at_word_boundaries(variant, start, end):
            return Span(start, end + _length_of_closing_punctuation(variant[end:]))
        # Continue with the previous match, which may overlap this one.
        index = variant_letters.rfind(letters, 0, last_index)
    return None


def find_context(original: str, variant: str) -> str | None:
    """Return the context added before the original; None if the original is missing."""
    span = find_original(original, variant)
    return None if span is None else variant[: span.start].strip()


def added_context(original: str, variant: str) -> str:
    """Return the context added before the original; for an edited original, an approximation.

    The approximation assumes that the edited original has as many characters as the original.
    """
    context = find_context(original, variant)
    if context is not None:
        return context
    context_length = max(0, len(variant) - len(original))
    return variant[:context_length]


def project_tags(
    tokens: Sequence[str], tags: Sequence[Tag], variant: str, *, elides: bool = False
) -> tuple[list[str], list[Tag]] | None:
    """Return the tokens and tags of a variant, with the tags of its original (section 3.3).

    A verbatim original keeps its tokens. If the punctuation of the original differs, each word of
    the original keeps its tag. All tokens before and after the original get O.

    Args:
        tokens: Tokens of the original with their trailing spaces.
        tags: Tags of the original.
        variant: Text of the variant.
        elides: Whether the language elides (see `tokenize`).

    Returns:
        Tokens whose concatenation is the variant, and their tags; None if the original is missing.
    """
    original = "".join(tokens)
    span = find_original(original, variant)
    if span is None:
        return None
    after = variant[span.end :].lstrip()
    # The space after the original belongs to the original's last token.
    end = len(variant) - len(after)
    before, inside = variant[: span.start], variant[span.start : end]

    if inside.rstrip() == original.rstrip():
        trailing_space = inside.removeprefix(inside.rstrip())
        inside_tokens = [*tokens[:-1], tokens[-1].rstrip() + trailing_space]
        inside_tags = list(tags)
    else:
        inside_tokens, inside_tags = _tag_words(tokens, tags, inside)
    before_tokens, after_tokens = tokenize(before, elides=elides), tokenize(after, elides=elides)
    if not before_tokens:
        # Without a token before the original, leading space belongs to the original.
        inside_tokens[0] = before + inside_tokens[0]
    before_tags: list[Tag] = [OUTSIDE] * len(before_tokens)
    after_tags: list[Tag] = [OUTSIDE] * len(after_tokens)
    return (
        [*before_tokens, *inside_tokens, *after_tokens],
        [*before_tags, *inside_tags, *after_tags],
    )


def _tag_words(
    tokens: Sequence[str], tags: Sequence[Tag], text: str
) -> tuple[list[str], list[Tag]]:
    """Return the tokens and tags of a text whose letters are those of the original.

    The arguments `tokens` and `tags` belong to the original.
    """
    new_tokens: list[str] = []
    new_tags: list[Tag] = []
    previous_end = 0
    for word in _locate_words(tokens, tags, text):
        # Punctuation between two words of an idiom belongs to the idiom.
        is_inside_idiom = bool(new_tokens) and word.tag == INSIDE
        gap = text[previous_end : word.start]
        _append_gap(gap, INSIDE if is_inside_idiom else OUTSIDE, new_tokens, new_tags)
        new_tokens.append(text[word.start : word.end])
        new_tags.append(word.tag)
        previous_end = word.end
    _append_gap(text[previous_end:], OUTSIDE, new_tokens, new_tags)
    return new_tokens, new_tags


class _TaggedWord(NamedTuple):
    """Character span of a word in a text, and the tag of the word."""

    start: int
    end: int
    tag: Tag


def _locate_words(tokens: Sequence[str], tags: Sequence[Tag], text: str) -> list[_TaggedWord]:
    """Locate the words of the original in a text that has the same letters.

    The arguments `tokens` and `tags` belong to the original. Tokens without letters are left out.
    """
    positions = _letter_positions(text)
    words: list[_TaggedWord] = []
    used_letters = 0
    for token, token_tag in zip(tokens, tags, strict=True):
        letter_count = len(_letter_positions(token))
        if not letter_count:
            continue
        first_position = positions[used_letters]
        last_position = positions[used_letters + letter_count - 1]
        start, end = _include_apostrophes(token, text, first_position, last_position + 1)
        # If an idiom's first token was a removed punctuation mark, the idiom begins here.
        begins_idiom = token_tag == INSIDE and (not words or words[-1].tag == OUTSIDE)
        words.append(_TaggedWord(start, end, BEGIN if begins_idiom else token_tag))
        used_letters += letter_count
    return words


def _append_gap(gap: str, tag: Tag, tokens: list[str], tags: list[Tag]) -> None:
    """Append the punctuation marks in the gap between two words to `tokens`, and `tag` to `tags`.

    Leading space of the gap is added to the last token.
    """
    punctuation = gap
    if tokens:
        punctuation = gap.lstrip()
        leading_space = gap.removesuffix(punctuation)
        tokens[-1] += leading_space
    marks = tokenize(punctuation)
    tokens += marks
    tags += [tag] * len(marks)


def _include_apostrophes(token: str, text: str, start: int, end: int) -> tuple[int, int]:
    """Return the start and end of a token such as "'s" or "l'" in a text, with its apostrophe.

    The arguments `start` and `end` are the span of the token's letters in the text.
    """
    straight_token = token.strip().translate(_TO_STRAIGHT_APOSTROPHES)
    straight_text = text.translate(_TO_STRAIGHT_APOSTROPHES)
    if straight_token.startswith("'") and straight_text[:start].endswith("'"):
        start -= 1
    if straight_token.endswith("'") and straight_text[end:].startswith("'"):
        end += 1
    return start, end


def _letter_positions(text: str) -> list[int]:
    """Return the positions of the letters and digits of a text."""
    return [position for position, character in enumerate(text) if character.isalnum()]


def _only_letters(text: str) -> str:
    """Return the letters and digits of a text in lowercase, as one character each."""
    # Some letters have a lowercase form of two characters.
    return "".join(character.lower()[0] for character in text if character.isalnum())


def _is_at_word_boundaries(text: str, start: int, end: int) -> bool:
    """Return whether the part of a text from `start` to `end` begins and ends between words."""
    starts_in_word = start > 0 and text[start - 1].isalnum() and text[start].isalnum()
    ends_in_word = end < len(text) and text[end].isalnum() and text[end - 1].isalnum()
    return not (starts_in_word or ends_in_word)


def _split_words(text: str) -> list[str]:
    """Return the lowercase letters and digits of each word of a text.

    Spaces, hyphens and dashes separate words.
    """
    words = [_only_letters(word) for word in re.split(r"\s+|[-–—]", text)]
    return [word for word in words if word]


def _length_of_closing_punctuation(text: str) -> int:
    """Return the length of the sentence-final punctuation at the beginning of a text."""
    match = re.match(r"[.!?…]*[\"'”’»)]*", text)
    return match.end() if match else 0
