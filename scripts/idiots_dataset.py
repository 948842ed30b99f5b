"""Check the released or sample IdioTS file and write the dataset."""

from pathlib import Path
from typing import get_args

from pieline.core.program import Options, program
from pieline.core.upstream import is_released, load_upstream
from pieline.studies.idiots.datasets import IdiotsDataset, Origin
from pieline.studies.idiots.raw import read_distractor_kinds, read_sentences


@program(
    sentences=(Path, "JSON or TSV"), kinds=(Path | None, "CSV that marks the distractors"),
    upstream=Path, name=(str, "its upstream name"),
    origin=([*get_args(Origin)], "where it is from; 'unverified' if a digest may tell"),
    output=(Path, "folder of the dataset"),
)  # fmt: skip
def main(it: Options) -> None:
    origin: Origin = it.origin
    listed = load_upstream(it.upstream)
    if origin == "unverified" and is_released({it.name: it.sentences}, listed):
        origin = "released"
    kinds = read_distractor_kinds(it.kinds) if it.kinds else None
    IdiotsDataset(origin, read_sentences(it.sentences, kinds)).save(it.output)
