"""Whether an answer of IdioTS means the PIE of the sentence that it is about."""

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher

from pieline.languages.inflection import base_forms, same_word
from pieline.languages.matching import (
    count_shared,
    is_much_longer,
    matches_pie,
    share_most_words,
    without,
    words_of,
)
from pieline.languages.registry import find

_ALIKE = 0.7
"""From which likeness of their letters two phrases sound alike. The words that only one of the two
has must be half as much alike: "paint the boat" is no play on "miss the boat"."""
_SET_OFF = re.compile(r"[\"“”„«»;/()\[\]]|(?<!\w)['‘’]|['’](?!\w)")


def points_at_pie(
    answer: str, pie: str, *, sentence: str, language: str, echoes: bool = False
) -> bool:
    """Whether a person would say that an answer means the PIE of this very sentence.

    The sentence being known, less has to be named than for `matches_pie`. Of an answer, or of a
    part of it that is quoted or set off by a sign, one of these holds:

    - it names the PIE by `matches_pie`, also if light verbs, adverbs of degree and "like" are left
      out on both sides ("out on a limb" for "go out on a limb"), or as other words of the same
      letters ("easy-peasy", "easypeasy");
    - it is quoted from the sentence, is not much longer than the PIE (see `matches_pie`), and has
      two or more of the PIE's content words, and more than half of them ("brick wall" for "like
      talking to a brick wall"); of a PIE with one content word, that one and most of its words
      ("too much on my plate" for "a lot on your plate", not "jumped out of" for "out of the blue");
    - where the sentence `echoes` the PIE without using it (a distractor of IdioTS), it is quoted
      from the sentence, and some words in a row are spelled nearly as the PIE.
    """
    spoken = find(language)
    known, wanted = words_of(sentence, language), words_of(pie, language)
    heavy = without(spoken.light_words, wanted)
    for part in (answer, *_SET_OFF.split(answer)):
        words = words_of(part, language)
        if matches_pie(part, pie, language=language) or share_most_words(
            _kernel(words, language), _kernel(wanted, language), language
        ):
            return True
        if is_much_longer(words, wanted):
            continue
        others = without(spoken.light_words, words)
        sizes = set(range(1, len(others) + 1)) - {len(heavy)}
        if "".join(heavy) in map("".join, _stretches(others, sizes)) or (
            all(any(same_word(word, other, language) for other in known) for word in words)
            and (_has_most(words, wanted, language) or (echoes and _sounds_like(words, wanted)))
        ):
            return True
    return False


def _has_most(words: Sequence[str], wanted: Sequence[str], language: str) -> bool:
    """Whether words have two or more of the words that a PIE is known by, and most of them."""
    kernel = _kernel(wanted, language)
    content = without(find(language).stop_words, kernel)
    if len(content) == 1 and not count_shared(content, words, language):
        return False
    telling = content if len(content) > 1 else kernel
    shared = count_shared(telling, words, language)
    return shared > 1 and 2 * shared > len(telling)


def _sounds_like(words: Sequence[str], wanted: Sequence[str]) -> bool:
    """Whether some words in a row are spelled nearly as a PIE."""
    return any(
        _likeness(part, wanted) >= _ALIKE
        and _likeness(without(wanted, part), without(part, wanted)) >= _ALIKE / 2
        for part in _stretches(words, range(max(1, len(wanted) - 1), len(wanted) + 2))
    )


def _likeness(words: Sequence[str], others: Sequence[str]) -> float:
    return SequenceMatcher(None, " ".join(words), " ".join(others), autojunk=False).ratio()


def _stretches(words: Sequence[str], sizes: Iterable[int]) -> Iterator[Sequence[str]]:
    """Return all windows of this many words."""
    return (words[start : start + size] for size in sizes for start in range(len(words) - size + 1))


def _kernel(words: Sequence[str], language: str) -> list[str]:
    """Words without light and supporting ones, if two are left without the latter."""
    spoken = find(language)
    heavy = without(spoken.light_words, words)
    supporting = spoken.light_verbs | spoken.supporting
    kernel = [word for word in heavy if supporting.isdisjoint(base_forms(word, language))]
    return kernel if len(kernel) > 1 else heavy
