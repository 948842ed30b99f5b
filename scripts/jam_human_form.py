"""Write the annotation form of the human baseline, with one variant per original."""

from pieline.core.jobs import job
from pieline.studies.jam.metrics.humans import sample_variants, write_form
from pieline.studies.jam.records import load_sentences

with job(snakemake):
    variants = sample_variants(load_sentences(snakemake.input.sentences))
    write_form(
        variants,
        form=snakemake.output.form,
        guidelines=snakemake.output.guidelines,
        tasks=snakemake.output.tasks,
        labelling=snakemake.output.labelling,
    )
