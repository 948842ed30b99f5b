"""Put the constructed data set together: corrected texts by split, in the released format."""

import argparse
from pathlib import Path

from pieline.core.errors import run_command
from pieline.core.records import load_jsonl
from pieline.studies.idiolink.datasets.assembly import require_review, save_released_format
from pieline.studies.idiolink.originals.splits import load_splits
from pieline.studies.idiolink.variants.corrections import apply_corrections, read_corrections
from pieline.studies.idiolink.variants.generation import GeneratedText
from pieline.studies.idiolink.variants.votes import TextVerdict


def main() -> None:
    """Parse the command line and write the data set."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=Path, nargs="+", required=True, help="JSONL files")
    parser.add_argument("--verdicts", type=Path, nargs="+", required=True, help="JSONL files")
    parser.add_argument("--splits", type=Path, required=True)
    parser.add_argument("--sheet", type=Path, required=True, help="what people should review")
    parser.add_argument("--corrections", type=Path, nargs="?", help="what they decided")
    parser.add_argument("--unreviewed", choices=["refuse", "keep"], required=True)
    parser.add_argument("--output", type=Path, required=True, help="folder to write")
    it = parser.parse_args()

    texts = [text for path in it.texts for text in load_jsonl(path, GeneratedText)]
    verdicts = [verdict for path in it.verdicts for verdict in load_jsonl(path, TextVerdict)]
    splits = load_splits(it.splits)
    decided = read_corrections(it.corrections) if it.corrections else {}
    if it.unreviewed == "refuse":
        require_review(texts, verdicts, decided, splits, sheet=it.sheet)
    corrected = apply_corrections(texts, decided, where=it.corrections or it.sheet)
    save_released_format(corrected, splits, it.output)


if __name__ == "__main__":
    run_command(main)
