"""Match predicted texts to PIEs without considering the sentence."""

import re
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from pieline.languages.inflection import base_forms, same_word
from pieline.languages.registry import get_language
from pieline.languages.spelling import normalize


def matches_pie(prediction: str, pie: str, *, language: str) -> bool:
    """Return whether a predicted text names a PIE.

    All studies use this function. Both texts are normalized (ID10M-JAM, section 4.1: "normalization
    and regular-expression matching"), and inflected forms of a word count as equal. A prediction
    names the PIE if one of these conditions holds:

    - The prediction and the PIE have the same words.
    - The prediction contains the complete PIE in sequence and has at most eight words or at most
      three times as many words as the PIE. Longer predictions may only repeat the sentence.
    - The prediction and the PIE share a word that occurs in only one PIE ("Holzweg"), and the
      prediction is not longer than in the second condition.
    - In any order, the prediction and the PIE share more than half of the content words of each
      text ("nahm ihn auf den Arm", "auf den Arm nehmen") and have a Dice coefficient above two
      thirds, computed without articles, pronouns, "be" and modal verbs. Particles can be content
      words ("back seat"), a light verb that only one text has is not a content word, and a
      separated German verb counts as one word. Thus "hot water" matches "in hot water", "back seat"
      matches "take a back seat" and "gab den Geist auf" matches "den Geist aufgeben", but "ball"
      does not match "on the ball", and "the ice" does not match "break the ice".

    An empty prediction never matches. A prediction that consists of stop words matches only an
    identical PIE ("wie dem auch sei").
    """
    lang = get_language(language)
    predicted_words, pie_words = words_of(prediction, language), words_of(pie, language)
    if predicted_words == pie_words:
        return bool(pie_words)
    if lang.stop_words.issuperset(predicted_words):
        return False
    if not is_much_longer(predicted_words, pie_words):
        if pie_words and _contains(predicted_words, pie_words, language):
            return True
        if lang.bound_words.intersection(predicted_words, pie_words):
            return True
    return share_most_words(
        _join_separated_verb(predicted_words, pie_words, language),
        _join_separated_verb(pie_words, predicted_words, language),
        language,
    )


def same_pie(one: str, other: str, *, language: str) -> bool:
    """Return whether two canonical forms of PIEs differ only in light words, "to" and inflection.

    "To drop the ball" and "drop balls" are forms of the same PIE. In contrast to `matches_pie`, all
    other words must be the same, in the same order. The order of the two arguments does not matter.
    """
    ignored = get_language(language).light_words | {"to"}
    words_of_one = remove_words(ignored, words_of(one, language))
    words_of_other = remove_words(ignored, words_of(other, language))
    return bool(words_of_one) and _same_words(words_of_one, words_of_other, language)


def contains_pie(text: str, pie: str, *, language: str) -> bool:
    """Return whether a text contains the words of a PIE in sequence, in any inflection.

    Returns False for an empty PIE.
    """
    analyzed_text, analyzed_pie = _analyze(text, language), _analyze(pie, language)
    if not analyzed_pie.words:
        return False
    # Avoid the slow search for PIEs with a word that does not occur in the text.
    for bases_of_word in analyzed_pie.bases_of_words:
        if bases_of_word.isdisjoint(analyzed_text.all_bases):
            return False
    return _contains(analyzed_text.words, analyzed_pie.words, language)


def occurs_in(phrase: str, text: str, *, language: str) -> bool:
    """Return whether a phrase occurs in a text, either as characters, or in any inflection."""
    return normalize(phrase) in normalize(text) or contains_pie(text, phrase, language=language)


def shortest_match(tokens: Sequence[str], pie: str, *, language: str, longest: int) -> str | None:
    """Return the text of the shortest sequence of tokens that contains a PIE.

    Returns the first of several equally short sequences, and None if no sequence contains the PIE.

    Args:
        tokens: Tokens of a text, including the spaces after them.
        pie: Canonical form of the PIE.
        language: Language name.
        longest: Maximum number of tokens in the sequence.
    """
    for length in range(1, longest + 1):
        for start in range(len(tokens) - length + 1):
            text = "".join(tokens[start : start + length]).strip()
            if contains_pie(text, pie, language=language):
                return text
    return None


class _AnalyzedText(NamedTuple):
    """The words of a text, the base forms of each word, and all these base forms together."""

    words: tuple[str, ...]
    bases_of_words: tuple[frozenset[str], ...]
    all_bases: frozenset[str]


@lru_cache(maxsize=10_000)
def _analyze(text: str, language: str) -> _AnalyzedText:
    words = tuple(words_of(text, language))
    bases_of_words = tuple(base_forms(word, language) for word in words)
    return _AnalyzedText(words, bases_of_words, frozenset().union(*bases_of_words))


def words_of(text: str, language: str) -> list[str]:
    """Return the normalized words of a text; in Italian, "d'occhio" is two words."""
    if get_language(language).elides:
        text = re.sub(r"(?<=\w)['’](?=\w)", " ", text)
    return normalize(text).split()


def is_much_longer(words: Sequence[str], target: Sequence[str]) -> bool:
    """Return whether an answer has too many words to name a PIE (see `matches_pie`).

    Args:
        words: Words of the answer.
        target: Words of the PIE.
    """
    return len(words) > max(8, 3 * len(target))


def _contains(words: Sequence[str], target: Sequence[str], language: str) -> bool:
    """Return whether `words` contains the words of `target` in sequence, in any inflection."""
    for start in range(len(words) - len(target) + 1):
        if _same_words(words[start : start + len(target)], target, language):
            return True
    return False


def _same_words(one: Sequence[str], other: Sequence[str], language: str) -> bool:
    """Return whether two sequences have the same words in the same order, in any inflection."""
    return len(one) == len(other) and all(
        same_word(word, other_word, language) for word, other_word in zip(one, other, strict=True)
    )


def share_most_words(one: Sequence[str], other: Sequence[str], language: str) -> bool:
    """Return whether two texts share most of their words, by the last condition of `matches_pie`.

    The order of the two texts does not matter.
    """
    content_of_one = _content_words(one, other, language)
    content_of_other = _content_words(other, one, language)
    shared_content = count_shared(content_of_one, content_of_other, language)
    if 2 * shared_content <= max(len(content_of_one), len(content_of_other)):
        return False
    light_words = get_language(language).light_words
    one_without_light = remove_words(light_words, one)
    other_without_light = remove_words(light_words, other)
    shared = count_shared(one_without_light, other_without_light, language)
    total = len(one_without_light) + len(other_without_light)
    # The Dice coefficient, 2 * shared / total, must be above two thirds.
    return 3 * shared > total


def _content_words(words: Sequence[str], other_words: Sequence[str], language: str) -> list[str]:
    """Return the content words among the words of a text that is compared with another text.

    Light verbs are content words only if both texts have them. Stop words and particles before a
    stop word are not content words.
    """
    lang = get_language(language)
    content_words = []
    for word, next_word in pairwise([*words, ""]):
        is_particle = word in lang.particles and next_word in lang.stop_words
        if word in lang.stop_words or is_particle:
            continue
        is_light_verb = not lang.light_verbs.isdisjoint(base_forms(word, language))
        if not is_light_verb or has_word(other_words, word, language):
            content_words.append(word)
    return content_words


def has_word(words: Iterable[str], word: str, language: str) -> bool:
    """Return whether `words` contains a word in any inflection."""
    return any(same_word(word, other, language) for other in words)


def _join_separated_verb(
    words: Sequence[str], other_words: Sequence[str], language: str
) -> list[str]:
    """Return the words of a text with a separated verb in one word, if another text has this word.

    With "aufgeben" in the other text, "gab … auf" becomes "aufgeben". Only the first separated verb
    is joined.
    """
    for prefix in words:
        if prefix not in get_language(language).prefixes:
            continue
        for compound in other_words:
            stem = compound.removeprefix(prefix)
            if not stem or stem == compound:
                continue
            for verb in words:
                if same_word(verb, stem, language):
                    words_without_prefix = remove_words({prefix}, words)
                    return [compound if word == verb else word for word in words_without_prefix]
    return list(words)


def remove_words(dropped: Collection[str], words: Sequence[str]) -> list[str]:
    """Return `words` without the words in `dropped`, in the same order."""
    return [word for word in words if word not in dropped]


def count_shared(one: Sequence[str], other: Sequence[str], language: str) -> int:
    """Return how many words two texts share.

    If a shared word occurs more often in one text, the two texts have different numbers of shared
    words. The result is the smaller number.
    """
    shared_in_one = [word for word in one if has_word(other, word, language)]
    shared_in_other = [word for word in other if has_word(one, word, language)]
    return min(len(shared_in_one), len(shared_in_other))
