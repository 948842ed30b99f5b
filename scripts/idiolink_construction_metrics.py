"""Count validation and review outcomes on the generated texts, and measure their agreement."""

from pieline.core.files import read_json
from pieline.core.jobs import job, optional
from pieline.core.records import load_jsonl, load_record
from pieline.studies.idiolink.datasets.assembly import ReviewedTexts, construction_metrics
from pieline.studies.idiolink.originals.splits import Splits
from pieline.studies.idiolink.variants.generation import GeneratedText, GenerationReport
from pieline.studies.idiolink.variants.validation import TextVerdict, read_corrections

with job(snakemake) as j:
    corrections = optional(snakemake.input.corrections)
    metrics = construction_metrics(
        ReviewedTexts(
            [text for path in snakemake.input.texts for text in load_jsonl(path, GeneratedText)],
            [
                verdict
                for path in snakemake.input.verdicts
                for verdict in load_jsonl(path, TextVerdict)
            ],
            read_corrections(corrections) if corrections else {},
            load_record(snakemake.input.splits, Splits),
        ),
        j.evidence(
            snakemake.input.texts,
            snakemake.input.reports,
            snakemake.input.verdicts,
            snakemake.input.splits,
            snakemake.input.corrections,
        ),
        reports=[
            GenerationReport.model_validate(read_json(path)) for path in snakemake.input.reports
        ],
        validator=snakemake.params.validator,
        sample=snakemake.params.sample,
    )
    j.write(metrics)
