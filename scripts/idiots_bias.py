"""Compare the settings of one model by signal detection."""

from pieline.beyond.idiots.metrics import bias_metrics
from pieline.core.jobs import job
from pieline.core.records import load_jsonl, load_records
from pieline.studies.idiots.metrics import DetectionMetrics
from pieline.studies.idiots.records import DetectionPrediction, IdiotsSentence

with job(snakemake) as j:
    runs, predictions = list(snakemake.input.runs), list(snakemake.input.predictions)
    metrics = bias_metrics(
        load_records(runs, DetectionMetrics),
        load_jsonl(snakemake.input.sentences, IdiotsSentence),
        [load_jsonl(path, DetectionPrediction) for path in predictions],
        j.evidence(runs, predictions, snakemake.input.sentences),
        against=snakemake.params.against,
        permutations=snakemake.params.permutations,
        resamples=snakemake.params.resamples,
    )
    j.write(metrics)
