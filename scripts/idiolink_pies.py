"""Filter MAGPIE's PIEs: a verdict on each, the (PIE, domain) pairs that are left, and a report."""

import argparse
from pathlib import Path

from pieline.core.errors import run_command
from pieline.core.files import digests, write_json
from pieline.core.records import parse_record, save_jsonl
from pieline.studies.idiolink.originals.pairs import FilterOptions, filter_magpie


def main() -> None:
    """Parse the command line and filter."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--magpie", type=Path, required=True, help="MAGPIE's JSONL file")
    parser.add_argument("--exclusions", type=Path, required=True, help="TSV of manual exclusions")
    parser.add_argument("--options", required=True, help="criteria, PIEs and domains, as JSON")
    parser.add_argument("--candidates", type=Path, nargs="?", help="the released list, to compare")
    parser.add_argument(
        "--documents", type=Path, nargs="*", default=[], help="released indexes.json files"
    )
    parser.add_argument("--pies", type=Path, required=True, help="JSONL file of verdicts to write")
    parser.add_argument("--pairs", type=Path, required=True, help="JSONL file of pairs to write")
    parser.add_argument("--report", type=Path, required=True, help="JSON file to write")
    it = parser.parse_args()

    options = parse_record(it.options, FilterOptions, option="--options")
    inputs = [it.magpie, it.exclusions, *([it.candidates] if it.candidates else []), *it.documents]
    verdicts, pairs, report = filter_magpie(
        it.magpie,
        it.exclusions,
        options,
        candidates=it.candidates,
        documents=it.documents,
        computed_from=digests(inputs),
    )
    save_jsonl(it.pies, verdicts)
    save_jsonl(it.pairs, pairs)
    write_json(it.report, report.model_dump())


if __name__ == "__main__":
    run_command(main)
