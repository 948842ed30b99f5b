"""Label hard variants as two people, so that the printed numbers of section 5.1 come back."""

from pathlib import Path

from pieline.core.program import Options, program
from pieline.rehearsal.answers.people import printed_labels, save_labels
from pieline.studies.jam.datasets.sentences import load_sentences


@program(sentences=Path, published=(Path, "folder of the printed numbers"), output=Path)
def main(it: Options) -> None:
    save_labels(it.output, printed_labels(load_sentences(it.sentences), it.published))
