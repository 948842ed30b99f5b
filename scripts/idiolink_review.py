"""Write the texts that people should look at: a sheet (CSV), and tasks for Label Studio."""

from pathlib import Path

from pieline.core.files import write_text
from pieline.core.program import Options, program
from pieline.core.records import load_jsonl
from pieline.studies.idiolink.originals.splits import load_splits
from pieline.studies.idiolink.variants.corrections import (
    LABELLING,
    read_corrections,
    to_review,
    write_review,
)
from pieline.studies.idiolink.variants.generation import GeneratedText
from pieline.studies.idiolink.variants.votes import TextVerdict


@program(
    texts=list[Path], verdicts=list[Path], splits=Path, corrections=Path | None,
    sheet=(Path, "CSV to write"), tasks=(Path, "tasks for Label Studio to write"),
    labelling=(Path, "their labelling configuration, XML to write"),
)  # fmt: skip
def main(it: Options) -> None:
    texts = [text for path in it.texts for text in load_jsonl(path, GeneratedText)]
    verdicts = [verdict for path in it.verdicts for verdict in load_jsonl(path, TextVerdict)]
    rows = to_review(texts, verdicts, load_splits(it.splits).gold)
    decided = read_corrections(it.corrections) if it.corrections else {}
    write_review(rows, decided, sheet=it.sheet, tasks=it.tasks)
    write_text(it.labelling, LABELLING)
