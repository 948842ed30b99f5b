"""Export IdioLink's test split as MTEB tasks."""

import shutil

from pieline.core.jobs import job
from pieline.core.records import load_jsonl
from pieline.studies.idiolink.predictions.mteb import write_mteb_data
from pieline.studies.idiolink.records import Document, Query

with job(snakemake):
    write_mteb_data(
        {
            "corpus": snakemake.output.corpus,
            "qrels": snakemake.output.qrels,
            "queries_sentence": snakemake.output.queries_sentence,
            "queries_instruction_sentence": snakemake.output.queries_instruction_sentence,
        },
        load_jsonl(snakemake.input.documents, Document),
        load_jsonl(snakemake.input.queries, Query),
    )
    shutil.copyfile(snakemake.input.task, snakemake.output.task)
