"""Count the outcomes of generation, validation and review of IdioLink's texts."""

from pieline.core.files import read_json
from pieline.core.jobs import job, optional
from pieline.core.records import load_jsonl, load_record
from pieline.studies.idiolink.datasets.assembly import ReviewedTexts, construction_metrics
from pieline.studies.idiolink.originals.splits import Splits
from pieline.studies.idiolink.variants.generation import GeneratedText, GenerationReport
from pieline.studies.idiolink.variants.validation import TextVerdict, read_corrections

with job(snakemake) as j:
    corrections_file = optional(snakemake.input.corrections)
    texts = [text for path in snakemake.input.texts for text in load_jsonl(path, GeneratedText)]
    verdicts = [
        verdict for path in snakemake.input.verdicts for verdict in load_jsonl(path, TextVerdict)
    ]
    corrections = read_corrections(corrections_file) if corrections_file else {}
    splits = load_record(snakemake.input.splits, Splits)
    metrics = construction_metrics(
        ReviewedTexts(texts, verdicts, corrections, splits),
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
