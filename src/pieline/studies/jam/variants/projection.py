"""From an original to its variant: tokens of new text, and the original's tags carried over."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from pieline.studies.jam.bio import BEGIN, INSIDE, OUTSIDE, Tag

_TOKEN = re.compile(r"(?:['’]\w+|\w+|[^\w\s])\s*")
_TOKEN_ELIDED = re.compile(r"(?:\w+['’](?=\w)|\w+|[^\w\s])\s*")
_APOSTROPHES = str.maketrans("’‘`´", "''''")


class Place(NamedTuple):
    """Where an original stands in a variant: characters from `start` to before `end`."""

    start: int
    end: int


def tokenise(text: str, *, elides: bool = False) -> list[str]:
    """Cut text as ID10M does: words and punctuation marks, each with the space that follows it.

    The concatenation of the tokens is the text; space before the first word joins that word. An
    apostrophe begins a word ("it", "'s"), or ends it where the language `elides` ("l'", "uovo").
    """
    start = len(text) - len(text.lstrip())
    tokens = (_TOKEN_ELIDED if elides else _TOKEN).findall(text, start)
    if tokens:
        tokens[0] = text[:start] + tokens[0]
    return tokens


def find_original(original: str, variant: str) -> Place | None:
    """Where the original stands in the variant, with only minor punctuation differences.

    That is: the same letters and digits in the same order, with any punctuation, space and case
    between them (section 3.4, criterion 1). The last such place counts; None if there is none.
    """
    verbatim = variant.rfind(original)
    if verbatim >= 0 and _is_apart(variant, verbatim, verbatim + len(original)):
        return Place(verbatim, verbatim + len(original))
    letters = _letters(variant)
    wanted = "".join(letter for letter, _ in _letters(original))
    text = "".join(letter for letter, _ in letters)
    at = text.rfind(wanted) if wanted else -1
    while at >= 0:
        start, end = letters[at][1], letters[at + len(wanted) - 1][1] + 1
        if _is_apart(variant, start, end) and _same_words(original, variant[start:end]):
            return Place(start, end + _closing_punctuation(variant[end:]))
        at = text.rfind(wanted, 0, at + len(wanted) - 1)
    return None


def context_of(original: str, variant: str) -> str | None:
    """The added context: what stands before the original. None if the original is missing."""
    place = find_original(original, variant)
    return None if place is None else variant[: place.start].strip()


def added_context(original: str, variant: str) -> str:
    """`context_of`; of an edited original what goes beyond the original's length."""
    context = context_of(original, variant)
    return variant[: max(0, len(variant) - len(original))] if context is None else context


def project_tags(
    tokens: Sequence[str], tags: Sequence[Tag], variant: str, *, elides: bool = False
) -> tuple[list[str], list[Tag]] | None:
    """Tokens and tags of a variant: the original's tags where it stands, O elsewhere (section 3.3).

    Args:
        tokens: of the original, with their trailing spaces.
        tags: of the original.
        variant: the whole text.
        elides: whether its language does (see `tokenise`).

    Returns:
        Tokens whose concatenation is the variant, and their tags. Where the original stands
        verbatim its tokens are kept; where its punctuation differs, each of its words keeps its
        tag. None if the original is missing.
    """
    original = "".join(tokens)
    place = find_original(original, variant)
    if place is None:
        return None
    before, inside, after = variant[: place.start], variant[slice(*place)], variant[place.end :]
    before_tokens = tokenise(before, elides=elides)
    space = len(after) - len(after.lstrip())
    inside, after = inside + after[:space], after[space:]
    if inside.rstrip() == original.rstrip():
        inside_tokens, inside_tags = list(tokens), list(tags)
        inside_tokens[-1] = inside_tokens[-1].rstrip() + inside[len(inside.rstrip()) :]
    else:
        inside_tokens, inside_tags = _carry_over(tokens, tags, inside)
    if not before_tokens:
        inside_tokens[0] = before + inside_tokens[0]
    after_tokens = tokenise(after, elides=elides)
    outside: Tag = OUTSIDE
    return (
        [*before_tokens, *inside_tokens, *after_tokens],
        [outside] * len(before_tokens) + inside_tags + [outside] * len(after_tokens),
    )


def _carry_over(
    tokens: Sequence[str], tags: Sequence[Tag], text: str
) -> tuple[list[str], list[Tag]]:
    """Tokens and tags of a text that has the original's letters but other punctuation."""
    letters = _letters(text)
    spans: list[tuple[int, int, Tag]] = []
    position = 0
    for token, given in zip(tokens, tags, strict=True):
        count = len(_letters(token))
        if count:
            first, last = letters[position][1], letters[position + count - 1][1] + 1
            # An idiom whose first token was a punctuation mark that is gone begins here.
            headless = given == INSIDE and (not spans or spans[-1][2] == OUTSIDE)
            tag = BEGIN if headless else given
            spans.append((*_with_apostrophe(token, text, first, last), tag))
            position += count
    found: list[str] = []
    labels: list[Tag] = []
    done = 0
    for number, (first, last, tag) in enumerate(spans):
        gap = text[done:first]
        # Punctuation between two words of one idiom belongs to the idiom.
        within: Tag = INSIDE if number and tag == INSIDE else OUTSIDE
        if found:
            space = len(gap) - len(gap.lstrip())
            found[-1] += gap[:space]
            gap = gap[space:]
        pieces = tokenise(gap)
        found += [*pieces, text[first:last]]
        labels += [within] * len(pieces) + [tag]
        done = last
    rest = text[done:]
    space = len(rest) - len(rest.lstrip())
    found[-1] += rest[:space]
    pieces = tokenise(rest[space:])
    return found + pieces, labels + [OUTSIDE] * len(pieces)


def _with_apostrophe(token: str, text: str, first: int, last: int) -> tuple[int, int]:
    """Where a token such as "'s" or "l'" begins and ends in the text: with its apostrophe."""
    bare, plain = token.strip().translate(_APOSTROPHES), text.translate(_APOSTROPHES)
    begins = bare[0] == "'" and first > 0 and plain[first - 1] == "'"
    ends = bare[-1] == "'" and plain[last : last + 1] == "'"
    return first - begins, last + ends


def _letters(text: str) -> list[tuple[str, int]]:
    """Letters and digits of a text in lower case, one by one, and where each stands."""
    return [(character.lower()[0], at) for at, character in enumerate(text) if character.isalnum()]


def _is_apart(text: str, start: int, end: int) -> bool:
    """Whether no word of the text reaches across the edges of a part of it."""
    before = start > 0 and text[start - 1].isalnum() and text[start].isalnum()
    after = end < len(text) and text[end].isalnum() and text[end - 1].isalnum()
    return not (before or after)


def _same_words(original: str, text: str) -> bool:
    """Whether two texts of the same letters are also cut into words at the same places.

    Hyphens and apostrophes may come and go; a space within a word may not.
    """
    words = [
        ["".join(letter for letter, _ in _letters(word)) for word in re.split(r"\s+|[-–—]", part)]
        for part in (original, text)
    ]
    return [word for word in words[0] if word] == [word for word in words[1] if word]


def _closing_punctuation(rest: str) -> int:
    """How many characters right after the last word still end the sentence."""
    found = re.match(r"[.!?…]*[\"'”’»)]*", rest)
    return found.end() if found else 0
