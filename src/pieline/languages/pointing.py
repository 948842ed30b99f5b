"""Decide whether an answer refers to the PIE of its sentence (IdioTS)."""

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher

from pieline.languages.inflection import base_forms, same_word
from pieline.languages.matching import (
    count_shared,
    is_much_longer,
    matches_pie,
    remove_words,
    share_most_words,
    words_of,
)
from pieline.languages.registry import get_language

_ALIKE = 0.7
"""Minimum similarity, by characters, of two phrases that sound alike. The words in which the
phrases differ need half that similarity: "paint the boat" does not sound like "miss the boat"."""
_SET_OFF = re.compile(r"[\"“”„«»;/()\[\]]|(?<!\w)['‘’]|['’](?!\w)")


def points_at_pie(
    answer: str, pie: str, *, sentence: str, language: str, echoes: bool = False
) -> bool:
    """Return whether an answer refers to the PIE of a known sentence.

    Because the sentence is known, this function accepts more partial PIEs than `matches_pie`. The
    answer, or a part of it that is quoted or delimited by punctuation, must meet one of these
    conditions:

    - It names the PIE according to `matches_pie`, or does so if light words, light verbs and
      supporting words are ignored in both ("out on a limb" for "go out on a limb").
    - It is not much longer than the PIE (see `is_much_longer`) and contains the PIE with different
      word boundaries ("easy-peasy", "easypeasy").
    - All of its words occur in the sentence, it is not much longer than the PIE, and it has at
      least two and more than half of the PIE's content words ("brick wall" for "like talking to a
      brick wall"). If the PIE has only one content word, it has that word, and at least two and
      more than half of the PIE's words that are not light words, light verbs or supporting words
      ("too much on my plate" for "a lot on your plate", but not "jumped out of" for "out of the
      blue").
    - The sentence `echoes` the PIE without using it (a distractor of IdioTS), all of its words
      occur in the sentence, it is not much longer than the PIE, and some of its consecutive words
      are spelled almost like the PIE.
    """
    lang = get_language(language)
    sentence_words, pie_words = words_of(sentence, language), words_of(pie, language)
    heavy = remove_words(lang.light_words, pie_words)
    for part in (answer, *_SET_OFF.split(answer)):
        words = words_of(part, language)
        if matches_pie(part, pie, language=language) or share_most_words(
            _kernel(words, language), _kernel(pie_words, language), language
        ):
            return True
        if is_much_longer(words, pie_words):
            continue
        others = remove_words(lang.light_words, words)
        sizes = set(range(1, len(others) + 1)) - {len(heavy)}
        if "".join(heavy) in map("".join, _stretches(others, sizes)):
            return True
        is_in_sentence = all(
            any(same_word(word, other, language) for other in sentence_words) for word in words
        )
        if is_in_sentence and (
            _has_most(words, pie_words, language) or (echoes and _sounds_like(words, pie_words))
        ):
            return True
    return False


def _has_most(words: Sequence[str], pie_words: Sequence[str], language: str) -> bool:
    """Return whether words include at least two and more than half of a PIE's distinctive words.

    The distinctive words are the content words of the PIE or, if there are fewer than two, all
    words of `_kernel`. If there is only one content word, it must be included.
    """
    kernel = _kernel(pie_words, language)
    content = remove_words(get_language(language).stop_words, kernel)
    if len(content) == 1 and not count_shared(content, words, language):
        return False
    distinctive = content if len(content) > 1 else kernel
    shared = count_shared(distinctive, words, language)
    return shared > 1 and 2 * shared > len(distinctive)


def _sounds_like(words: Sequence[str], pie_words: Sequence[str]) -> bool:
    """Return whether some of the words, in sequence, are spelled almost like a PIE."""
    return any(
        _likeness(part, pie_words) >= _ALIKE
        and _likeness(remove_words(pie_words, part), remove_words(part, pie_words)) >= _ALIKE / 2
        for part in _stretches(words, range(max(1, len(pie_words) - 1), len(pie_words) + 2))
    )


def _likeness(words: Sequence[str], others: Sequence[str]) -> float:
    return SequenceMatcher(None, " ".join(words), " ".join(others), autojunk=False).ratio()


def _stretches(words: Sequence[str], sizes: Iterable[int]) -> Iterator[Sequence[str]]:
    """Return an iterator over all windows of the given sizes."""
    return (words[start : start + size] for size in sizes for start in range(len(words) - size + 1))


def _kernel(words: Sequence[str], language: str) -> list[str]:
    """Return the words without light words, light verbs and supporting words.

    If fewer than two words would be left, removes only the light words.
    """
    lang = get_language(language)
    heavy = remove_words(lang.light_words, words)
    supporting = lang.light_verbs | lang.supporting
    kernel = [word for word in heavy if supporting.isdisjoint(base_forms(word, language))]
    return kernel if len(kernel) > 1 else heavy
