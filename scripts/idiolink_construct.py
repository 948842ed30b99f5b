"""Put the constructed data set together: corrected texts by split, in the released format."""

from pathlib import Path

from pieline.core.program import Options, program
from pieline.core.records import load_jsonl
from pieline.studies.idiolink.datasets.assembly import require_review, save_released_format
from pieline.studies.idiolink.originals.splits import load_splits
from pieline.studies.idiolink.variants.corrections import apply_corrections, read_corrections
from pieline.studies.idiolink.variants.generation import GeneratedText
from pieline.studies.idiolink.variants.votes import TextVerdict


@program(
    texts=list[Path], verdicts=list[Path], splits=Path, sheet=(Path, "what people should review"),
    corrections=Path | None, unreviewed=(["refuse", "keep"], "what to do with the others"),
    output=(Path, "folder to write"),
)  # fmt: skip
def main(it: Options) -> None:
    texts = [text for path in it.texts for text in load_jsonl(path, GeneratedText)]
    verdicts = [verdict for path in it.verdicts for verdict in load_jsonl(path, TextVerdict)]
    splits = load_splits(it.splits)
    decided = read_corrections(it.corrections) if it.corrections else {}
    if it.unreviewed == "refuse":
        require_review(texts, verdicts, decided, splits, sheet=it.sheet)
    corrected = apply_corrections(texts, decided, where=it.corrections or it.sheet)
    save_released_format(corrected, splits, it.output)
