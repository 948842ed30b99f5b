"""Find base forms of inflected words, using simplemma and the data of each language.

Uses a dictionary instead of a tagger, so that matching does not depend on a model.
"""

import re
from collections.abc import Iterator
from functools import cache

from pieline.core.errors import UserError
from pieline.languages.language import Language
from pieline.languages.registry import get_language

_SHORTEST_BASE = 3
_SHORTEST_AFTER_PREFIX = 4


def same_word(one: str, other: str, language: str) -> bool:
    """Return whether two normalized words are forms of the same word, in either order."""
    return one == other or not base_forms(one, language).isdisjoint(base_forms(other, language))


@cache
def base_forms(word: str, language: str) -> frozenset[str]:
    """Return a word and its possible base forms, casefolded.

    Ambiguous words have several base forms: "leave" and "leaf" for "leaves".

    Args:
        word: Normalized, nonempty word.
        language: Language name.

    Raises:
        UserError: The language is unknown, or simplemma does not know its code.
    """
    lang = get_language(language)
    prefixed: set[str] = set()
    for prefix in lang.prefixes:
        rest = word.removeprefix(prefix)
        if rest != word and len(rest) >= _SHORTEST_AFTER_PREFIX:
            prefixed |= {prefix + base for base in _lemmas(rest, lang)}
    return _lemmas(word, lang).union(prefixed, _without_endings(word, lang))


def _lemmas(word: str, language: Language) -> frozenset[str]:
    """Return a word, its lemmas and its irregular base forms.

    Also looks up the capitalized and, if the language has one, the original spelling of the word.
    """
    spellings = {word, word.replace(*language.respelled) if language.respelled else word}
    lemmas = (_lemma(form, language) for each in spellings for form in (each, each.capitalize()))
    return frozenset({word, *lemmas, *language.irregular.get(word, ())})


def _without_endings(word: str, language: Language) -> Iterator[str]:
    """Yield the base forms that a word's ending implies, if the dictionary contains them."""
    from simplemma import is_known

    for ending, replacement in language.endings:
        base, count = re.subn(f"{ending}$", replacement, word)
        possible = len(base) >= _SHORTEST_BASE and base not in language.stop_words
        if count and possible and is_known(base, language.code, low_memory=True):
            yield base


def _lemma(word: str, language: Language) -> str:
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
