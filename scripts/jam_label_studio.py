"""Export hard variants for human validation in Label Studio: tasks and labelling configuration."""

from pathlib import Path

from pieline.core.files import write_text
from pieline.core.program import Options, program
from pieline.core.records import load_jsonl
from pieline.studies.jam.records import Original, Variant
from pieline.studies.jam.variants.label_studio import labelling_config, write_tasks
from pieline.studies.jam.variants.validation import CRITERIA, review_items


@program(
    originals=Path, variants=Path, tasks=(Path, "JSON to import into a project"),
    config=(Path, "its labelling configuration"),
)  # fmt: skip
def main(it: Options) -> None:
    originals, variants = load_jsonl(it.originals, Original), load_jsonl(it.variants, Variant)
    write_tasks(it.tasks, review_items(originals, variants))
    write_text(it.config, labelling_config(text_name="Hard variant", criteria=CRITERIA))
