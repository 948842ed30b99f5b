"""Take the sample's neutral variant for each hard one that confused a model."""

from pieline.core.evidence import write_evidence
from pieline.core.files import write_json
from pieline.core.jobs import start_log
from pieline.core.records import save_jsonl
from pieline.studies.jam.datasets.sentences import load_sentences
from pieline.studies.jam.variants.generation import confusing_variants, sample_neutral_variants

start_log(snakemake.log[0])
confusing = confusing_variants(snakemake.input.metrics)
variants = sample_neutral_variants(
    load_sentences(snakemake.input.dataset), confusing, snakemake.input.sample
)
save_jsonl(snakemake.output.variants, variants)
write_json(snakemake.output.report, {"asked": len(confusing), "variants": len(variants)})
write_evidence(snakemake.output.evidence, files=snakemake.output, made_from=snakemake.input)
