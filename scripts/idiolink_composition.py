"""Leave usages out of an IdioLink index (the index-composition ablation)."""

from pathlib import Path

from pieline.core.program import Options, program
from pieline.studies.idiolink.datasets.dataset import IdiolinkDataset
from pieline.studies.idiolink.raw.released import COMPOSITIONS


@program(
    composition=(sorted(COMPOSITIONS), "usages to keep"),
    dataset=(Path, "folder of the full split"), output=(Path, "folder to write"),
)  # fmt: skip
def main(it: Options) -> None:
    IdiolinkDataset.load(it.dataset).composed(it.composition).save(it.output)
