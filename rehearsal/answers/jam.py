"""Which sentences of ID10M-JAM each run judges rightly, so that its printed numbers come back."""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeVar

from pieline.studies.jam.records import JamSentence, by_original
from pieline.studies.jam.settings import JamFineTuning, JamSettings
from rehearsal.answers.printed_runs import (
    FINE_TUNED,
    VARIANTS,
    Key,
    Share,
    printed_runs,
    text_numbers,
)

T = TypeVar("T")

SPREADS = {"english": 0.665, "german": 0.1}
"""How far apart language models' runs lie on the idiomatic originals, as a share of these, so that
as many variants confuse some model as Figure 3 says."""


class JudgedOriginal(NamedTuple):
    """Whether a run is right about an original, and how many of its variants are wrong."""

    right: bool
    wrong: int


class PrintedJam:
    """The decisions behind the printed numbers of ID10M-JAM, on any dataset.

    The originals of a run, hardest first, are laid on those of the dataset from a place of its own.

    Args:
        published: the folder of printed numbers.
    """

    def __init__(self, published: Path) -> None:
        self._numbers = text_numbers(published)

    def right(self, sentences: Sequence[JamSentence], key: Key, seed: int) -> dict[str, bool]:
        """Whether the run is right about each sentence, by its id.

        Where the dataset has other numbers of originals, the shares are the same, as nearly as
        whole numbers allow. Of neutral variants, which stand without originals, the printed share
        confuses still. A run that the paper does not have is right about all.
        """
        if not any(item.is_original for item in sentences):
            confused = self._still_confused([item.sentence for item in sentences])
            return {item.id: item.sentence not in confused for item in sentences}
        if not (runs := printed_runs().get(key)):
            return dict.fromkeys((item.id for item in sentences), True)
        settings = JamFineTuning() if key[0] == FINE_TUNED else JamSettings()
        run = runs[_place(seed, settings.seeds) % len(runs)]
        groups: dict[bool, list[list[JamSentence]]] = defaultdict(list)
        by_name = by_original(sentences)
        for name in sorted(by_name, key=mixed):
            groups[by_name[name][0].is_figurative].append(by_name[name])
        found = {}
        starts = (0.0, _start(key))
        for is_figurative, share, start in zip((False, True), run, starts, strict=True):
            of_kind = groups[is_figurative]
            laid = _laid(sampled(_judged(share), len(of_kind)), start)
            for one, (original, *variants) in zip(laid, of_kind, strict=True):
                found[original.id] = one.right
                for number, item in enumerate(variants):
                    found[item.id] = number >= one.wrong
        return found

    def _still_confused(self, texts: Iterable[str]) -> set[str]:
        """The texts of neutral variants that confuse still (appendix G).

        Equal texts get one answer, so they count together.
        """
        numbers = [self._numbers[f"jam.neutral_{name}"] for name in ("confused", "variants")]
        listed = list(texts)
        left = round(len(listed) * numbers[0] / numbers[1])
        found = set()
        for text in sorted(set(listed), key=lambda text: (-listed.count(text), mixed(text))):
            if listed.count(text) <= left:
                found.add(text)
                left -= listed.count(text)
        return found


def _judged(share: Share) -> list[JudgedOriginal]:
    """The paper's originals of one kind, hardest of the right ones first."""
    return [
        JudgedOriginal(right, wrong)
        for right, counts in ((True, share.right), (False, share.wrong))
        for wrong in range(VARIANTS, -1, -1)
        for _ in range(counts[wrong])
    ]


printed_jam = cache(PrintedJam)


def _start(key: Key) -> float:
    """Where a run is laid, as a share of the idiomatic originals."""
    setting, _, language = key
    if setting == FINE_TUNED:
        return 0.0
    prompted = [each for each in printed_runs() if each[2] == language and each[0] != FINE_TUNED]
    return prompted.index(key) * SPREADS[language]


def sampled(items: Sequence[T], number: int) -> list[T]:
    """So many of the items, evenly spaced, in order: their shares stay as they are."""
    return [items[(2 * place + 1) * len(items) // (2 * number)] for place in range(number)]


def mixed(name: str) -> str:
    """What sorts names in an order that has nothing to do with them."""
    return hashlib.sha256(name.encode("utf-8")).hexdigest()


def _laid(items: Sequence[T], start: float) -> list[T]:
    """The items from a place on, given as a share of them, and then round again."""
    place = round(start * len(items)) % len(items) if items else 0
    return [*items[len(items) - place :], *items[: len(items) - place]]


def _place(seed: int, seeds: Sequence[int]) -> int:
    """Which of the paper's seeds a seed is; any other is some of them."""
    return seeds.index(seed) if seed in seeds else seed % len(seeds)
