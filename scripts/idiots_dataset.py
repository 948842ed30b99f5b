"""Check the released or sample IdioTS file and write the dataset."""

from pathlib import Path

from pieline.core.program import Options, program
from pieline.core.upstream import is_released, load_upstream
from pieline.studies.idiots.datasets import IdiotsDataset, Origin
from pieline.studies.idiots.raw import read_distractor_kinds, read_sentences


@program(
    sentences=(Path, "JSON or TSV"), kinds=(Path | None, "CSV that marks the distractors"),
    upstream=Path, name=(str, "its upstream name"),
    sample=bool, output=(Path, "folder of the dataset"),
)  # fmt: skip
def main(it: Options) -> None:
    origin: Origin = "sample" if it.sample else "unverified"
    if is_released({it.name: it.sentences}, load_upstream(it.upstream)):
        origin = "released"
    kinds = read_distractor_kinds(it.kinds) if it.kinds else None
    IdiotsDataset(origin, read_sentences(it.sentences, kinds)).save(it.output)
