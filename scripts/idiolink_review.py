"""Write the texts that need human review, as a CSV sheet with guidelines and for Label Studio."""

from pieline.core.jobs import job
from pieline.core.records import load_jsonl, load_record
from pieline.studies.idiolink.originals.splits import Splits
from pieline.studies.idiolink.variants.generation import GeneratedText
from pieline.studies.idiolink.variants.validation import TextVerdict, to_review, write_review

with job(snakemake):
    texts = [text for path in snakemake.input.texts for text in load_jsonl(path, GeneratedText)]
    verdicts = [
        verdict for path in snakemake.input.verdicts for verdict in load_jsonl(path, TextVerdict)
    ]
    write_review(
        to_review(texts, verdicts, load_record(snakemake.input.splits, Splits).gold),
        sheet=snakemake.output.sheet,
        guidelines=snakemake.output.guidelines,
        tasks=snakemake.output.tasks,
        labelling=snakemake.output.labelling,
    )
