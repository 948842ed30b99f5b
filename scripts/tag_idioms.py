"""Tag the idioms of every sentence with a fine-tuned encoder."""

from pathlib import Path

from pieline.core.program import Options, program
from pieline.core.records import save_jsonl
from pieline.models.entries import EncoderEntry
from pieline.studies.jam.datasets.sentences import load_sentences
from pieline.studies.jam.predictions.tagging import predict
from pieline.studies.jam.training.tagger import load_tagger
from pieline.studies.jam.training.training import make_deterministic


@program(
    spec=EncoderEntry.from_spec, weights=(Path, "folder of the weights"), sentences=Path,
    words=(["text", "whitespace"], "what it was trained to tag"), threads=int, output=Path,
)  # fmt: skip
def main(it: Options) -> None:
    make_deterministic(it.threads)
    tagger = load_tagger(it.spec, weights=it.weights)
    save_jsonl(it.output, predict(tagger, load_sentences(it.sentences), words=it.words))
