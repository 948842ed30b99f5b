"""Correct the generated texts, and save the texts by split in the format of the public data."""

from pathlib import Path

from pieline.core.jobs import job, optional
from pieline.core.records import load_jsonl, load_record
from pieline.studies.idiolink.datasets.assembly import (
    ReviewedTexts,
    require_review,
    save_released_format,
)
from pieline.studies.idiolink.originals.splits import Splits
from pieline.studies.idiolink.variants.generation import GeneratedText
from pieline.studies.idiolink.variants.validation import (
    TextVerdict,
    apply_corrections,
    read_corrections,
)

with job(snakemake):
    corrections_file = optional(snakemake.input.corrections)
    texts = [text for path in snakemake.input.texts for text in load_jsonl(path, GeneratedText)]
    verdicts = [
        verdict for path in snakemake.input.verdicts for verdict in load_jsonl(path, TextVerdict)
    ]
    splits = load_record(snakemake.input.splits, Splits)
    corrections = read_corrections(corrections_file) if corrections_file else {}
    if snakemake.params.unreviewed == "refuse":
        reviewed = ReviewedTexts(texts, verdicts, corrections, splits)
        require_review(reviewed, sheet=snakemake.input.sheet)
    where = corrections_file or snakemake.input.sheet
    corrected_texts = apply_corrections(texts, corrections, where=where)
    save_released_format(corrected_texts, splits, Path(snakemake.output[0]).parents[1])
