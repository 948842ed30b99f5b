"""Write the texts that people should look at: a sheet (CSV), and tasks for Label Studio."""

import argparse
from pathlib import Path

from pieline.core.errors import run_command
from pieline.core.files import write_text
from pieline.core.records import load_jsonl
from pieline.studies.idiolink.originals.splits import load_splits
from pieline.studies.idiolink.variants.corrections import (
    LABELLING,
    read_corrections,
    to_review,
    write_review,
)
from pieline.studies.idiolink.variants.generation import GeneratedText
from pieline.studies.idiolink.variants.votes import TextVerdict


def main() -> None:
    """Parse the command line and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=Path, nargs="+", required=True, help="JSONL files")
    parser.add_argument("--verdicts", type=Path, nargs="+", required=True, help="JSONL files")
    parser.add_argument("--splits", type=Path, required=True)
    parser.add_argument("--corrections", type=Path, nargs="?", help="decisions already made")
    parser.add_argument("--sheet", type=Path, required=True, help="CSV file to write")
    parser.add_argument("--tasks", type=Path, required=True, help="JSON file to write")
    parser.add_argument("--labelling", type=Path, required=True, help="XML file to write")
    it = parser.parse_args()

    texts = [text for path in it.texts for text in load_jsonl(path, GeneratedText)]
    verdicts = [verdict for path in it.verdicts for verdict in load_jsonl(path, TextVerdict)]
    rows = to_review(texts, verdicts, load_splits(it.splits).gold)
    decided = read_corrections(it.corrections) if it.corrections else {}
    write_review(rows, decided, sheet=it.sheet, tasks=it.tasks)
    write_text(it.labelling, LABELLING)


if __name__ == "__main__":
    run_command(main)
