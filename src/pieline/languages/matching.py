"""Whether a text names a PIE, in ID10M-JAM and elsewhere, if its sentence does not matter."""

import re
from collections.abc import Collection, Sequence
from functools import lru_cache
from itertools import pairwise

from pieline.languages.inflection import base_forms, same_word
from pieline.languages.registry import find
from pieline.languages.spelling import normalise


def matches_pie(prediction: str, pie: str, *, language: str) -> bool:
    """Whether a predicted text names a PIE: the project's one matching function.

    Both texts are normalised (ID10M-JAM, section 4.1: "normalization and regular-expression
    matching"), inflected forms of a word are equal, and one of these holds:

    - they are the same words;
    - the prediction holds the PIE as it stands and is not much longer: at most three times as
      many words, or eight (an answer that repeats the whole sentence names nothing);
    - they share a word that is used in one PIE only ("Holzweg"), and the prediction is not longer
      than that;
    - they share more than half of the content words of each, whatever their order ("nahm ihn auf
      den Arm", "auf den Arm nehmen"), and more than two thirds (Dice) of the words other than
      articles, pronouns, be and modals. Particles can be content ("back seat"), a light verb that
      one of the two lacks is not, and a separated German verb is one word. So "hot water" names
      "in hot water", "back seat" "take a back seat" and "gab den Geist auf" "den Geist aufgeben",
      but neither "ball" names "on the ball" nor "the ice" "break the ice".

    Where neither text holds the other, the order of the two does not matter. An answer without a
    content word never matches, except a PIE that has none itself ("wie dem auch sei") and is
    given whole. An empty answer never matches.
    """
    predicted, wanted = words_of(prediction, language), words_of(pie, language)
    if predicted == wanted or find(language).stop_words.issuperset(predicted):
        return bool(predicted) and predicted == wanted
    if not is_much_longer(predicted, wanted) and (
        (wanted and _holds(predicted, wanted, language))
        or find(language).bound_words.intersection(predicted, wanted)
    ):
        return True
    return share_most_words(
        _joined(predicted, wanted, language), _joined(wanted, predicted, language), language
    )


def contains_pie(text: str, pie: str, *, language: str) -> bool:
    """Whether a text of any length holds the words of a PIE, side by side and in any inflection.

    A PIE that is only one content word counts by its whole form, and an empty one never does.
    """
    words, _, forms = _read(text, language)
    wanted, bases, _ = _read(pie, language)
    # Most PIEs asked for have a word that is nowhere in the text.
    return (
        bool(wanted)
        and not any(base.isdisjoint(forms) for base in bases)
        and _holds(words, wanted, language)
    )


@lru_cache(maxsize=10_000)
def _read(
    text: str, language: str
) -> tuple[tuple[str, ...], tuple[frozenset[str], ...], frozenset[str]]:
    """A text's words, the base forms of each and of all: many PIEs are looked for in one text."""
    words = tuple(words_of(text, language))
    bases = tuple(base_forms(word, language) for word in words)
    return words, bases, frozenset().union(*bases)


def words_of(text: str, language: str) -> list[str]:
    """The normalised words of a text, as matching compares them; in Italian "d'occhio" is two."""
    if find(language).elides:
        text = re.sub(r"(?<=\w)['’](?=\w)", " ", text)
    return normalise(text).split()


def is_much_longer(words: Sequence[str], wanted: Sequence[str]) -> bool:
    """Whether an answer is too long to name a PIE: it may only repeat the sentence."""
    return len(words) > max(8, 3 * len(wanted))


def _holds(words: Sequence[str], wanted: Sequence[str], language: str) -> bool:
    """Whether the wanted words stand side by side in the words."""
    return any(
        all(
            same_word(word, other, language)
            for word, other in zip(words[start : start + len(wanted)], wanted, strict=True)
        )
        for start in range(len(words) - len(wanted) + 1)
    )


def share_most_words(one: Sequence[str], other: Sequence[str], language: str) -> bool:
    """Whether two texts share most of their words (the third rule of `matches_pie`). Symmetric."""
    first, second = _content(one, other, language), _content(other, one, language)
    if 2 * count_shared(first, second, language) <= max(len(first), len(second)):
        return False
    first, second = (without(find(language).light_words, text) for text in (one, other))
    return 3 * count_shared(first, second, language) > len(first) + len(second)


def _content(words: Sequence[str], others: Sequence[str], language: str) -> list[str]:
    """The content words, without particles before a stop word and light verbs the others lack."""
    spoken = find(language)
    return [
        word
        for word, following in pairwise([*words, ""])
        if word not in spoken.stop_words
        and not (word in spoken.particles and following in spoken.stop_words)
        and (
            spoken.light_verbs.isdisjoint(base_forms(word, language))
            or any(same_word(word, other, language) for other in others)
        )
    ]


def _joined(words: Sequence[str], others: Sequence[str], language: str) -> list[str]:
    """The words; a separated verb is one word if the others have it so ("gab … auf", aufgeben)."""
    separated = (
        (prefix, verb, other)
        for prefix in words
        if prefix in find(language).prefixes
        for other in others
        if other.startswith(prefix) and other != prefix
        for verb in words
        if same_word(verb, other.removeprefix(prefix), language)
    )
    prefix, verb, whole = next(separated, ("", "", ""))
    return [whole if word == verb else word for word in words if word != prefix]


def without(dropped: Collection[str], words: Sequence[str]) -> list[str]:
    """The words that are not dropped, in order."""
    return [word for word in words if word not in dropped]


def count_shared(words: Sequence[str], others: Sequence[str], language: str) -> int:
    """How many words of each text are also in the other; the smaller number. Symmetric."""
    return min(
        sum(any(same_word(word, other, language) for other in two) for word in one)
        for one, two in ((words, others), (others, words))
    )
