"""Import the rankings of one external run on IdioLink."""

from pieline.core.jobs import job
from pieline.core.records import load_jsonl
from pieline.studies.idiolink.predictions.rankings import TextLabels, read_foreign_run, write_run
from pieline.studies.idiolink.records import Document, Query

with job(snakemake):
    documents = load_jsonl(snakemake.input.documents, Document)
    queries = load_jsonl(snakemake.input.queries, Query)
    run = read_foreign_run(
        snakemake.input.file,
        [query.id for query in queries],
        {document.id for document in documents},
        mode=snakemake.wildcards.query_mode,
        top_k=snakemake.params.top_k,
        file_format=snakemake.params.format,
        texts=TextLabels(documents, queries),
    )
    write_run(snakemake.output[0], run, tag=snakemake.wildcards.model)
