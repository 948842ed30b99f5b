"""Score one run on ID10M-JAM: negative drift, accuracy, confusion classes and tag F1."""

from pieline.core.conditions import RunIdentity
from pieline.core.files import read_json
from pieline.core.jobs import job, optional
from pieline.core.records import load_jsonl, load_record
from pieline.studies.jam.datasets import JamManifest
from pieline.studies.jam.metrics.scores import jam_metrics, match_predictions
from pieline.studies.jam.predictions.records import IdiomPrediction
from pieline.studies.jam.records import load_sentences

with job(snakemake) as j:
    predictions = snakemake.input.predictions
    sentences = load_sentences(snakemake.input.sentences)
    records = load_jsonl(predictions, IdiomPrediction)
    path = optional(snakemake.input.manifest)
    manifest = load_record(path, JamManifest) if path else None
    released = read_json(snakemake.input.report)["originals_are_released"]
    metrics = jam_metrics(
        sentences,
        match_predictions(sentences, records, where=predictions),
        RunIdentity(
            model=snakemake.wildcards.model,
            setting=snakemake.wildcards.setting,
            seed=int(snakemake.wildcards.seed),
        ),
        j.evidence(
            predictions,
            snakemake.input.sentences,
            is_released=manifest.is_released if manifest else released,
            data_note=manifest.data_note if manifest else "",
        ),
        scoring=snakemake.params.scoring,
        strict_majority=snakemake.params.strict_majority,
        resamples=snakemake.params.resamples,
    )
    j.write(metrics)
