"""Divide the PIEs into train, validation and test, with the gold PIEs of the test split."""

from pathlib import Path

from pieline.core.files import write_json
from pieline.core.program import Options, program
from pieline.core.records import load_jsonl
from pieline.studies.idiolink.originals.pie_filter import PieVerdict
from pieline.studies.idiolink.originals.splits import (
    SplitSizes,
    draw_splits,
    read_released,
    released_splits,
)


@program(
    pies=(Path, "verdicts on the PIEs"), sizes=(SplitSizes, "PIEs of each split, as JSON"),
    seed=int, released=(list[Path] | None, "indexes.json of train, val and test, to follow"),
    output=Path,
)  # fmt: skip
def main(it: Options) -> None:
    kept = [verdict.pie for verdict in load_jsonl(it.pies, PieVerdict) if verdict.kept]
    if it.released:
        splits = released_splits(kept, read_released(it.released))
    else:
        splits = draw_splits(kept, it.sizes, seed=it.seed)
    write_json(it.output, splits.model_dump())
