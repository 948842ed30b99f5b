"""Score one run on ID10M-JAM: negative drift, accuracy, confusion classes, F1 of the tags."""

import argparse
from pathlib import Path

from pieline.core.conditions import Conditions
from pieline.core.errors import run_command
from pieline.core.files import digests, read_json, write_json
from pieline.core.records import load_jsonl, parse_record
from pieline.studies.jam.datasets.dataset import load_manifest
from pieline.studies.jam.datasets.sentences import load_sentences
from pieline.studies.jam.metrics.runs import jam_metrics, match_predictions
from pieline.studies.jam.predictions.records import IdiomPrediction


def main() -> None:
    """Parse the command line and score."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--predictions", type=Path, required=True)
    parser.add_argument("--sentences", type=Path, required=True)
    parser.add_argument("--manifest", type=Path, nargs="?", help="of a dataset with variants")
    parser.add_argument("--report", type=Path, required=True, help="of the originals")
    parser.add_argument("--model", required=True)
    parser.add_argument("--setting", required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--scoring", choices=["paper", "released"], required=True)
    parser.add_argument("--resamples", type=int, required=True, help="draws of the bootstrap")
    parser.add_argument("--conditions", required=True, help="settings and weights, as JSON")
    parser.add_argument("--output", type=Path, required=True)
    it = parser.parse_args()

    sentences = load_sentences(it.sentences)
    found = load_jsonl(it.predictions, IdiomPrediction)
    released = read_json(it.report)["originals_are_released"]
    metrics = jam_metrics(
        sentences,
        match_predictions(sentences, found, where=it.predictions),
        model=it.model,
        setting=it.setting,
        seed=it.seed,
        scoring=it.scoring,
        released=load_manifest(it.manifest).is_released if it.manifest else released,
        resamples=it.resamples,
        conditions=parse_record(it.conditions, Conditions, option="--conditions"),
        computed_from=digests([it.predictions, it.sentences]),
    )
    write_json(it.output, metrics.model_dump())


if __name__ == "__main__":
    run_command(main)
