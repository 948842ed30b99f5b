"""Dividing the PIEs into train, validation and test, without overlap (section 3.2.1 and 3.2.3)."""

import random
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Literal, Protocol, Self

from pydantic import NonNegativeInt, model_validator

from pieline.core.errors import UserError
from pieline.core.records import Record, load_record, validated
from pieline.core.settings import Settings
from pieline.studies.idiolink.raw.released import read_texts
from pieline.studies.idiolink.records import Document

SplitName = Literal["train", "val", "test"]
SPLITS: tuple[SplitName, ...] = ("train", "val", "test")


class SplitSizes(Settings):
    """PIEs in each split; `gold` of those in test are annotated by people."""

    train: NonNegativeInt = 22
    val: NonNegativeInt = 10
    test: NonNegativeInt = 75
    gold: NonNegativeInt = 13

    @model_validator(mode="after")
    def _gold_is_part_of_test(self) -> Self:
        if self.gold > self.test:
            raise ValueError(f"gold ({self.gold}) is a part of test ({self.test})")
        return self


class Splits(Record):
    """PIEs of each split, sorted; no PIE stands in two, and `gold` is a part of `test`.

    `source` says where the division comes from: drawn with a seed, or the released one.
    """

    source: str
    train: list[str]
    val: list[str]
    test: list[str]
    gold: list[str]

    @model_validator(mode="after")
    def _is_a_partition(self) -> Self:
        for one, other in combinations(SPLITS, 2):
            if shared := sorted(set(self.pies(one)) & set(self.pies(other))):
                raise ValueError(f"PIE {shared[0]!r} stands in {one} and in {other}")
        for name in (*SPLITS, "gold"):
            pies = self.pies(name)
            if len(set(pies)) != len(pies):
                raise ValueError(f"a PIE occurs twice in {name}")
        if strange := sorted(set(self.gold) - set(self.test)):
            raise ValueError(f"gold PIE {strange[0]!r} is not in test")
        return self

    def pies(self, name: str) -> list[str]:
        """PIEs of `train`, `val`, `test` or `gold`."""
        return list(getattr(self, name))

    def split_of(self, pie: str) -> SplitName:
        """The split of a PIE.

        Raises:
            UserError: it is in none.
        """
        for name in SPLITS:
            if pie in self.pies(name):
                return name
        raise UserError(f"PIE {pie!r} is in no split", hint="make the splits again")


def draw_splits(pies: Iterable[str], sizes: SplitSizes, *, seed: int) -> Splits:
    """Divide PIEs at random: shuffled from alphabetical order, then cut; gold is drawn from test.

    Raises:
        UserError: the sizes do not sum up to the number of PIEs.
    """
    ordered = sorted(set(pies))
    wanted = sizes.train + sizes.val + sizes.test
    if wanted != len(ordered):
        raise UserError(
            f"the splits take {wanted} PIEs and there are {len(ordered)}",
            where="idiolink.construction.splits",
            hint="choose sizes that sum up to it",
        )
    generator = random.Random(seed)  # noqa: S311 - a reproducible draw, no secret
    generator.shuffle(ordered)
    train, rest = ordered[: sizes.train], ordered[sizes.train :]
    val, test = rest[: sizes.val], sorted(rest[sizes.val :])
    return Splits(
        source=f"drawn with seed {seed}",
        train=sorted(train),
        val=sorted(val),
        test=test,
        gold=sorted(generator.sample(test, sizes.gold)),
    )


def read_released(paths: Iterable[str | Path]) -> dict[SplitName, list[Document]]:
    """Released documents by split, from the `indexes.json` of train, val and test in this order.

    Raises:
        UserError: a file is not in the released format.
    """
    return {split: read_texts(path, Document) for split, path in zip(SPLITS, paths, strict=True)}


def released_splits(
    pies: Iterable[str], released: Mapping[SplitName, Sequence[Document]]
) -> Splits:
    """Divide PIEs as the released files do.

    Raises:
        UserError: a PIE that the release does not have, or one that it has in two splits.
    """
    kept = set(pies)
    found: dict[str, set[str]] = {
        name: {text.pie for text in texts} for name, texts in released.items()
    }
    if missing := sorted(kept - set().union(*found.values())):
        raise UserError(
            f"PIE {missing[0]!r} is in no released split ({len(missing)} PIEs are not)",
            where="idiolink.construction.splits",
            hint="draw the splits (split_source: drawn), or use the released exclusions",
        )
    found["gold"] = gold_pies(released["test"])
    pies_of = {name: sorted(pies & kept) for name, pies in found.items()}
    return validated(
        Splits,
        {"source": "the released files"} | pies_of,
        where="the released files",
        hint="fetch them again, or draw the splits (split_source: drawn)",
    )


class _MarkedText(Protocol):
    @property
    def pie(self) -> str: ...
    @property
    def is_gold(self) -> bool: ...


def gold_pies(test: Iterable[_MarkedText]) -> set[str]:
    """PIEs of the gold standard: those all of whose test documents are marked gold.

    The released files mark single texts, wherever a person looked at one, so most PIEs have some
    marked texts. Exactly 13 PIEs of the released test split have all 100 documents marked, which is
    the number that the paper names. Their queries are marked only in part; they count as gold
    with their PIE.
    """
    marked: dict[str, bool] = {}
    for text in test:
        marked[text.pie] = marked.get(text.pie, True) and text.is_gold
    return {pie for pie, all_gold in marked.items() if all_gold}


def load_splits(path: str | Path) -> Splits:
    """Read a file of splits.

    Raises:
        UserError: no such file, or its splits overlap.
    """
    return load_record(path, Splits)
