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
    """Number of PIEs in each split, and number of gold PIEs in the test split."""

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

    `source` states how the splits were made: drawn with a seed, or read from the public files.
    """

    source: str
    train: list[str]
    val: list[str]
    test: list[str]
    gold: list[str]

    @model_validator(mode="after")
    def _check_disjoint(self) -> Self:
        for split, other_split in combinations(SPLITS, 2):
            shared_pies = set(self.pies(split)) & set(self.pies(other_split))
            if shared_pies:
                raise ValueError(f"PIE {min(shared_pies)!r} is in both {split} and {other_split}")
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
    """Draw the PIEs of each split at random, and the gold PIEs from the test split.

    Raises:
        UserError: The sizes do not sum to the number of PIEs.
    """
    sorted_pies = sorted(set(pies))
    total = sizes.train + sizes.val + sizes.test
    if total != len(sorted_pies):
        raise UserError(
            f"split sizes sum to {total}, but there are {len(sorted_pies)} PIEs",
            where="idiolink.construction.splits",
            hint="set sizes that sum to the number of PIEs",
        )
    generator = random.Random(seed)  # noqa: S311 - not security-related
    shuffled = list(sorted_pies)
    generator.shuffle(shuffled)
    train_end = sizes.train
    val_end = train_end + sizes.val
    test = sorted(shuffled[val_end:])
    return Splits(
        source=f"drawn with seed {seed}",
        train=sorted(shuffled[:train_end]),
        val=sorted(shuffled[train_end:val_end]),
        test=test,
        gold=sorted(generator.sample(test, sizes.gold)),
    )


def released_splits(pies: Iterable[str], paths: Iterable[str | Path]) -> Splits:
    """Split PIEs as in the public data.

    Args:
        pies: PIEs to split.
        paths: Paths of the public documents of the train, val and test splits, in this order.

    Raises:
        UserError: A file does not have the format of the public data, or a PIE is in no split or
            in several splits of the public data.
    """
    pies_to_split = set(pies)
    documents = {
        split: read_texts(path, Document) for split, path in zip(SPLITS, paths, strict=True)
    }
    public_splits: dict[str, set[str]] = {
        split: {document.pie for document in documents[split]} for split in SPLITS
    }
    if missing := sorted(pies_to_split.difference(*public_splits.values())):
        raise UserError(
            f"PIE {missing[0]!r} is in no released split ({len(missing)} in total)",
            where="idiolink.construction.splits",
            hint="draw the splits (split_source: drawn), or use the authors' exclusions",
        )
    public_splits["gold"] = gold_pies(
        (document.pie, document.is_gold) for document in documents["test"]
    )
    fields: dict[str, object] = {"source": "the released files"}
    for split, public_pies in public_splits.items():
        fields[split] = sorted(public_pies & pies_to_split)
    return validated(
        Splits,
        fields,
        where="the released files",
        hint="download them again, or draw the splits (split_source: drawn)",
    )


def gold_pies(test_documents: Iterable[tuple[str, bool]]) -> set[str]:
    """Return the gold PIEs: the PIEs whose test documents are all marked gold.

    The public files mark every text that was checked manually, so most PIEs have some marked
    texts. In the test split, all 100 documents are marked for exactly 13 PIEs, the number in the
    paper. Only some queries of the 13 PIEs are marked, but all queries of the 13 PIEs count as
    gold.

    Args:
        test_documents: For each test document, its PIE and whether the document is marked gold.
    """
    pies: set[str] = set()
    pies_with_unmarked_documents: set[str] = set()
    for pie, is_gold in test_documents:
        pies.add(pie)
        if not is_gold:
            pies_with_unmarked_documents.add(pie)
    return pies - pies_with_unmarked_documents
