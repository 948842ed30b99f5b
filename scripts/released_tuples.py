"""Read the training tuples that the authors released."""

from pieline.core.evidence import check_evidence, write_evidence
from pieline.core.jobs import start_log
from pieline.core.records import load_jsonl, save_jsonl
from pieline.studies.idiolink.datasets.tuples import read_released_tuples
from pieline.studies.idiolink.records import Document, Query

start_log(snakemake.log[0])
check_evidence(snakemake.input)
tuples = read_released_tuples(
    snakemake.input.released,
    load_jsonl(snakemake.input.queries, Query),
    load_jsonl(snakemake.input.documents, Document),
    hard=snakemake.params.hard,
    soft=snakemake.params.soft,
)
save_jsonl(snakemake.output[0], tuples)
write_evidence(snakemake.output.evidence, files=snakemake.output, made_from=snakemake.input)
