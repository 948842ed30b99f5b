"""Count what validation and review did to the generated texts, and how far both agree."""

import argparse
from pathlib import Path

from pieline.core.conditions import Conditions
from pieline.core.errors import run_command
from pieline.core.files import digests, read_json, write_json
from pieline.core.records import load_jsonl, parse_record
from pieline.studies.idiolink.datasets.assembly import construction_metrics
from pieline.studies.idiolink.originals.splits import load_splits
from pieline.studies.idiolink.variants.corrections import read_corrections
from pieline.studies.idiolink.variants.generation import GeneratedText, GenerationReport
from pieline.studies.idiolink.variants.votes import TextVerdict


def main() -> None:
    """Parse the command line and count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=Path, nargs="+", required=True, help="JSONL files")
    parser.add_argument("--reports", type=Path, nargs="+", required=True, help="of the writing")
    parser.add_argument("--verdicts", type=Path, nargs="+", required=True, help="JSONL files")
    parser.add_argument("--splits", type=Path, required=True)
    parser.add_argument("--corrections", type=Path, nargs="?", help="what people decided")
    parser.add_argument("--validator", required=True, help="the validating model's name")
    parser.add_argument("--sample", action="store_true", help="the data are the sample's")
    parser.add_argument("--conditions", required=True, help="settings and models, as JSON")
    parser.add_argument("--output", type=Path, required=True, help="JSON file")
    it = parser.parse_args()

    decided = [it.corrections] if it.corrections else []
    metrics = construction_metrics(
        [text for path in it.texts for text in load_jsonl(path, GeneratedText)],
        [verdict for path in it.verdicts for verdict in load_jsonl(path, TextVerdict)],
        read_corrections(it.corrections) if it.corrections else {},
        load_splits(it.splits),
        reports=[GenerationReport.model_validate(read_json(path)) for path in it.reports],
        validator=it.validator,
        sample=it.sample,
        computed_from=digests([*it.texts, *it.reports, *it.verdicts, it.splits, *decided]),
        conditions=parse_record(it.conditions, Conditions, option="--conditions"),
    )
    write_json(it.output, metrics.model_dump())


if __name__ == "__main__":
    run_command(main)
