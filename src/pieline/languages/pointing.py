"""Decide whether an answer refers to the PIE of its sentence (IdioTS)."""

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher

from pieline.languages.inflection import base_forms
from pieline.languages.matching import (
    count_shared,
    has_word,
    is_much_longer,
    matches_pie,
    remove_words,
    share_most_words,
    words_of,
)
from pieline.languages.registry import get_language

_ALIKE = 0.7
"""Minimum similarity (0 to 1), by characters, of two phrases that sound alike.

The words in which the phrases differ need half that similarity: "paint the boat" does not sound
like "miss the boat".
"""
_DELIMITER = re.compile(r"[\"“”„«»;/()\[\]]|(?<!\w)['‘’]|['’](?!\w)")


def points_at_pie(
    answer: str, pie: str, *, sentence: str, language: str, echoes: bool = False
) -> bool:
    """Return whether an answer refers to the PIE of a known sentence.

    Because the sentence is known, this function accepts more partial PIEs than `matches_pie`. The
    answer, or a part of it that is quoted or delimited by punctuation, must meet one of these
    conditions:

    - The answer names the PIE according to `matches_pie`, or does so if light words, light verbs
      and supporting words are ignored in both texts ("out on a limb" for "go out on a limb").
    - The answer is not much longer than the PIE (see `is_much_longer`) and contains the PIE with
      different word boundaries ("easy-peasy", "easypeasy").
    - All words of the answer occur in the sentence, the answer is not much longer than the PIE, and
      it has at least two and more than half of the PIE's content words ("brick wall" for "like
      talking to a brick wall"). If the PIE has only one content word, the answer must have that
      word, and at least two and more than half of the PIE's words that are not light words, light
      verbs or supporting words ("too much on my plate" for "a lot on your plate", but not "jumped
      out of" for "out of the blue").
    - `echoes` is true, all words of the answer occur in the sentence, the answer is not much longer
      than the PIE, and some consecutive words of the answer are spelled almost like the PIE.

    Args:
        answer: Answer of a model.
        pie: Canonical form of the PIE.
        sentence: Sentence that the answer is about.
        language: Language name.
        echoes: Whether the sentence sounds like the PIE without using it (a distractor of IdioTS).
    """
    sentence_words, pie_words = words_of(sentence, language), words_of(pie, language)
    pie_kernel = _kernel(pie_words, language)
    for part in (answer, *_DELIMITER.split(answer)):
        words = words_of(part, language)
        if matches_pie(part, pie, language=language):
            return True
        if share_most_words(_kernel(words, language), pie_kernel, language):
            return True
        if is_much_longer(words, pie_words):
            continue
        if _has_other_word_boundaries(words, pie_words, language):
            return True
        if not all(has_word(sentence_words, word, language) for word in words):
            continue
        if _has_most(words, pie_words, language) or (echoes and _sounds_like(words, pie_words)):
            return True
    return False


def _has_other_word_boundaries(
    words: Sequence[str], pie_words: Sequence[str], language: str
) -> bool:
    """Return whether consecutive words (without light words) spell a PIE with other boundaries."""
    light_words = get_language(language).light_words
    heavy_words = remove_words(light_words, words)
    heavy_pie_words = remove_words(light_words, pie_words)
    # Skip phrases with as many words as the PIE, which `matches_pie` compares word by word.
    sizes = [size for size in range(1, len(heavy_words) + 1) if size != len(heavy_pie_words)]
    joined_pie = "".join(heavy_pie_words)
    return any("".join(window) == joined_pie for window in _windows(heavy_words, sizes))


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
    return shared >= 2 and 2 * shared > len(distinctive)


def _sounds_like(words: Sequence[str], pie_words: Sequence[str]) -> bool:
    """Return whether some of the words, in sequence, are spelled almost like a PIE."""
    fewest_words, most_words = max(1, len(pie_words) - 1), len(pie_words) + 1
    for window in _windows(words, range(fewest_words, most_words + 1)):
        words_only_in_window = remove_words(pie_words, window)
        words_only_in_pie = remove_words(window, pie_words)
        if (
            _similarity(window, pie_words) >= _ALIKE
            and _similarity(words_only_in_window, words_only_in_pie) >= _ALIKE / 2
        ):
            return True
    return False


def _similarity(one: Sequence[str], other: Sequence[str]) -> float:
    """Return the similarity of the characters of two phrases, from 0 to 1.

    Args:
        one: Words of one phrase.
        other: Words of the other phrase.
    """
    return SequenceMatcher(None, " ".join(one), " ".join(other), autojunk=False).ratio()


def _windows(words: Sequence[str], sizes: Iterable[int]) -> Iterator[Sequence[str]]:
    """Yield all sequences of consecutive words that have one of the sizes."""
    for size in sizes:
        for start in range(len(words) - size + 1):
            yield words[start : start + size]


def _kernel(words: Sequence[str], language: str) -> list[str]:
    """Return the given words without light words, light verbs and supporting words.

    If fewer than two words would be left, only the light words are removed.
    """
    lang = get_language(language)
    heavy_words = remove_words(lang.light_words, words)
    ignored = lang.light_verbs | lang.supporting
    kernel = [word for word in heavy_words if ignored.isdisjoint(base_forms(word, language))]
    return kernel if len(kernel) >= 2 else heavy_words
