"""Check the released or sample IdioTS file and write the dataset."""

from pathlib import Path
from typing import get_args

from pieline.core.program import Options, program
from pieline.core.upstream import NOT_VERIFIED, load_upstream, verify
from pieline.studies.idiots.datasets import IdiotsDataset, Origin, count_problem
from pieline.studies.idiots.raw import read_distractor_kinds, read_sentences


@program(
    sentences=(Path, "JSON or TSV"), kinds=(Path | None, "CSV that marks the distractors"),
    upstream=Path, name=(str, "its upstream name"),
    origin=([*get_args(Origin)], "where it is from; 'unverified': to be verified"),
    output=(Path, "folder of the dataset"),
)  # fmt: skip
def main(it: Options) -> None:
    origin: Origin = it.origin
    kinds = read_distractor_kinds(it.kinds) if it.kinds else None
    sentences, verification = read_sentences(it.sentences, kinds), NOT_VERIFIED
    if origin == "unverified":
        problem, upstream = count_problem(sentences), load_upstream(it.upstream)
        verification = verify(it.name, it.sentences, upstream, problem=problem)
        origin = "released" if verification.verified else origin
    IdiotsDataset(origin, sentences, verification).save(it.output)
