"""Score a run on neutral rewrites of the hard variants that confused the model."""

from pieline.core.conditions import RunIdentity
from pieline.core.jobs import job
from pieline.core.records import load_jsonl, load_records
from pieline.studies.jam.metrics.scores import JamMetrics, match_predictions, neutral_metrics
from pieline.studies.jam.predictions.records import IdiomPrediction
from pieline.studies.jam.records import load_sentences

with job(snakemake) as j:
    predictions = snakemake.input.predictions
    (run,) = load_records([snakemake.input.metrics], JamMetrics)
    neutral = load_sentences(snakemake.input.neutral)
    records = load_jsonl(predictions, IdiomPrediction)
    metrics = neutral_metrics(
        neutral,
        match_predictions(neutral, records, where=predictions),
        RunIdentity(language=run.language, model=run.model, setting=run.setting, seed=run.seed),
        j.evidence(
            predictions,
            snakemake.input.neutral,
            snakemake.input.metrics,
            is_released=run.dataset_is_released,
            data_note=run.data_note,
        ),
        confusing=sum(not right for item in run.judged for right in item.variants.values()),
        scoring=run.scoring,
        resamples=snakemake.params.resamples,
    )
    j.write(metrics)
