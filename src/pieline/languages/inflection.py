"""Find the base forms of inflected words, with simplemma and the data of each language.

simplemma looks words up in a dictionary, so that matching does not depend on a trained tagger.
"""

import re
from collections.abc import Iterator
from functools import cache

from pieline.core.errors import UserError
from pieline.languages.language import Language
from pieline.languages.registry import get_language

_SHORTEST_BASE = 3
"""Minimum length of a base form, so that "red" is not taken for a form of "re"."""
_SHORTEST_AFTER_PREFIX = 4
"""Minimum length of a word without its prefix, so that "abend" is not taken for "ab" and "end"."""


def same_word(one: str, other: str, language: str) -> bool:
    """Return whether two normalized words can be forms of the same word."""
    return one == other or not base_forms(one, language).isdisjoint(base_forms(other, language))


@cache
def base_forms(word: str, language: str) -> frozenset[str]:
    """Return a set of a word and its possible base forms, casefolded.

    An ambiguous word has several base forms: "leave" and "leaf" for "leaves".

    Args:
        word: Normalized, nonempty word.
        language: Language name.

    Raises:
        UserError: The language is unknown, or simplemma does not know its code.
    """
    lang = get_language(language)
    bases = {*_lemmas(word, lang), *_bases_by_ending(word, lang)}
    for prefix in lang.prefixes:
        verb = word.removeprefix(prefix)
        if verb != word and len(verb) >= _SHORTEST_AFTER_PREFIX:
            bases |= {prefix + base for base in _lemmas(verb, lang)}
    return frozenset(bases)


def _lemmas(word: str, language: Language) -> set[str]:
    """Return a word, its lemmas in simplemma's dictionary, and its irregular base forms.

    The word is also looked up with a capital, and in its spelling before normalization (see
    `Language.respelled`).
    """
    spellings = {word}
    if language.respelled:
        spellings.add(word.replace(*language.respelled))
    lemmas = {word, *language.irregular.get(word, ())}
    for spelling in spellings:
        lemmas.add(_lemma(spelling, language))
        lemmas.add(_lemma(spelling.capitalize(), language))
    return lemmas


def _bases_by_ending(word: str, language: Language) -> Iterator[str]:
    """Yield the base forms that a word's ending implies and simplemma's dictionary contains."""
    from simplemma import is_known

    for ending, replacement in language.endings:
        base, replacement_count = re.subn(f"{ending}$", replacement, word)
        can_be_base = len(base) >= _SHORTEST_BASE and base not in language.stop_words
        if replacement_count and can_be_base and is_known(base, language.code, low_memory=True):
            yield base


def _lemma(word: str, language: Language) -> str:
    """Return the lemma of a word in simplemma's dictionary; the word itself if it is not listed."""
    # Import lazily: loading takes 0.1 s, plus up to 1 s for a language's dictionary.
    from simplemma import lemmatize

    try:
        return lemmatize(word, language.code, low_memory=True).casefold()
    except ValueError:
        raise UserError(
            f"simplemma has no lemmas for the code {language.code!r} of {language.label}",
            where=f"pieline.languages: {language.name}",
            hint="correct the code, or use a language that simplemma knows",
        ) from None
