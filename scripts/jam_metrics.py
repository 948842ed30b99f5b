"""Score one run on ID10M-JAM: negative drift, accuracy, confusion classes, F1 of the tags."""

from pathlib import Path

from pieline.core.conditions import Conditions
from pieline.core.files import digests, read_json, write_json
from pieline.core.program import Options, program
from pieline.core.records import load_jsonl
from pieline.studies.jam.datasets.dataset import load_manifest
from pieline.studies.jam.datasets.sentences import load_sentences
from pieline.studies.jam.metrics.runs import jam_metrics, match_predictions
from pieline.studies.jam.predictions.records import IdiomPrediction


@program(
    predictions=Path, sentences=Path, manifest=(Path | None, "manifest, where there are variants"),
    report=Path, model=str, setting=str, seed=int, scoring=(["paper", "released"], "whose scores"),
    resamples=int, conditions=Conditions, output=Path,
)  # fmt: skip
def main(it: Options) -> None:
    sentences = load_sentences(it.sentences)
    found = load_jsonl(it.predictions, IdiomPrediction)
    manifest = load_manifest(it.manifest) if it.manifest else None
    released = read_json(it.report)["originals_are_released"]
    metrics = jam_metrics(
        sentences,
        match_predictions(sentences, found, where=it.predictions),
        model=it.model,
        setting=it.setting,
        seed=it.seed,
        scoring=it.scoring,
        released=manifest.is_released if manifest else released,
        data_note=manifest.data_note if manifest else "",
        resamples=it.resamples,
        conditions=it.conditions,
        computed_from=digests([it.predictions, it.sentences]),
    )
    write_json(it.output, metrics.model_dump())
