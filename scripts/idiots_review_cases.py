"""Write the cases of a run that a person must judge, as JSONL and CSV."""

from pathlib import Path

from pieline.core.program import Options, program
from pieline.core.records import load_jsonl
from pieline.studies.idiots.datasets import IdiotsDataset
from pieline.studies.idiots.records import DetectionPrediction
from pieline.studies.idiots.verdicts import DetectionRun, review_cases, save_cases


@program(
    predictions=Path, dataset=Path, model=str, setting=str, seed=int,
    jsonl=(Path, "JSONL to write"), csv=Path,
)  # fmt: skip
def main(it: Options) -> None:
    run = DetectionRun(it.model, it.setting, it.seed)
    sentences = IdiotsDataset.load(it.dataset).sentences
    predictions = load_jsonl(it.predictions, DetectionPrediction)
    cases = review_cases(sentences, predictions, run)
    save_cases(cases, jsonl=it.jsonl, table=it.csv)
