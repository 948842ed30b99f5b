"""Remove the documents of some usages from an index, for the ablation of index compositions."""

from pathlib import Path

from pieline.core.jobs import job
from pieline.studies.idiolink.datasets.dataset import IdiolinkDataset

with job(snakemake):
    dataset = IdiolinkDataset.load(Path(snakemake.input.manifest).parent)
    composed = dataset.composed(snakemake.wildcards.composition)
    composed.save(Path(snakemake.output.manifest).parent)
