"""Inflected forms of words: simplemma's lemmas, and what a language's module adds to them.

A dictionary and no tagger, so that a match never depends on a model.
"""

import re
from collections.abc import Iterator
from functools import cache

from pieline.languages.language import Language
from pieline.languages.registry import find

_SHORTEST_BASE = 3
_SHORTEST_AFTER_PREFIX = 4


def same_word(one: str, other: str, language: str) -> bool:
    """Whether two normalised words are equal or inflected forms of one word. Symmetric."""
    return one == other or not base_forms(one, language).isdisjoint(base_forms(other, language))


@cache
def base_forms(word: str, language: str) -> frozenset[str]:
    """The word itself and the base forms that it may be an inflected form of, casefolded.

    "leaves" is a form of leave and of leaf: without the sentence nothing decides between them.

    Args:
        word: normalised, not empty.
        language: its name.

    Raises:
        UserError: no such language.
    """
    spoken = find(language)
    prefixed = {
        prefix + base
        for prefix in spoken.prefixes
        if word.startswith(prefix) and len(word) - len(prefix) >= _SHORTEST_AFTER_PREFIX
        for base in _lemmas(word.removeprefix(prefix), spoken)
    }
    return _lemmas(word, spoken).union(prefixed, _without_endings(word, spoken))


def _lemmas(word: str, language: Language) -> frozenset[str]:
    """The word and its lemmas, as a noun too where nouns are capitalised."""
    spellings = {word, word.replace(*language.respelled) if language.respelled else word}
    lemmas = (_lemma(form, language) for each in spellings for form in (each, each.capitalize()))
    return frozenset({word, *lemmas, *language.irregular.get(word, ())})


def _without_endings(word: str, language: Language) -> Iterator[str]:
    """The base forms that the word would have if it were regular, of those that are words."""
    from simplemma import is_known

    for ending, replacement in language.endings:
        base, count = re.subn(f"{ending}$", replacement, word)
        possible = len(base) >= _SHORTEST_BASE and base not in language.stop_words
        if count and possible and is_known(base, language.code, low_memory=True):
            yield base


def _lemma(word: str, language: Language) -> str:
    # A tenth of a second to load, and up to one more for a language's dictionary.
    from simplemma import lemmatize

    return lemmatize(word, language.code, low_memory=True).casefold()
