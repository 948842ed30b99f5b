"""Which sentences of ID10M-JAM each run judges rightly, so that its printed numbers come back."""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from pieline.studies.jam.records import JamSentence, by_original
from pieline.studies.jam.settings import JamFineTuning, JamSettings
from rehearsal.answers.printed_runs import (
    FINE_TUNED,
    VARIANTS,
    Key,
    SeedRun,
    printed_originals,
    printed_rows,
    shares_of,
    solve,
    text_numbers,
)

T = TypeVar("T")


_ABLATED: Key = ("zero_shot", "GPT-4o mini", "english")
"""The run whose wrong variants are rewritten with a neutral context (appendix G), at its first
seed."""
_STEPS = 400
"""Ways to lay the runs of a language apart that are tried."""


class Judged(NamedTuple):
    """Of an original whether a run is right about it, and how many of its variants are wrong."""

    right: bool
    wrong: int


class PrintedJam:
    """The decisions behind the printed numbers of ID10M-JAM, on any dataset.

    Each run is solved by itself (`solve`). Its originals, hardest first, are laid on those of the
    dataset from a place of its own, so far apart that in each language as many variants confuse
    some language model as Figure 3 says.

    Args:
        published: the folder of printed numbers.
    """

    def __init__(self, published: Path) -> None:
        self._originals = printed_originals(published)
        self._rows = printed_rows(published)
        self._numbers = text_numbers(published)
        self._solved: dict[Key, tuple[SeedRun, ...]] = {}
        self._spreads: dict[str, tuple[float, float]] = {}

    def runs(self, key: Key) -> tuple[SeedRun, ...]:
        """The seeds of a printed run; none where the paper has no such run."""
        if key not in self._rows:
            return ()
        if key not in self._solved:
            seeds = solve(key, self._rows[key], self._originals[key[2]]).seeds
            if key == _ABLATED:
                seeds = tuple(sorted(seeds, key=self._misses_ablated))
            self._solved[key] = seeds
        return self._solved[key]

    def right(self, sentences: Sequence[JamSentence], key: Key, seed: int) -> dict[str, bool]:
        """Whether the run is right about each sentence, by its id.

        Where the dataset has other numbers of originals, the shares are the same, as nearly as
        whole numbers allow. Of neutral variants, which stand without originals, the printed share
        confuses still. A run that the paper does not have is right about all.
        """
        if not any(item.is_original for item in sentences):
            confused = self._still_confused([item.sentence for item in sentences])
            return {item.id: item.sentence not in confused for item in sentences}
        runs = self.runs(key)
        if not runs:
            return dict.fromkeys((item.id for item in sentences), True)
        settings = JamFineTuning() if key[0] == FINE_TUNED else JamSettings()
        run = runs[_place(seed, settings.seeds) % len(runs)]
        groups: dict[bool, list[list[JamSentence]]] = defaultdict(list)
        by_name = by_original(sentences)
        for name in sorted(by_name, key=mixed):
            groups[by_name[name][0].is_figurative].append(by_name[name])
        found = {}
        for is_figurative, judged, start in zip(
            (False, True), self._judged(run, key[2]), self._starts(key), strict=True
        ):
            of_kind = groups[is_figurative]
            laid = _laid(sampled(judged, len(of_kind)), start)
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

    def _misses_ablated(self, run: SeedRun) -> float:
        """How far the wrong variants of a seed are from those that the ablation rewrites."""
        wrong = sum(one.wrong for kind in self._judged(run, _ABLATED[2]) for one in kind)
        return abs(wrong - self._numbers["jam.neutral_variants"])

    def _judged(self, run: SeedRun, language: str) -> tuple[list[Judged], list[Judged]]:
        """The paper's originals, literal and idiomatic ones, hardest of the right ones first."""
        shares = shares_of(run, self._originals[language])
        assert shares  # `solve` has found them
        literal, idiomatic = (
            [
                Judged(right, wrong)
                for right, counts in ((True, share.right), (False, share.wrong))
                for wrong in range(VARIANTS, -1, -1)
                for _ in range(counts[wrong])
            ]
            for share in shares
        )
        return literal, idiomatic

    def _starts(self, key: Key) -> tuple[float, float]:
        """Where a run is laid, as a share of the literal and of the idiomatic originals."""
        setting, _, language = key
        if setting == FINE_TUNED:
            return 0.0, 0.0
        if language not in self._spreads:
            self._spreads[language] = self._found_spreads(language)
        number = self._prompted(language).index(key)
        literal, idiomatic = self._spreads[language]
        return number * literal, number * idiomatic

    def _prompted(self, language: str) -> list[Key]:
        return [key for key in self._rows if key[2] == language and key[0] != FINE_TUNED]

    def _found_spreads(self, language: str) -> tuple[float, float]:
        """How far apart runs are laid, so that Figure 3's sum of bars comes back.

        It counts the first seed of each model with examples, of reasoning models without.
        """
        wanted = self._numbers[f"jam.confusing_variants_{language}"]
        keys, counts = self._prompted(language), JamSettings().figure3.setting
        with_examples = {model for setting, model, _ in keys if setting == counts}
        counted = [
            number
            for number, (setting, model, _) in enumerate(keys)
            if setting == counts or model not in with_examples
        ]
        runs = [self._judged(self.runs(keys[number])[0], language) for number in counted]
        kinds = [[_flips(judged) for judged in kinds] for kinds in runs]

        ways = []
        for of_kind in zip(*kinds, strict=True):
            found: dict[int, float] = {}
            for step in range(_STEPS):
                spread = step / _STEPS
                rolled = [
                    np.roll(one, round(number * spread * len(one)), axis=0)
                    for number, one in zip(counted, of_kind, strict=True)
                ]
                found.setdefault(int(np.any(rolled, axis=0).sum()), spread)
            ways.append(found)
        literal, idiomatic = min(product(*ways), key=lambda counts: abs(sum(counts) - wanted))
        return ways[0][literal], ways[1][idiomatic]


printed_jam = cache(PrintedJam)
"""One for each folder: runs are searched for seconds."""


def _flips(judged: Sequence[Judged]) -> NDArray[np.bool_]:
    """The variants, one row per original, that confuse a seed of a run."""
    return np.array(
        [[one.right and number < one.wrong for number in range(VARIANTS)] for one in judged]
    )


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
