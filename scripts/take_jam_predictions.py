"""Take the predictions of one run on ID10M-JAM that were made elsewhere."""

from pathlib import Path

from pieline.core.program import Options, program
from pieline.core.records import save_jsonl
from pieline.studies.jam.datasets.sentences import load_sentences
from pieline.studies.jam.predictions.elsewhere import read_predictions


@program(file=(Path, "predictions, JSONL or CSV"), sentences=Path, output=Path)
def main(it: Options) -> None:
    save_jsonl(it.output, read_predictions(it.file, load_sentences(it.sentences)))
