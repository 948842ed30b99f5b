"""Take the sample's neutral variant for each hard one that confused a model."""

import argparse
from pathlib import Path

from pieline.core.errors import run_command
from pieline.core.files import write_json
from pieline.core.records import save_jsonl
from pieline.studies.jam.datasets.sentences import load_sentences
from pieline.studies.jam.variants.generation import confusing_variants, sample_neutral_variants


def main() -> None:
    """Parse the command line and choose."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dataset", type=Path, required=True)
    parser.add_argument("--metrics", type=Path, required=True, help="of the confused model")
    parser.add_argument("--sample", type=Path, required=True, help="neutral texts by original")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--report", type=Path, required=True)
    it = parser.parse_args()
    confusing = confusing_variants(it.metrics)
    variants = sample_neutral_variants(load_sentences(it.dataset), confusing, it.sample)
    save_jsonl(it.output, variants)
    write_json(it.report, {"asked": len(confusing), "variants": len(variants)})


if __name__ == "__main__":
    run_command(main)
