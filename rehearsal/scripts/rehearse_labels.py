"""Write two annotators' labels that reproduce the numbers of ID10M-JAM, section 5.1."""

from pathlib import Path

from pieline.core.jobs import job
from pieline.studies.jam.datasets.sentences import load_sentences
from rehearsal.answers.people import printed_labels, save_labels

with job(snakemake):
    save_labels(
        snakemake.output[0],
        printed_labels(
            load_sentences(snakemake.input.sentences), Path(snakemake.input.printed[0]).parent
        ),
    )
