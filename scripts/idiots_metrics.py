"""Score one IdioTS run."""

from pathlib import Path

from pieline.core.conditions import Conditions
from pieline.core.files import digests, write_json
from pieline.core.program import Options, program
from pieline.core.records import load_jsonl
from pieline.studies.idiots.datasets import IdiotsDataset
from pieline.studies.idiots.metrics import detection_metrics
from pieline.studies.idiots.records import DetectionPrediction
from pieline.studies.idiots.verdicts import DetectionRun, human_verdicts, read_cases


@program(
    predictions=Path, dataset=Path, verdicts=(Path | None, "cases that people judged"), model=str,
    setting=str, seed=int, resamples=int, conditions=Conditions, output=Path,
)  # fmt: skip
def main(it: Options) -> None:
    run = DetectionRun(it.model, it.setting, it.seed)
    dataset = IdiotsDataset.load(it.dataset)
    predictions = load_jsonl(it.predictions, DetectionPrediction)
    sources = [it.predictions, *dataset.files(it.dataset)] + ([it.verdicts] if it.verdicts else [])
    cases = read_cases(it.verdicts) if it.verdicts else []
    metrics = detection_metrics(
        dataset.sentences,
        predictions,
        run,
        origin=dataset.origin,
        data_note=dataset.verification.data_note,
        resamples=it.resamples,
        conditions=it.conditions,
        verdicts=human_verdicts(cases, predictions, run, where=it.verdicts or ""),
        computed_from=digests(sources),
    )
    write_json(it.output, metrics.model_dump())
