"""Match predicted texts to PIEs without considering the sentence."""

import re
from collections.abc import Collection, Sequence
from functools import lru_cache
from itertools import pairwise

from pieline.languages.inflection import base_forms, same_word
from pieline.languages.registry import get_language
from pieline.languages.spelling import normalize


def matches_pie(prediction: str, pie: str, *, language: str) -> bool:
    """Return whether a predicted text names a PIE.

    All studies use this function. Both texts are normalized (ID10M-JAM, section 4.1: "normalization
    and regular-expression matching"), inflected forms of a word count as equal, and one of these
    must hold:

    - The texts have the same words.
    - The prediction contains the complete PIE and is at most three times as long, or at most eight
      words. Longer answers may only repeat the sentence.
    - They share a word that occurs in only one PIE ("Holzweg"), subject to the same length limit.
    - In any order, they share more than half of the content words of each ("nahm ihn auf den Arm",
      "auf den Arm nehmen") and more than two thirds (Dice) of the words other than articles,
      pronouns, "be" and modal verbs. Particles can be content words ("back seat"), a light verb
      that only one text has is ignored, and a separated German verb counts as one word. Thus "hot
      water" matches "in hot water", "back seat" matches "take a back seat" and "gab den Geist auf"
      matches "den Geist aufgeben", but "ball" does not match "on the ball", nor "the ice" "break
      the ice".

    The result is symmetric unless one text contains the other. Empty answers never match. Answers
    without a content word match only an identical PIE without one ("wie dem auch sei").
    """
    predicted, target = words_of(prediction, language), words_of(pie, language)
    if predicted == target or get_language(language).stop_words.issuperset(predicted):
        return bool(predicted) and predicted == target
    if not is_much_longer(predicted, target) and (
        (target and _contains(predicted, target, language))
        or get_language(language).bound_words.intersection(predicted, target)
    ):
        return True
    return share_most_words(
        _join_separated_verbs(predicted, target, language),
        _join_separated_verbs(target, predicted, language),
        language,
    )


def contains_pie(text: str, pie: str, *, language: str) -> bool:
    """Return whether a text contains the words of a PIE in sequence, in any inflection.

    An empty PIE is never contained.
    """
    words, _, forms = _analyze(text, language)
    target, bases, _ = _analyze(pie, language)
    # Skip the scan for most PIEs, which have a word that does not occur in the text.
    return (
        bool(target)
        and not any(base.isdisjoint(forms) for base in bases)
        and _contains(words, target, language)
    )


def shortest_match(tokens: Sequence[str], pie: str, *, language: str, longest: int) -> str | None:
    """Return the text of the first shortest token sequence that contains a PIE.

    Tokens include their trailing space. Returns None if no `longest` tokens contain the PIE.
    """
    for length in range(1, longest + 1):
        for start in range(len(tokens) - length + 1):
            text = "".join(tokens[start : start + length]).strip()
            if contains_pie(text, pie, language=language):
                return text
    return None


@lru_cache(maxsize=10_000)
def _analyze(
    text: str, language: str
) -> tuple[tuple[str, ...], tuple[frozenset[str], ...], frozenset[str]]:
    """Return the words, their base forms, and the union of these; cached for repeated lookups."""
    words = tuple(words_of(text, language))
    bases = tuple(base_forms(word, language) for word in words)
    return words, bases, frozenset().union(*bases)


def words_of(text: str, language: str) -> list[str]:
    """Return the normalized words of a text; in Italian, "d'occhio" is two words."""
    if get_language(language).elides:
        text = re.sub(r"(?<=\w)['’](?=\w)", " ", text)
    return normalize(text).split()


def is_much_longer(words: Sequence[str], target: Sequence[str]) -> bool:
    """Return whether an answer is too long to name a PIE and may only repeat the sentence."""
    return len(words) > max(8, 3 * len(target))


def _contains(words: Sequence[str], target: Sequence[str], language: str) -> bool:
    """Return whether `words` contains the words of `target` in sequence."""
    return any(
        all(
            same_word(word, other, language)
            for word, other in zip(words[start : start + len(target)], target, strict=True)
        )
        for start in range(len(words) - len(target) + 1)
    )


def share_most_words(one: Sequence[str], other: Sequence[str], language: str) -> bool:
    """Return whether two texts share most of their words (see `matches_pie`). Symmetric."""
    first, second = _content(one, other, language), _content(other, one, language)
    if 2 * count_shared(first, second, language) <= max(len(first), len(second)):
        return False
    first, second = (
        remove_words(get_language(language).light_words, text) for text in (one, other)
    )
    return 3 * count_shared(first, second, language) > len(first) + len(second)


def _content(words: Sequence[str], others: Sequence[str], language: str) -> list[str]:
    """Return the content words, without light verbs that `others` lacks.

    Particles before a stop word are excluded, too.
    """
    lang = get_language(language)
    return [
        word
        for word, following in pairwise([*words, ""])
        if word not in lang.stop_words
        and not (word in lang.particles and following in lang.stop_words)
        and (
            lang.light_verbs.isdisjoint(base_forms(word, language))
            or any(same_word(word, other, language) for other in others)
        )
    ]


def _join_separated_verbs(words: Sequence[str], others: Sequence[str], language: str) -> list[str]:
    """Join separated verbs that the other text has as one word ("gab … auf", "aufgeben")."""
    separated = (
        (prefix, verb, other)
        for prefix in words
        if prefix in get_language(language).prefixes
        for other in others
        if other.startswith(prefix) and other != prefix
        for verb in words
        if same_word(verb, other.removeprefix(prefix), language)
    )
    prefix, verb, compound = next(separated, ("", "", ""))
    return [compound if word == verb else word for word in words if word != prefix]


def remove_words(dropped: Collection[str], words: Sequence[str]) -> list[str]:
    """Return the words that are not in `dropped`, in order."""
    return [word for word in words if word not in dropped]


def count_shared(words: Sequence[str], others: Sequence[str], language: str) -> int:
    """Count the words that each text shares with the other; return the smaller count. Symmetric."""
    return min(
        sum(any(same_word(word, other, language) for other in two) for word in one)
        for one, two in ((words, others), (others, words))
    )
