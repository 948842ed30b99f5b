"""Tag the idioms in every sentence with a fine-tuned encoder."""

from pieline.core.jobs import finish_job, start_job
from pieline.core.records import save_jsonl
from pieline.models.entries import EncoderEntry
from pieline.studies.jam.datasets.sentences import load_sentences
from pieline.studies.jam.predictions.tagging import predict
from pieline.studies.jam.training.tagger import load_tagger
from pieline.studies.jam.training.training import make_deterministic

start_job(snakemake)
make_deterministic(1)
tagger = load_tagger(EncoderEntry.from_spec(snakemake.params.spec), weights=snakemake.input.weights)
save_jsonl(
    snakemake.output[0],
    predict(tagger, load_sentences(snakemake.input.sentences), words=snakemake.params.words),
)
finish_job(snakemake)
