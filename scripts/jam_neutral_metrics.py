"""Score a run on neutral variants of the hard ones that confused it."""

import argparse
from pathlib import Path

from pieline.core.conditions import Conditions
from pieline.core.errors import run_command
from pieline.core.files import digests, write_json
from pieline.core.records import load_jsonl, load_records, parse_record
from pieline.studies.jam.datasets.sentences import load_sentences
from pieline.studies.jam.metrics.neutral import neutral_metrics
from pieline.studies.jam.metrics.runs import JamMetrics, match_predictions
from pieline.studies.jam.predictions.records import IdiomPrediction


def main() -> None:
    """Parse the command line and score."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--predictions", type=Path, required=True)
    parser.add_argument("--neutral", type=Path, required=True, help="the neutral variants")
    parser.add_argument("--metrics", type=Path, required=True, help="of the confused run")
    parser.add_argument("--resamples", type=int, required=True, help="draws of the bootstrap")
    parser.add_argument("--conditions", required=True, help="settings and weights, as JSON")
    parser.add_argument("--output", type=Path, required=True)
    it = parser.parse_args()
    (run,) = load_records([it.metrics], JamMetrics)
    neutral = load_sentences(it.neutral)
    found = load_jsonl(it.predictions, IdiomPrediction)
    metrics = neutral_metrics(
        neutral,
        match_predictions(neutral, found, where=it.predictions),
        language=run.language,
        model=run.model,
        setting=run.setting,
        seed=run.seed,
        confusing=run.overall.flipped,
        scoring=run.scoring,
        released=run.dataset_is_released,
        resamples=it.resamples,
        conditions=parse_record(it.conditions, Conditions, option="--conditions"),
        computed_from=digests([it.predictions, it.neutral, it.metrics]),
    )
    write_json(it.output, metrics.model_dump())


if __name__ == "__main__":
    run_command(main)
