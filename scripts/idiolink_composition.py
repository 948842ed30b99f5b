"""Remove usages from an IdioLink index (the index-composition ablation)."""

from pathlib import Path

from pieline.core.evidence import check_evidence, write_evidence
from pieline.core.jobs import start_log
from pieline.studies.idiolink.datasets.dataset import IdiolinkDataset

start_log(snakemake.log[0])
check_evidence(snakemake.input)
dataset = IdiolinkDataset.load(Path(snakemake.input.manifest).parent)
composed = dataset.composed(snakemake.wildcards.composition)
composed.save(Path(snakemake.output.manifest).parent)
write_evidence(snakemake.output.evidence, files=snakemake.output, made_from=snakemake.input)
