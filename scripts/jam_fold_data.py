"""Write each fold's training data: the usual data, and texts from the originals of other folds."""

from pieline.beyond.jam.folds import assign_folds, texts_outside_fold
from pieline.core.files import write_json, write_text
from pieline.core.jobs import job
from pieline.studies.jam.raw.id10m import format_id10m, read_id10m
from pieline.studies.jam.records import load_sentences

with job(snakemake):
    train = read_id10m(snakemake.input.train, split="train")
    sentences = load_sentences(snakemake.input.added)
    originals_only = snakemake.wildcards.setting == "fine_tuned_originals"
    folds = assign_folds(sentences, len(snakemake.output.train))
    for fold, path in enumerate(snakemake.output.train):
        added = texts_outside_fold(sentences, folds, fold, originals_only=originals_only)
        write_text(path, format_id10m([*train, *added]))
    write_json(snakemake.output.folds, folds)
