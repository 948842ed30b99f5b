"""Write what encoders learn from: ID10M's train and dev, or dev alone cut in two."""

from pathlib import Path

from pieline.core.files import write_text
from pieline.core.program import Options, program
from pieline.studies.jam.datasets.tagging_data import (
    TrainingSplits,
    by_white_space,
    hold_out,
    thin_out,
)
from pieline.studies.jam.raw.id10m import read_id10m, write_id10m

SEED = 0


@program(
    train=Path | None, dev=Path, negatives=(float | None, "kept for each with an idiom"),
    words=(["text", "whitespace"], "what is tagged"),
    output_train=(Path, "ID10M file to write"), output_dev=(Path, "ID10M file to write"),
)  # fmt: skip
def main(it: Options) -> None:
    dev = read_id10m(it.dev, split="dev")
    splits = hold_out(dev, seed=SEED)
    if it.train:
        splits = TrainingSplits(read_id10m(it.train, split="train"), dev)
    train = thin_out(splits.train, per_idiom=it.negatives, seed=SEED)
    for path, sentences in ((it.output_train, train), (it.output_dev, splits.dev)):
        words = map(by_white_space, sentences) if it.words == "whitespace" else sentences
        write_text(path, write_id10m([*words]))
