"""Draw one training tuple per query of a split, or read the released ones."""

from pieline.core.jobs import start_log
from pieline.core.records import load_jsonl, save_jsonl
from pieline.studies.idiolink.datasets.tuples import read_released_tuples, sample_tuples
from pieline.studies.idiolink.records import Document, Query

start_log(snakemake.log[0])
queries = load_jsonl(snakemake.input.queries, Query)
documents = load_jsonl(snakemake.input.documents, Document)
numbers = {"hard": snakemake.params.hard, "soft": snakemake.params.soft}
if snakemake.rule == "released_tuples":
    tuples = read_released_tuples(snakemake.input.released, queries, documents, **numbers)
else:
    seed = int(snakemake.wildcards.seed)
    tuples = sample_tuples(queries, documents, seed=seed, **numbers)
save_jsonl(snakemake.output[0], tuples)
