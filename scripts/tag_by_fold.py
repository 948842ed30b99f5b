"""Tag the idioms in every sentence with the encoder that was not trained on its PIE."""

import json

from pieline.core.files import read_text
from pieline.core.jobs import finish_job, start_job
from pieline.core.records import save_jsonl
from pieline.models.entries import EncoderEntry
from pieline.studies.jam.datasets.sentences import load_sentences
from pieline.studies.jam.predictions.tagging import predict_by_fold
from pieline.studies.jam.training.tagger import load_tagger
from pieline.studies.jam.training.training import make_deterministic

start_job(snakemake)
make_deterministic(1)
entry = EncoderEntry.from_spec(snakemake.params.spec)
predictions = predict_by_fold(
    (load_tagger(entry, weights=weights) for weights in snakemake.input.weights),
    load_sentences(snakemake.input.sentences),
    json.loads(read_text(snakemake.input.folds)),
    words=snakemake.params.words,
)
save_jsonl(snakemake.output[0], predictions)
finish_job(snakemake)
