"""Derive filtering decisions on ID10M's test split from the public originals or from tags."""

from pieline.core.jobs import job, optional
from pieline.studies.jam.originals import (
    decide_by_tags,
    derive_decisions,
    read_released_originals,
    save_decisions,
)
from pieline.studies.jam.raw.id10m import read_id10m

with job(snakemake):
    sentences = read_id10m(snakemake.input.raw, split="test")
    if released := optional(snakemake.input.released):
        decisions = derive_decisions(sentences, read_released_originals(released), where=released)
    else:
        dev = optional(snakemake.input.dev)
        others = read_id10m(dev, split="dev") if dev else []
        decisions = decide_by_tags(sentences, others, language=snakemake.wildcards.language)
    save_decisions(snakemake.output[0], decisions)
