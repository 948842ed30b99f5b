"""Count what validation and review did to the generated texts, and how far both agree."""

from pathlib import Path

from pieline.core.conditions import Conditions
from pieline.core.files import digests, read_json, write_json
from pieline.core.program import Options, program
from pieline.core.records import load_jsonl
from pieline.studies.idiolink.datasets.assembly import construction_metrics
from pieline.studies.idiolink.originals.splits import load_splits
from pieline.studies.idiolink.variants.corrections import read_corrections
from pieline.studies.idiolink.variants.generation import GeneratedText, GenerationReport
from pieline.studies.idiolink.variants.votes import TextVerdict


@program(
    texts=list[Path], reports=(list[Path], "of the writing"), verdicts=list[Path], splits=Path,
    corrections=Path | None, validator=(str, "the validating model's name"), sample=bool,
    conditions=Conditions, output=Path,
)  # fmt: skip
def main(it: Options) -> None:
    decided = [it.corrections] if it.corrections else []
    metrics = construction_metrics(
        [text for path in it.texts for text in load_jsonl(path, GeneratedText)],
        [verdict for path in it.verdicts for verdict in load_jsonl(path, TextVerdict)],
        read_corrections(it.corrections) if it.corrections else {},
        load_splits(it.splits),
        reports=[GenerationReport.model_validate(read_json(path)) for path in it.reports],
        validator=it.validator,
        sample=it.sample,
        computed_from=digests([*it.texts, *it.reports, *it.verdicts, it.splits, *decided]),
        conditions=it.conditions,
    )
    write_json(it.output, metrics.model_dump())
