"""Score a model on neutral rewrites of the hard variants that confused the model."""

from pieline.core.conditions import RunIdentity
from pieline.core.jobs import job
from pieline.core.records import load_jsonl, load_record
from pieline.studies.jam.metrics.scores import JamMetrics, match_predictions, neutral_metrics
from pieline.studies.jam.predictions.records import IdiomPrediction
from pieline.studies.jam.records import load_sentences

with job(snakemake) as j:
    predictions_file = snakemake.input.predictions
    run = load_record(snakemake.input.metrics, JamMetrics)
    correctness_of_variants = [
        is_correct for original in run.judged for is_correct in original.variants.values()
    ]
    neutral = load_sentences(snakemake.input.neutral)
    predictions = load_jsonl(predictions_file, IdiomPrediction)
    metrics = neutral_metrics(
        neutral,
        match_predictions(neutral, predictions, where=predictions_file),
        RunIdentity(language=run.language, model=run.model, setting=run.setting, seed=run.seed),
        j.evidence(
            predictions_file,
            snakemake.input.neutral,
            snakemake.input.metrics,
            is_released=run.dataset_is_released,
            data_note=run.data_note,
        ),
        confusing=correctness_of_variants.count(False),
        scoring=run.scoring,
        resamples=snakemake.params.resamples,
    )
    j.write(metrics)
