"""Score one IdioTS run."""

import argparse
from pathlib import Path

from pieline.core.conditions import Conditions
from pieline.core.errors import run_command
from pieline.core.files import digests, write_json
from pieline.core.records import load_jsonl, parse_record
from pieline.studies.idiots.datasets import IdiotsDataset
from pieline.studies.idiots.metrics import detection_metrics
from pieline.studies.idiots.records import DetectionPrediction
from pieline.studies.idiots.verdicts import Run, human_verdicts, read_cases


def main() -> None:
    """Parse the command line and score."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--predictions", type=Path, required=True)
    parser.add_argument("--dataset", type=Path, required=True, help="folder of the dataset")
    parser.add_argument("--verdicts", type=Path, nargs="?", help="cases that people judged")
    parser.add_argument("--model", required=True)
    parser.add_argument("--setting", required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--resamples", type=int, required=True, help="of the bootstrap")
    parser.add_argument("--conditions", required=True, help="settings and weights, as JSON")
    parser.add_argument("--output", type=Path, required=True)
    it = parser.parse_args()

    run = Run(it.model, it.setting, it.seed)
    dataset = IdiotsDataset.load(it.dataset)
    predictions = load_jsonl(it.predictions, DetectionPrediction)
    sources = [it.predictions, *dataset.files(it.dataset)] + ([it.verdicts] if it.verdicts else [])
    cases = read_cases(it.verdicts) if it.verdicts else []
    metrics = detection_metrics(
        dataset.sentences,
        predictions,
        run,
        origin=dataset.origin,
        resamples=it.resamples,
        conditions=parse_record(it.conditions, Conditions, option="--conditions"),
        verdicts=human_verdicts(cases, predictions, run, where=it.verdicts or ""),
        computed_from=digests(sources),
    )
    write_json(it.output, metrics.model_dump())


if __name__ == "__main__":
    run_command(main)
