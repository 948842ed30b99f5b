"""Compare the settings of one model by signal detection."""

from pieline.core.conditions import Conditions
from pieline.core.files import digests, write_json
from pieline.core.jobs import finish_job, start_job
from pieline.core.records import load_jsonl, load_records
from pieline.studies.idiots.metrics.bias import bias_metrics
from pieline.studies.idiots.metrics.detection import DetectionMetrics
from pieline.studies.idiots.records import DetectionPrediction, IdiotsSentence

start_job(snakemake)
runs, predictions = list(snakemake.input.runs), list(snakemake.input.predictions)
metrics = bias_metrics(
    load_records(runs, DetectionMetrics),
    load_jsonl(snakemake.input.sentences, IdiotsSentence),
    [load_jsonl(path, DetectionPrediction) for path in predictions],
    against=snakemake.params.against,
    permutations=snakemake.params.permutations,
    resamples=snakemake.params.resamples,
    conditions=Conditions.model_validate_json(snakemake.params.conditions),
    computed_from=digests([*runs, *predictions, snakemake.input.sentences]),
)
write_json(snakemake.output[0], metrics.model_dump())
finish_job(snakemake)
