"""Select neutral variants of all hard variants, or of the hard variants that confused a model."""

from pieline.core.files import write_json
from pieline.core.jobs import job, optional
from pieline.core.records import save_jsonl
from pieline.studies.jam.records import load_sentences
from pieline.studies.jam.variants.generation import (
    confusing_variants,
    replace_with_neutral,
    sample_neutral_variants,
)

with job(snakemake):
    sentences = load_sentences(snakemake.input.dataset)
    metrics = optional(snakemake.input.metrics)
    if metrics:
        hard_ids = confusing_variants(metrics)
        variants = sample_neutral_variants(sentences, hard_ids, snakemake.input.sample)
        save_jsonl(snakemake.output.variants, variants)
    else:
        hard_ids = [sentence.id for sentence in sentences if not sentence.is_original]
        variants = sample_neutral_variants(sentences, hard_ids, snakemake.input.sample)
        save_jsonl(snakemake.output.variants, replace_with_neutral(sentences, variants))
    write_json(snakemake.output.report, {"asked": len(hard_ids), "variants": len(variants)})
