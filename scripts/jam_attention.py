"""Look into a causal model: attention from the PIE in variants that mislead and that do not."""

import argparse
from pathlib import Path

import torch

from pieline.core.conditions import Conditions
from pieline.core.errors import run_command
from pieline.core.files import digests, write_json
from pieline.core.records import load_records, parse_record
from pieline.models.checkpoint import parse_weights_spec
from pieline.studies.jam.datasets.sentences import load_sentences
from pieline.studies.jam.metrics.attention import attention_metrics, load_causal_model
from pieline.studies.jam.metrics.runs import JamMetrics


def main() -> None:
    """Parse the command line and analyse."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", required=True, help="weights of the model's entry, as JSON")
    parser.add_argument("--weights", type=Path, nargs="?", help="folder to load instead")
    parser.add_argument("--model", required=True, help="its name")
    parser.add_argument("--sentences", type=Path, required=True)
    parser.add_argument("--metrics", type=Path, nargs="+", required=True, help="who was misled")
    parser.add_argument("--pairs", type=int, required=True, help="at most")
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--resamples", type=int, required=True, help="draws of the bootstrap")
    parser.add_argument("--conditions", required=True, help="settings and weights, as JSON")
    parser.add_argument("--output", type=Path, required=True)
    it = parser.parse_args()

    torch.set_num_threads(it.threads)
    metrics = attention_metrics(
        load_records(it.metrics, JamMetrics),
        load_sentences(it.sentences),
        load_causal_model(parse_weights_spec(it.spec), weights=it.weights),
        model=it.model,
        pairs=it.pairs,
        resamples=it.resamples,
        conditions=parse_record(it.conditions, Conditions, option="--conditions"),
        computed_from=digests([it.sentences, *it.metrics]),
    )
    write_json(it.output, metrics.model_dump())


if __name__ == "__main__":
    run_command(main)
