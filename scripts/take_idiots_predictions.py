"""Take the predictions of one IdioTS run that were made elsewhere."""

from pieline.core.evidence import write_evidence
from pieline.core.jobs import start_log
from pieline.core.records import load_jsonl, save_jsonl
from pieline.studies.idiots.predictions import read_predictions
from pieline.studies.idiots.records import IdiotsSentence

start_log(snakemake.log[0])
save_jsonl(
    snakemake.output[0],
    read_predictions(snakemake.input.file, load_jsonl(snakemake.input.sentences, IdiotsSentence)),
)
write_evidence(snakemake.output.evidence, files=snakemake.output, made_from=snakemake.input)
