"""Apply human verdicts to hard variants; write the dataset, manifest and disputed variants."""

from pieline.core.files import read_json, write_json
from pieline.core.jobs import job, optional
from pieline.core.records import load_jsonl, save_jsonl
from pieline.core.upstream import NOT_VERIFIED, load_upstream, verify
from pieline.studies.jam.datasets import build_dataset, judge_variants
from pieline.studies.jam.records import Original, Variant
from pieline.studies.jam.variants.released import count_problem
from pieline.studies.jam.variants.validation import (
    read_adjudications,
    read_export,
    write_adjudications,
)

with job(snakemake):
    released = optional(snakemake.input.released)
    adjudications = optional(snakemake.input.adjudications)
    originals = load_jsonl(snakemake.input.originals, Original)
    variants = load_jsonl(snakemake.input.variants, Variant)
    originals_are_released = read_json(snakemake.input.report)["originals_are_released"]
    verification = NOT_VERIFIED
    if released and originals_are_released:
        verification = verify(
            f"id10m-jam/variants/{originals[0].language}.json",
            released,
            load_upstream(snakemake.input.upstream),
            problem=count_problem(originals, variants),
        )
    judged = judge_variants(
        originals,
        variants,
        reviews=[review for path in snakemake.input.annotations for review in read_export(path)],
        adjudications=read_adjudications(adjudications) if adjudications else [],
        where=", ".join([*snakemake.input.annotations, adjudications or ""]).strip(", "),
    )
    dataset = build_dataset(
        originals,
        judged,
        originals_are_released=originals_are_released,
        verification=verification,
        review=snakemake.params.review,
        limit=snakemake.params.limit,
    )
    save_jsonl(snakemake.output.dataset, dataset.sentences)
    write_json(snakemake.output.manifest, dataset.manifest.model_dump())
    sentences = {variant.id: variant.sentence for variant in variants}
    disputed = {variant_id: sentences[variant_id] for variant_id in dataset.manifest.disputed}
    write_adjudications(snakemake.output.disputed, disputed)
