"""Splits: sizes, seed, disjointness, and the released splits."""

import json
from pathlib import Path

import pytest
from support import MIRROR, needs_mirror

from pieline.core.errors import UserError
from pieline.core.records import load_record
from pieline.studies.idiolink.originals.pairs import (
    read_candidates,
    released_exclusions,
    used_pies,
)
from pieline.studies.idiolink.originals.splits import (
    SPLITS,
    Splits,
    SplitSizes,
    draw_splits,
    gold_pies,
    released_splits,
)

PIES = [f"PIE {number:03d}" for number in range(107)]
FIELDS = {"source": "by hand", "train": ["a"], "val": ["b"], "test": ["c", "d"], "gold": ["d"]}


def test_the_papers_sizes_partition_107_pies() -> None:
    splits = draw_splits(PIES, SplitSizes(), seed=42)
    assert [len(splits.pies(name)) for name in (*SPLITS, "gold")] == [22, 10, 75, 13]
    assert sorted(splits.train + splits.val + splits.test) == PIES
    assert set(splits.gold) <= set(splits.test)


def test_splits_depend_on_the_seed_but_not_on_the_order() -> None:
    one = draw_splits(PIES, SplitSizes(), seed=42)
    assert draw_splits(reversed(PIES), SplitSizes(), seed=42) == one
    assert draw_splits(PIES, SplitSizes(), seed=43).train != one.train


def test_sizes_must_sum_to_the_number_of_pies() -> None:
    with pytest.raises(UserError, match="split sizes sum to 107, but there are 106 PIEs"):
        draw_splits(PIES[1:], SplitSizes(), seed=42)
    with pytest.raises(ValueError, match="gold"):
        SplitSizes(test=3, gold=4)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"val": ["a"]}, "'a' is in both train and val"),
        ({"test": ["a", "d"]}, "'a' is in both train and test"),
        ({"test": ["b", "d"]}, "'b' is in both val and test"),
    ],
)
def test_overlap_is_rejected(tmp_path: Path, changes: dict[str, object], problem: str) -> None:
    path = tmp_path / "splits.json"
    path.write_text(json.dumps(FIELDS | changes), encoding="utf-8")
    with pytest.raises(UserError) as caught:
        load_record(path, Splits)
    assert str(caught.value).startswith(f"{path}: ")
    assert problem in caught.value.what


def test_a_pie_outside_the_splits_is_an_error() -> None:
    splits = Splits.model_validate(FIELDS)
    assert splits.split_of("d") == "test"
    with pytest.raises(UserError, match="'e' is in no split"):
        splits.split_of("e")


def test_gold_pies_are_those_with_all_test_documents_marked() -> None:
    assert gold_pies([("a", True), ("a", True), ("b", True), ("b", False)]) == {"a"}


@needs_mirror
def test_the_released_division_has_22_10_75_and_13_gold_pies() -> None:
    paths = [MIRROR / f"idiolink/{split}/indexes.json" for split in SPLITS]
    used = used_pies(paths)
    assert len(used) == 107
    splits = released_splits(used, paths)
    assert [len(splits.pies(name)) for name in (*SPLITS, "gold")] == [22, 10, 75, 13]
    with pytest.raises(UserError, match="'spill the beans' is in no released split"):
        released_splits({"spill the beans"}, paths)

    exclusions = released_exclusions(
        read_candidates(MIRROR / "idiolink/MAGPIE_SOURCE_IDIOMS.csv"), used
    )
    assert len(exclusions) == 11
    unused = [pie for pie, reason in exclusions.items() if "in no released split" in reason]
    assert unused == ["for keeps", "in the clear"]
