"""Measure attention from the PIE to its context in misleading and in other variants."""

import torch

from pieline.core.conditions import Conditions
from pieline.core.files import digests, write_json
from pieline.core.jobs import finish_job, optional, start_job
from pieline.core.records import load_records
from pieline.models.entries import CheckpointEntry
from pieline.studies.jam.datasets.sentences import load_sentences
from pieline.studies.jam.metrics.attention import attention_metrics, load_causal_model
from pieline.studies.jam.metrics.runs import JamMetrics

start_job(snakemake)
torch.set_num_threads(snakemake.threads)
spec = CheckpointEntry.from_spec(snakemake.params.spec)
metrics = attention_metrics(
    load_records(snakemake.input.metrics, JamMetrics),
    load_sentences(snakemake.input.sentences),
    load_causal_model(spec, weights=optional(snakemake.input.weights)),
    model=snakemake.wildcards.model,
    pairs=snakemake.params.pairs,
    resamples=snakemake.params.resamples,
    conditions=Conditions.model_validate_json(snakemake.params.conditions),
    computed_from=digests([snakemake.input.sentences, *snakemake.input.metrics]),
)
write_json(snakemake.output[0], metrics.model_dump())
finish_job(snakemake)
