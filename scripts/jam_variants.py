"""Read validated hard variants (the sample or the release) and check them automatically."""

import argparse
from pathlib import Path

from pieline.core.errors import run_command
from pieline.core.records import load_jsonl, save_jsonl
from pieline.studies.jam.records import Original
from pieline.studies.jam.variants.released import read_variants
from pieline.studies.jam.variants.validation import check_variants, parse_limits


def main() -> None:
    """Parse the command line, read and check."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--originals", type=Path, required=True)
    parser.add_argument("--variants", type=Path, required=True, help="JSON in the released format")
    parser.add_argument("--source", choices=["sample", "released"], required=True)
    parser.add_argument("--checks", required=True, help="jam.variants.checks, as JSON")
    parser.add_argument("--output", type=Path, required=True)
    it = parser.parse_args()
    originals = load_jsonl(it.originals, Original)
    variants = read_variants(it.variants, originals, source=it.source)
    save_jsonl(it.output, check_variants(originals, variants, limits=parse_limits(it.checks)))


if __name__ == "__main__":
    run_command(main)
