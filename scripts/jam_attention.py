"""Compare a model's attention from the PIE to its context in misleading and in other variants."""

from pieline.core.jobs import job, optional_folder
from pieline.core.records import load_records
from pieline.models.entries import CheckpointEntry
from pieline.studies.jam.metrics.attention import attention_metrics, load_causal_model
from pieline.studies.jam.metrics.scores import JamMetrics
from pieline.studies.jam.records import load_sentences

with job(snakemake) as j:
    spec = CheckpointEntry.from_spec(snakemake.params.spec)
    metrics = attention_metrics(
        load_records(snakemake.input.metrics, JamMetrics),
        load_sentences(snakemake.input.sentences),
        load_causal_model(spec, weights=optional_folder(snakemake.input.weights)),
        j.evidence(snakemake.input.sentences, snakemake.input.metrics),
        model=snakemake.wildcards.model,
        resamples=snakemake.params.resamples,
    )
    j.write(metrics)
