"""Write the training data of encoders: ID10M's train and dev splits, or parts of the dev split."""

from pieline.core.files import write_text
from pieline.core.jobs import job, optional
from pieline.studies.jam.raw.checks import check_sentences
from pieline.studies.jam.raw.id10m import (
    cut_at_sentence_ends,
    format_id10m,
    hold_out,
    read_id10m,
    thin_out,
)

SEED = 0
"""Seed of all random choices here; all runs train on the same data."""

with job(snakemake):
    language = snakemake.params.language
    dev = read_id10m(snakemake.input.dev, split="dev")
    check_sentences(dev, path=snakemake.input.dev, **language)
    if path := optional(snakemake.input.train):
        train = read_id10m(path, split="train")
        check_sentences(train, path=path, **language)
    else:
        train, dev = hold_out(dev, seed=SEED)
    train = thin_out(train, per_idiom=snakemake.params.negatives, seed=SEED)
    if snakemake.params.cuts_sentences:
        train = cut_at_sentence_ends(train)
    for path, sentences in ((snakemake.output.train, train), (snakemake.output.dev, dev)):
        write_text(path, format_id10m(sentences))
