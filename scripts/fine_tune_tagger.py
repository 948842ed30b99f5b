"""Fine-tune an encoder to tag idioms; a killed run goes on from its last epoch."""

from pathlib import Path

from pieline.core.files import write_json
from pieline.core.program import Options, program
from pieline.models.entries import EncoderEntry
from pieline.studies.jam.raw.id10m import read_id10m
from pieline.studies.jam.training.settings import TaggingSettings
from pieline.studies.jam.training.tagger import load_tagger
from pieline.studies.jam.training.training import fine_tune, make_deterministic


@program(
    spec=str, settings=TaggingSettings, seed=int, train=Path, dev=Path, threads=int,
    checkpoint=Path, output=(Path, "folder of the weights"), log=(Path, "what happened, as JSON"),
)  # fmt: skip
def main(it: Options) -> None:
    make_deterministic(it.threads)
    tagger = load_tagger(EncoderEntry.from_spec(it.spec), seed=it.seed)
    train, dev = read_id10m(it.train, split="train"), read_id10m(it.dev, split="dev")
    log = fine_tune(
        tagger, train, dev, it.settings, seed=it.seed, identity=it.spec, checkpoint=it.checkpoint
    )
    tagger.save(it.output)
    write_json(it.log, log.model_dump())
    it.checkpoint.unlink(missing_ok=True)
