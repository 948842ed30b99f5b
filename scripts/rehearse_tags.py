"""Tag the idioms of every sentence so that an encoder's printed numbers come back."""

from pathlib import Path

from pieline.core.program import Options, program
from pieline.core.records import save_jsonl
from pieline.rehearsal.answers.tags import printed_tags
from pieline.studies.jam.datasets.sentences import load_sentences


@program(
    sentences=Path, model=(str, "the model, as the paper calls it"),
    seed=int, published=(Path, "folder of the printed numbers"), output=Path,
)  # fmt: skip
def main(it: Options) -> None:
    sentences = load_sentences(it.sentences)
    save_jsonl(it.output, printed_tags(sentences, it.published, model=it.model, seed=it.seed))
