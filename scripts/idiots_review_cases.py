"""Write the cases of a run that need a human judgment, as JSONL and CSV."""

from pieline.core.conditions import RunIdentity
from pieline.core.jobs import job
from pieline.core.records import load_jsonl
from pieline.studies.idiots.records import DetectionPrediction, IdiotsSentence
from pieline.studies.idiots.verdicts import review_cases, save_cases

with job(snakemake):
    run = RunIdentity(
        snakemake.wildcards.model, snakemake.wildcards.setting, int(snakemake.wildcards.seed)
    )
    sentences = load_jsonl(snakemake.input.sentences, IdiotsSentence)
    predictions = load_jsonl(snakemake.input.predictions, DetectionPrediction)
    cases = review_cases(sentences, predictions, run)
    save_cases(cases, jsonl=snakemake.output.jsonl, table=snakemake.output.csv)
