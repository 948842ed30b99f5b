"""Tag the idioms in every sentence with a fine-tuned encoder."""

from pieline.core.evidence import check_evidence, write_evidence
from pieline.core.jobs import start_log
from pieline.core.records import save_jsonl
from pieline.models.entries import EncoderEntry
from pieline.studies.jam.datasets.sentences import load_sentences
from pieline.studies.jam.predictions.tagging import predict
from pieline.studies.jam.training.tagger import load_tagger
from pieline.studies.jam.training.training import make_deterministic

start_log(snakemake.log[0])
check_evidence(snakemake.input)
make_deterministic(1)
tagger = load_tagger(EncoderEntry.from_spec(snakemake.params.spec), weights=snakemake.input.weights)
save_jsonl(
    snakemake.output[0],
    predict(tagger, load_sentences(snakemake.input.sentences), words=snakemake.params.words),
)
write_evidence(snakemake.output.evidence, files=snakemake.output, made_from=snakemake.input)
