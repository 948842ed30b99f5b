"""Select the sample's neutral variants of all hard variants, or of those that confused a model."""

from pieline.core.files import write_json
from pieline.core.jobs import job, optional
from pieline.core.records import save_jsonl
from pieline.studies.jam.records import load_sentences
from pieline.studies.jam.variants.generation import (
    confusing_variants,
    sample_neutral_variants,
    with_neutral,
)

with job(snakemake):
    sentences = load_sentences(snakemake.input.dataset)
    metrics = optional(snakemake.input.metrics)
    every = [item.id for item in sentences if not item.is_original]
    chosen = confusing_variants(metrics) if metrics else every
    variants = sample_neutral_variants(sentences, chosen, snakemake.input.sample)
    made = variants if metrics else with_neutral(sentences, variants)
    save_jsonl(snakemake.output.variants, made)
    write_json(snakemake.output.report, {"asked": len(chosen), "variants": len(variants)})
