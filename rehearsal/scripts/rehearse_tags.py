"""Write an encoder's tags of all sentences, chosen to reproduce its printed numbers."""

from pathlib import Path

from pieline.core.jobs import job
from pieline.core.records import save_jsonl
from pieline.studies.jam.datasets.sentences import load_sentences
from rehearsal.answers.tags import printed_tags

with job(snakemake):
    sentences = load_sentences(snakemake.input.sentences)
    save_jsonl(
        snakemake.output[0],
        printed_tags(
            sentences,
            Path(snakemake.input.printed[0]).parent,
            model=snakemake.params.printed_as,
            seed=int(snakemake.wildcards.seed),
        ),
    )
