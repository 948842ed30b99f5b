"""Division of the PIEs into train, validation and test splits (sections 3.2.1 and 3.2.3)."""

import random
from collections.abc import Iterable
from itertools import combinations
from pathlib import Path
from typing import Literal, Self

from pydantic import NonNegativeInt, model_validator

from pieline.core.errors import UserError
from pieline.core.records import Record, validated
from pieline.core.settings import Field, Settings
from pieline.studies.idiolink.raw import read_texts
from pieline.studies.idiolink.records import Document

SplitName = Literal["train", "val", "test"]
SPLITS: tuple[SplitName, ...] = ("train", "val", "test")


class SplitSizes(Settings):
    """Number of PIEs in each split; the gold PIEs are those in `test` annotated by humans."""

    train: NonNegativeInt = Field(
        default=22, affects="predictions", description="Number of PIEs for training."
    )
    val: NonNegativeInt = Field(
        default=10, affects="predictions", description="Number of PIEs for validation."
    )
    test: NonNegativeInt = Field(
        default=75, affects="predictions", description="Number of PIEs for testing."
    )
    gold: NonNegativeInt = Field(
        default=13,
        affects="predictions",
        description="Number of PIEs of the test split that humans annotate.",
    )

    @model_validator(mode="after")
    def _gold_is_part_of_test(self) -> Self:
        if self.gold > self.test:
            raise ValueError(f"gold ({self.gold}) must not exceed test ({self.test})")
        return self


class Splits(Record):
    """Sorted PIEs of each split; the splits are disjoint, and `gold` is a subset of `test`.

    `source` describes how the splits were made: drawn with a seed, or read from released files.
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
                raise ValueError(f"PIE {shared[0]!r} is in both {one} and {other}")
        return self

    def pies(self, name: str) -> list[str]:
        """Return the PIEs of the split `name`, or the gold PIEs for the name `gold`."""
        return list(getattr(self, name))

    def split_of(self, pie: str) -> SplitName:
        """Return the split of a PIE.

        Raises:
            UserError: The PIE is in no split.
        """
        for name in SPLITS:
            if pie in self.pies(name):
                return name
        raise UserError(f"PIE {pie!r} is in no split", hint="recreate the splits")


def draw_splits(pies: Iterable[str], sizes: SplitSizes, *, seed: int = 42) -> Splits:
    """Split PIEs at random: sort, shuffle and slice; then sample the gold PIEs from test.

    Raises:
        UserError: The sizes do not sum to the number of PIEs.
    """
    ordered = sorted(set(pies))
    total = sizes.train + sizes.val + sizes.test
    if total != len(ordered):
        raise UserError(
            f"split sizes sum to {total}, but there are {len(ordered)} PIEs",
            where="idiolink.construction.splits",
            hint="set sizes that sum to the number of PIEs",
        )
    generator = random.Random(seed)  # noqa: S311 - not security-related
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


def released_splits(pies: Iterable[str], paths: Iterable[str | Path]) -> Splits:
    """Split PIEs as in the released documents; `paths` are the train, val and test files.

    Raises:
        UserError: A file is not in the released format, or a PIE is in no released split or in
            several.
    """
    kept = set(pies)
    released = {
        split: read_texts(path, Document) for split, path in zip(SPLITS, paths, strict=True)
    }
    split_pies: dict[str, set[str]] = {
        name: {text.pie for text in texts} for name, texts in released.items()
    }
    if missing := sorted(kept - set().union(*split_pies.values())):
        raise UserError(
            f"PIE {missing[0]!r} is in no released split ({len(missing)} in total)",
            where="idiolink.construction.splits",
            hint="draw the splits (split_source: drawn), or use the authors' exclusions",
        )
    split_pies["gold"] = gold_pies((text.pie, text.is_gold) for text in released["test"])
    pies_of = {name: sorted(pies & kept) for name, pies in split_pies.items()}
    return validated(
        Splits,
        {"source": "the released files"} | pies_of,
        where="the released files",
        hint="download them again, or draw the splits (split_source: drawn)",
    )


def gold_pies(test: Iterable[tuple[str, bool]]) -> set[str]:
    """Return the gold PIEs: those whose test documents are all marked gold.

    `test` contains the PIE of each test document and whether the document is marked gold.

    The released files mark every text that was checked manually, so most PIEs have some marked
    texts. In the released test split, all 100 documents are marked for exactly 13 PIEs, the number
    in the paper. The queries of these PIEs are only partly marked, but all count as gold.
    """
    marked: dict[str, bool] = {}
    for pie, is_gold in test:
        marked[pie] = marked.get(pie, True) and is_gold
    return {pie for pie, all_gold in marked.items() if all_gold}
