"""Tag the idioms of every sentence with a fine-tuned encoder."""

import argparse
from pathlib import Path

from pieline.core.errors import run_command
from pieline.core.records import save_jsonl
from pieline.models.encoder import parse_encoder_spec
from pieline.studies.jam.datasets.sentences import load_sentences
from pieline.studies.jam.predictions.tagging import predict
from pieline.studies.jam.training.tagger import load_tagger
from pieline.studies.jam.training.training import make_deterministic


def main() -> None:
    """Parse the command line and tag."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", required=True, help="the model's entry, as JSON")
    parser.add_argument("--weights", type=Path, required=True, help="folder of the weights")
    parser.add_argument("--sentences", type=Path, required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--output", type=Path, required=True)
    it = parser.parse_args()

    make_deterministic(it.threads)
    tagger = load_tagger(parse_encoder_spec(it.spec), weights=it.weights)
    save_jsonl(it.output, predict(tagger, load_sentences(it.sentences)))


if __name__ == "__main__":
    run_command(main)
