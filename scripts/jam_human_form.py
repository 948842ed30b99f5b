"""Write the form of the human baseline: one variant of each original, for people to label."""

from pathlib import Path

from pieline.core.program import Options, program
from pieline.studies.jam.datasets.sentences import load_sentences
from pieline.studies.jam.metrics.humans import sample_variants, write_form


@program(
    sentences=Path, seed=int, form=(Path, "CSV to write"),
    tasks=(Path, "tasks for Label Studio to write"),
    labelling=(Path, "their labelling configuration, XML to write"),
)  # fmt: skip
def main(it: Options) -> None:
    variants = sample_variants(load_sentences(it.sentences), it.seed)
    write_form(variants, form=it.form, tasks=it.tasks, labelling=it.labelling)
