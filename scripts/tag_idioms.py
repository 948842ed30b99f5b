"""Tag the idioms in every sentence with a fine-tuned encoder, or with one encoder per fold."""

from pieline.core.files import read_json
from pieline.core.jobs import job, optional
from pieline.core.records import save_jsonl
from pieline.core.sidecars import folder_of
from pieline.models.entries import EncoderEntry
from pieline.studies.jam.predictions.tagging import predict, predict_by_fold
from pieline.studies.jam.records import load_sentences
from pieline.studies.jam.training.tagger import load_tagger, make_deterministic

with job(snakemake):
    make_deterministic(1)
    entry = EncoderEntry.from_spec(snakemake.params.spec)
    taggers = (load_tagger(entry, weights=folder_of(path)) for path in snakemake.input.weights)
    sentences = load_sentences(snakemake.input.sentences)
    form = snakemake.params.form
    if folds := optional(snakemake.input.folds):
        predictions = predict_by_fold(taggers, sentences, read_json(folds), form=form)
    else:
        predictions = predict(next(taggers), sentences, form=form)
    save_jsonl(snakemake.output[0], predictions)
