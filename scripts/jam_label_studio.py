"""Write Label Studio tasks and their configuration, for the human validation of hard variants."""

from pieline.core.files import write_text
from pieline.core.jobs import job
from pieline.core.records import load_jsonl
from pieline.core.review import write_tasks
from pieline.studies.jam.records import Original, Variant
from pieline.studies.jam.variants.validation import CRITERIA, labelling_config, review_items

with job(snakemake):
    originals = load_jsonl(snakemake.input.originals, Original)
    variants = load_jsonl(snakemake.input.variants, Variant)
    write_tasks(snakemake.output.tasks, review_items(originals, variants))
    write_text(
        snakemake.output.config, labelling_config(text_name="Hard variant", criteria=CRITERIA)
    )
