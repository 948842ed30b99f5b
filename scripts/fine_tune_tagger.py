"""Fine-tune an encoder to tag idioms; a killed run goes on from its last epoch."""

import argparse
from pathlib import Path

from pieline.core.errors import run_command
from pieline.core.files import write_json
from pieline.core.records import parse_record
from pieline.models.encoder import parse_encoder_spec
from pieline.studies.jam.raw.id10m import read_id10m
from pieline.studies.jam.training.settings import TaggingSettings
from pieline.studies.jam.training.tagger import load_tagger
from pieline.studies.jam.training.training import fine_tune, make_deterministic


def main() -> None:
    """Parse the command line and train."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", required=True, help="the model's entry, as JSON")
    parser.add_argument("--settings", required=True, help="hyperparameters, as JSON")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--train", type=Path, required=True, help="ID10M file")
    parser.add_argument("--dev", type=Path, required=True, help="ID10M file")
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--checkpoint", type=Path, required=True, help="removed at the end")
    parser.add_argument("--output", type=Path, required=True, help="folder of the weights")
    parser.add_argument("--log", type=Path, required=True, help="what happened, as JSON")
    it = parser.parse_args()

    make_deterministic(it.threads)
    tagger = load_tagger(parse_encoder_spec(it.spec), seed=it.seed)
    train, dev = read_id10m(it.train, split="train"), read_id10m(it.dev, split="dev")
    settings = parse_record(it.settings, TaggingSettings, option="--settings")
    log = fine_tune(
        tagger, train, dev, settings, seed=it.seed, identity=it.spec, checkpoint=it.checkpoint
    )
    tagger.save(it.output)
    write_json(it.log, log.model_dump())
    it.checkpoint.unlink(missing_ok=True)


if __name__ == "__main__":
    run_command(main)
