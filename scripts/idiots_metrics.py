"""Score one IdioTS run."""

from pathlib import Path

from pieline.core.conditions import Conditions
from pieline.core.files import digests, write_json
from pieline.core.jobs import finish_job, optional, start_job
from pieline.core.records import load_jsonl
from pieline.studies.idiots.datasets import IdiotsDataset
from pieline.studies.idiots.metrics.detection import detection_metrics
from pieline.studies.idiots.records import DetectionPrediction
from pieline.studies.idiots.verdicts import DetectionRun, human_verdicts, read_cases

start_job(snakemake)
folder = Path(snakemake.input.manifest).parent
verdicts = optional(snakemake.input.verdicts)
run = DetectionRun(
    snakemake.wildcards.model, snakemake.wildcards.setting, int(snakemake.wildcards.seed)
)
dataset = IdiotsDataset.load(folder)
predictions = load_jsonl(snakemake.input.predictions, DetectionPrediction)
sources = [snakemake.input.predictions, *dataset.files(folder)] + ([verdicts] if verdicts else [])
cases = read_cases(verdicts) if verdicts else []
metrics = detection_metrics(
    dataset.sentences,
    predictions,
    run,
    origin=dataset.origin,
    data_note=dataset.verification.data_note,
    resamples=snakemake.params.resamples,
    conditions=Conditions.model_validate_json(snakemake.params.conditions),
    verdicts=human_verdicts(cases, predictions, run, where=verdicts or ""),
    computed_from=digests(sources),
)
write_json(snakemake.output[0], metrics.model_dump())
finish_job(snakemake)
