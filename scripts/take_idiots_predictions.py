"""Take the predictions of one IdioTS run that were made elsewhere."""

from pathlib import Path

from pieline.core.program import Options, program
from pieline.core.records import load_jsonl, save_jsonl
from pieline.studies.idiots.predictions import read_predictions
from pieline.studies.idiots.records import IdiotsSentence


@program(file=(Path, "predictions, JSONL or CSV"), sentences=Path, output=Path)
def main(it: Options) -> None:
    save_jsonl(it.output, read_predictions(it.file, load_jsonl(it.sentences, IdiotsSentence)))
