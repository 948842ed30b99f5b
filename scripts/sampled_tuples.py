"""Draw one training tuple per query of a split."""

from pieline.core.evidence import check_evidence, write_evidence
from pieline.core.jobs import start_log
from pieline.core.records import load_jsonl, save_jsonl
from pieline.studies.idiolink.datasets.tuples import sample_tuples
from pieline.studies.idiolink.records import Document, Query

start_log(snakemake.log[0])
check_evidence(snakemake.input)
tuples = sample_tuples(
    load_jsonl(snakemake.input.queries, Query),
    load_jsonl(snakemake.input.documents, Document),
    seed=int(snakemake.wildcards.seed),
    hard=snakemake.params.hard,
    soft=snakemake.params.soft,
)
save_jsonl(snakemake.output[0], tuples)
write_evidence(snakemake.output.evidence, files=snakemake.output, made_from=snakemake.input)
