"""Match predicted texts to PIEs without considering the sentence."""

import re
from collections.abc import Collection, Iterable, Sequence
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
    - The prediction contains the complete PIE in sequence and has at most eight words or at most
      three times as many words as the PIE. Longer predictions may only repeat the sentence.
    - The texts share a word that occurs in only one PIE ("Holzweg"), and the prediction is within
      the same length limit.
    - In any order, the texts share more than half of the content words of each ("nahm ihn auf den
      Arm", "auf den Arm nehmen") and have a Dice coefficient above two thirds, computed without
      articles, pronouns, "be" and modal verbs. Particles can be content words ("back seat"), a
      light verb that only one text has is not a content word, and a separated German verb counts as
      one word. Thus "hot water" matches "in hot water", "back seat" matches "take a back seat" and
      "gab den Geist auf" matches "den Geist aufgeben", but "ball" does not match "on the ball", and
      "the ice" does not match "break the ice".

    An empty prediction never matches. A prediction that consists of stop words matches only an
    identical PIE ("wie dem auch sei").
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


def same_pie(one: str, other: str, *, language: str) -> bool:
    """Return whether two canonical forms differ only in light words, "to" and inflection.

    "To drop the ball" and "drop balls" are one PIE. In contrast to `matches_pie`, all other words
    must be the same, in the same order. Symmetric.
    """
    dropped = get_language(language).light_words | {"to"}
    first, second = (remove_words(dropped, words_of(text, language)) for text in (one, other))
    return len(first) == len(second) > 0 and all(
        same_word(word, word_of_other, language)
        for word, word_of_other in zip(first, second, strict=True)
    )


def contains_pie(text: str, pie: str, *, language: str) -> bool:
    """Return whether a text contains the words of a PIE in sequence, in any inflection.

    Returns False for an empty PIE.
    """
    words, _, forms = _analyze(text, language)
    target, bases, _ = _analyze(pie, language)
    # Avoid the slow search for PIEs with a word that does not occur in the text.
    return (
        bool(target)
        and not any(base.isdisjoint(forms) for base in bases)
        and _contains(words, target, language)
    )


def occurs_in(words: str, text: str, *, language: str) -> bool:
    """Return whether words occur in a text, verbatim (also within a word) or inflected."""
    return normalize(words) in normalize(text) or contains_pie(text, words, language=language)


def shortest_match(tokens: Sequence[str], pie: str, *, language: str, longest: int) -> str | None:
    """Return the text of the shortest token sequence that contains a PIE.

    Returns the first of several equally short sequences, and None if no sequence of up to `longest`
    tokens contains the PIE. Tokens must include their trailing spaces.
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
    """Return the words of a text, the base forms of each, and the union of all base forms."""
    words = tuple(words_of(text, language))
    bases = tuple(base_forms(word, language) for word in words)
    return words, bases, frozenset().union(*bases)


def words_of(text: str, language: str) -> list[str]:
    """Return the normalized words of a text; in Italian, "d'occhio" is two words."""
    if get_language(language).elides:
        text = re.sub(r"(?<=\w)['’](?=\w)", " ", text)
    return normalize(text).split()


def is_much_longer(words: Sequence[str], target: Sequence[str]) -> bool:
    """Return whether an answer (`words`) is too long to name a PIE (`target`)."""
    return len(words) > max(8, 3 * len(target))


def _contains(words: Sequence[str], target: Sequence[str], language: str) -> bool:
    """Return whether `words` contains inflected forms of the words of `target` in sequence."""

    def matches(part: Sequence[str]) -> bool:
        pairs = zip(part, target, strict=True)
        return all(same_word(word, other, language) for word, other in pairs)

    starts = range(len(words) - len(target) + 1)
    return any(matches(words[start : start + len(target)]) for start in starts)


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

    Stop words and particles before a stop word are not content words.
    """
    lang = get_language(language)
    content = []
    for word, following in pairwise([*words, ""]):
        is_particle = word in lang.particles and following in lang.stop_words
        if word in lang.stop_words or is_particle:
            continue
        is_light = not lang.light_verbs.isdisjoint(base_forms(word, language))
        if not is_light or _has_word(others, word, language):
            content.append(word)
    return content


def _has_word(words: Iterable[str], word: str, language: str) -> bool:
    return any(same_word(word, other, language) for other in words)


def _join_separated_verbs(words: Sequence[str], others: Sequence[str], language: str) -> list[str]:
    """Join the first separated verb that `others` has as one word ("gab … auf", "aufgeben")."""
    for prefix in words:
        if prefix not in get_language(language).prefixes:
            continue
        for compound in others:
            stem = compound.removeprefix(prefix)
            if not stem or stem == compound:
                continue
            for verb in words:
                if same_word(verb, stem, language):
                    rest = [word for word in words if word != prefix]
                    return [compound if word == verb else word for word in rest]
    return list(words)


def remove_words(dropped: Collection[str], words: Sequence[str]) -> list[str]:
    """Return the words that are not in `dropped`, in order."""
    return [word for word in words if word not in dropped]


def count_shared(words: Sequence[str], others: Sequence[str], language: str) -> int:
    """Count the words of each text that the other shares; return the smaller count. Symmetric."""
    shared = sum(_has_word(others, word, language) for word in words)
    shared_by_others = sum(_has_word(words, word, language) for word in others)
    return min(shared, shared_by_others)
