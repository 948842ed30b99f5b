"""Write the texts for manual review as a CSV sheet and as Label Studio tasks."""

from pieline.core.files import write_text
from pieline.core.jobs import job, optional
from pieline.core.records import load_jsonl, load_record
from pieline.studies.idiolink.originals.splits import Splits
from pieline.studies.idiolink.variants.generation import GeneratedText
from pieline.studies.idiolink.variants.validation import (
    LABELLING,
    TextVerdict,
    read_corrections,
    to_review,
    write_review,
)

with job(snakemake):
    corrections = optional(snakemake.input.corrections)
    texts = [text for path in snakemake.input.texts for text in load_jsonl(path, GeneratedText)]
    verdicts = [
        verdict for path in snakemake.input.verdicts for verdict in load_jsonl(path, TextVerdict)
    ]
    rows = to_review(texts, verdicts, load_record(snakemake.input.splits, Splits).gold)
    decided = read_corrections(corrections) if corrections else {}
    write_review(rows, decided, sheet=snakemake.output.sheet, tasks=snakemake.output.tasks)
    write_text(snakemake.output.labelling, LABELLING)
