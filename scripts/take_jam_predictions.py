"""Take the predictions of one run on ID10M-JAM that were made elsewhere."""

from pieline.core.evidence import write_evidence
from pieline.core.jobs import start_log
from pieline.core.records import save_jsonl
from pieline.studies.jam.datasets.sentences import load_sentences
from pieline.studies.jam.predictions.elsewhere import read_predictions

start_log(snakemake.log[0])
save_jsonl(
    snakemake.output[0],
    read_predictions(snakemake.input.file, load_sentences(snakemake.input.sentences)),
)
write_evidence(snakemake.output.evidence, files=snakemake.output, made_from=snakemake.input)
