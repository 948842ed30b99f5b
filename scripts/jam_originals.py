"""Filter ID10M's test split by recorded decisions; write the originals and a report."""

import argparse
from pathlib import Path

from pieline.core.errors import run_command
from pieline.core.files import write_json
from pieline.core.records import save_jsonl
from pieline.core.upstream import is_released, load_upstream
from pieline.languages.registry import known
from pieline.studies.jam.originals import apply_decisions, filtering_report, load_decisions
from pieline.studies.jam.raw.id10m import read_id10m


def main() -> None:
    """Parse the command line and filter."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--language", choices=known(), required=True)
    parser.add_argument("--raw", type=Path, required=True, help="test_<language>.tsv")
    parser.add_argument("--decisions", type=Path, required=True, help="one a sentence (TSV)")
    parser.add_argument("--derived", action="store_true", help="they derive from the release")
    parser.add_argument("--upstream", type=Path, required=True, help="data/upstream.yaml")
    parser.add_argument("--originals", type=Path, required=True, help="JSONL to write")
    parser.add_argument("--report", type=Path, required=True, help="JSON to write")
    it = parser.parse_args()

    sentences = read_id10m(it.raw, split="test")
    decisions = load_decisions(it.decisions)
    originals = apply_decisions(sentences, decisions, language=it.language, where=it.decisions)
    name = f"id10m/test_{it.language}.tsv"
    released = it.derived and is_released({name: it.raw}, load_upstream(it.upstream))
    report = filtering_report(sentences, decisions, originals)
    save_jsonl(it.originals, originals)
    write_json(it.report, report | {"originals_are_released": released})


if __name__ == "__main__":
    run_command(main)
