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
    predictions_file = snakemake.input.predictions
    sentences = load_sentences(snakemake.input.sentences)
    predictions = load_jsonl(predictions_file, IdiomPrediction)
    manifest_file = optional(snakemake.input.manifest)
    if manifest_file:
        manifest = load_record(manifest_file, JamManifest)
        is_released, data_note = manifest.is_released, manifest.data_note
    else:
        is_released, data_note = read_json(snakemake.input.report)["originals_are_released"], ""
    metrics = jam_metrics(
        sentences,
        match_predictions(sentences, predictions, where=predictions_file),
        RunIdentity(
            model=snakemake.wildcards.model,
            setting=snakemake.wildcards.setting,
            seed=int(snakemake.wildcards.seed),
        ),
        j.evidence(
            predictions_file,
            snakemake.input.sentences,
            is_released=is_released,
            data_note=data_note,
        ),
        scoring=snakemake.params.scoring,
        strict_majority=snakemake.params.strict_majority,
        resamples=snakemake.params.resamples,
    )
    j.write(metrics)
