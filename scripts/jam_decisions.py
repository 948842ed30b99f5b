"""Derive the decisions that turn ID10M's test split into the released originals of ID10M-JAM."""

import argparse
from pathlib import Path

from pieline.core.errors import run_command
from pieline.studies.jam.originals import derive_decisions, save_decisions
from pieline.studies.jam.raw.id10m import read_id10m
from pieline.studies.jam.raw.released import read_released_originals


def main() -> None:
    """Parse the command line and derive."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--raw", type=Path, required=True, help="test_<language>.tsv")
    parser.add_argument("--released", type=Path, required=True, help="id10m_fixed/<language>.json")
    parser.add_argument("--output", type=Path, required=True, help="decisions (TSV)")
    it = parser.parse_args()
    released = read_released_originals(it.released)
    decisions = derive_decisions(read_id10m(it.raw, split="test"), released, where=it.released)
    save_decisions(it.output, decisions)


if __name__ == "__main__":
    run_command(main)
