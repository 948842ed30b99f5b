"""Score baselines without a model on ID10M-JAM: never an idiom, always the PIE, majority."""

from pathlib import Path

from pieline.core.files import write_json
from pieline.core.jobs import job
from pieline.core.records import load_record
from pieline.studies.jam.datasets.dataset import JamManifest
from pieline.studies.jam.datasets.sentences import load_sentences
from pieline.studies.jam.metrics.runs import jam_metrics
from pieline.studies.jam.predictions.baselines import predict

with job(snakemake) as j:
    sentences = load_sentences(snakemake.input.sentences)
    manifest = load_record(snakemake.input.manifest, JamManifest)
    for output in snakemake.output:
        baseline, setting = Path(output).parts[-3:-1]
        metrics = jam_metrics(
            sentences,
            predict(baseline, sentences),
            model=baseline,
            setting=setting,
            seed=0,
            scoring=snakemake.params.scoring,
            released=manifest.is_released,
            data_note=manifest.data_note,
            resamples=snakemake.params.resamples,
            conditions=j.conditions,
            computed_from=j.digests(snakemake.input.sentences),
        )
        write_json(output, metrics.model_dump())
