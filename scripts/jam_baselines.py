"""Score baselines without a model on ID10M-JAM: never an idiom, always the PIE, and majority."""

from pathlib import Path

from pieline.core.conditions import RunIdentity
from pieline.core.files import write_json
from pieline.core.jobs import job
from pieline.core.records import load_record
from pieline.studies.jam.datasets import JamManifest
from pieline.studies.jam.metrics.scores import jam_metrics
from pieline.studies.jam.predictions.records import predict_by_baseline
from pieline.studies.jam.records import load_sentences

with job(snakemake) as j:
    sentences = load_sentences(snakemake.input.sentences)
    manifest = load_record(snakemake.input.manifest, JamManifest)
    for output in snakemake.output:
        baseline, setting = Path(output).parts[-3:-1]
        metrics = jam_metrics(
            sentences,
            predict_by_baseline(baseline, sentences),
            RunIdentity(model=baseline, setting=setting, seed=0),
            j.evidence(
                snakemake.input.sentences,
                is_released=manifest.is_released,
                data_note=manifest.data_note,
            ),
            scoring=snakemake.params.scoring,
            resamples=snakemake.params.resamples,
        )
        write_json(output, metrics.model_dump())
