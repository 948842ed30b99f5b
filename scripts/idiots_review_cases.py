"""Write the cases of a run that a person must judge, as JSONL and CSV."""

import argparse
from pathlib import Path

from pieline.core.errors import run_command
from pieline.core.records import load_jsonl
from pieline.studies.idiots.datasets import IdiotsDataset
from pieline.studies.idiots.records import DetectionPrediction
from pieline.studies.idiots.verdicts import Run, review_cases, save_cases


def main() -> None:
    """Parse the command line and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--predictions", type=Path, required=True)
    parser.add_argument("--dataset", type=Path, required=True, help="folder of the dataset")
    parser.add_argument("--model", required=True)
    parser.add_argument("--setting", required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--jsonl", type=Path, required=True)
    parser.add_argument("--csv", type=Path, required=True)
    arguments = parser.parse_args()

    run = Run(arguments.model, arguments.setting, arguments.seed)
    sentences = IdiotsDataset.load(arguments.dataset).sentences
    predictions = load_jsonl(arguments.predictions, DetectionPrediction)
    cases = review_cases(sentences, predictions, run)
    save_cases(cases, jsonl=arguments.jsonl, table=arguments.csv)


if __name__ == "__main__":
    run_command(main)
