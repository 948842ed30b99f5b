"""Correct and wrong answers on ID10M-JAM that reproduce each run's printed numbers."""

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
"""Offset between successive runs of language models by language, as a fraction of the idiomatic
originals, chosen so that the number of variants that confuse some model matches Figure 3."""


class JudgedOriginal(NamedTuple):
    """Outcome of an original in a run.

    Attributes:
        right: Whether the run judges the original correctly.
        wrong: Number of variants that the run misjudges.
    """

    right: bool
    wrong: int


class PrintedJam:
    """Answers that reproduce the printed numbers of ID10M-JAM on any dataset.

    The outcomes of a run are assigned to the originals of the dataset in a fixed order, shifted by
    an offset that depends on the run.

    Args:
        published: Folder of the printed numbers.
    """

    def __init__(self, published: Path) -> None:
        self._numbers = text_numbers(published)

    def right(self, sentences: Sequence[JamSentence], key: Key, seed: int) -> dict[str, bool]:
        """Return, by sentence id, whether the run judges the sentence correctly.

        If the numbers of originals differ from the paper's, the proportions are kept as closely as
        whole numbers allow. If there are only neutral variants, the printed fraction of them still
        confuses the model. A run that the paper does not report makes no mistakes.
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
        for name in sorted(by_name, key=shuffle_key):
            groups[by_name[name][0].is_figurative].append(by_name[name])
        is_right = {}
        starts = (0.0, _start(key))
        for is_figurative, share, start in zip((False, True), run, starts, strict=True):
            of_kind = groups[is_figurative]
            judged = _rotated(sampled(_judged(share), len(of_kind)), start)
            for judgment, (original, *variants) in zip(judged, of_kind, strict=True):
                is_right[original.id] = judgment.right
                for number, item in enumerate(variants):
                    is_right[item.id] = number >= judgment.wrong
        return is_right

    def _still_confused(self, texts: Iterable[str]) -> set[str]:
        """Return the texts of the neutral variants that still confuse the model (appendix G).

        Identical texts get the same answer, so they are counted together.
        """
        numbers = [self._numbers[f"jam.neutral_{name}"] for name in ("confused", "variants")]
        listed = list(texts)
        left = round(len(listed) * numbers[0] / numbers[1])
        confusing = set()
        for text in sorted(set(listed), key=lambda text: (-listed.count(text), shuffle_key(text))):
            if listed.count(text) <= left:
                confusing.add(text)
                left -= listed.count(text)
        return confusing


def _judged(share: Share) -> list[JudgedOriginal]:
    """Return the outcomes of one kind: correct originals first, both groups by falling `wrong`."""
    return [
        JudgedOriginal(right, wrong)
        for right, counts in ((True, share.right), (False, share.wrong))
        for wrong in range(VARIANTS, -1, -1)
        for _ in range(counts[wrong])
    ]


printed_jam = cache(PrintedJam)


def _start(key: Key) -> float:
    """Return the offset of a run as a fraction of the idiomatic originals."""
    setting, _, language = key
    if setting == FINE_TUNED:
        return 0.0
    prompted = [each for each in printed_runs() if each[2] == language and each[0] != FINE_TUNED]
    return prompted.index(key) * SPREADS[language]


def sampled(items: Sequence[T], number: int) -> list[T]:
    """Return `number` evenly spaced items in order, so that equal items keep their proportions."""
    return [items[(2 * place + 1) * len(items) // (2 * number)] for place in range(number)]


def shuffle_key(name: str) -> str:
    """Return a sort key that orders names pseudorandomly."""
    return hashlib.sha256(name.encode("utf-8")).hexdigest()


def _rotated(items: Sequence[T], start: float) -> list[T]:
    """Rotate the items to the right by a fraction of their number."""
    place = round(start * len(items)) % len(items) if items else 0
    return [*items[len(items) - place :], *items[: len(items) - place]]


def _place(seed: int, seeds: Sequence[int]) -> int:
    """Return the index of a seed among the paper's seeds; map any other seed to one of these."""
    return seeds.index(seed) if seed in seeds else seed % len(seeds)
