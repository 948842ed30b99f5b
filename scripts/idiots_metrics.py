"""Score one run on IdioTS: detection of idioms, consistency and types of errors."""

from pieline.core.conditions import RunIdentity
from pieline.core.jobs import job, optional
from pieline.core.records import load_jsonl, load_record
from pieline.studies.idiots.datasets import IdiotsManifest
from pieline.studies.idiots.metrics import detection_metrics
from pieline.studies.idiots.records import DetectionPrediction, IdiotsSentence
from pieline.studies.idiots.verdicts import human_verdicts, read_cases

with job(snakemake) as j:
    verdicts = optional(snakemake.input.verdicts)
    run = RunIdentity(
        snakemake.wildcards.model, snakemake.wildcards.setting, int(snakemake.wildcards.seed)
    )
    sentences = load_jsonl(snakemake.input.sentences, IdiotsSentence)
    manifest = load_record(snakemake.input.manifest, IdiotsManifest)
    predictions = load_jsonl(snakemake.input.predictions, DetectionPrediction)
    cases = read_cases(verdicts) if verdicts else []
    metrics = detection_metrics(
        sentences,
        predictions,
        run,
        j.evidence(
            snakemake.input.predictions,
            snakemake.input.sentences,
            snakemake.input.manifest,
            snakemake.input.verdicts,
            data_note=manifest.data_note,
        ),
        origin=manifest.origin,
        resamples=snakemake.params.resamples,
        verdicts=human_verdicts(cases, predictions, run, where=verdicts or ""),
    )
    j.write(metrics)
