"""Export hard variants for human validation in Label Studio: tasks and labelling configuration."""

import argparse
from pathlib import Path

from pieline.core.errors import run_command
from pieline.core.files import write_text
from pieline.core.records import load_jsonl
from pieline.studies.jam.records import Original, Variant
from pieline.studies.jam.variants.label_studio import labelling_config, write_tasks
from pieline.studies.jam.variants.validation import CRITERIA, review_items


def main() -> None:
    """Parse the command line and export."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--originals", type=Path, required=True)
    parser.add_argument("--variants", type=Path, required=True)
    parser.add_argument("--tasks", type=Path, required=True, help="JSON to import into a project")
    parser.add_argument("--config", type=Path, required=True, help="its labelling configuration")
    it = parser.parse_args()
    originals, variants = load_jsonl(it.originals, Original), load_jsonl(it.variants, Variant)
    write_tasks(it.tasks, review_items(originals, variants))
    write_text(it.config, labelling_config(text_name="Hard variant", criteria=CRITERIA))


if __name__ == "__main__":
    run_command(main)
