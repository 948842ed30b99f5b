"""Check the file of IdioTS, and write the dataset."""

from pathlib import Path

from pieline.core.jobs import job, optional
from pieline.core.upstream import NOT_VERIFIED, load_upstream, verify
from pieline.studies.idiots.datasets import (
    count_problem,
    mark_distractors,
    read_sentences,
    save_dataset,
)

with job(snakemake):
    sentences = read_sentences(snakemake.input.sentences)
    verification = NOT_VERIFIED
    if kinds := optional(snakemake.input.kinds):
        sentences = mark_distractors(sentences, kinds)
    origin = snakemake.params.origin
    if origin == "unverified":
        verification = verify(
            snakemake.params.name,
            snakemake.input.sentences,
            load_upstream(snakemake.input.upstream),
            problem=count_problem(sentences),
        )
        origin = "released" if verification.verified else origin
    folder = Path(snakemake.output.manifest).parent
    save_dataset(
        folder,
        sentences,
        origin=origin,
        verification=verification,
        limit=snakemake.params.limit,
    )
