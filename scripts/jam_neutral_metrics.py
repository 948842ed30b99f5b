"""Score a run on neutral variants of the hard ones that confused it."""

from pathlib import Path

from pieline.core.conditions import Conditions
from pieline.core.files import digests, write_json
from pieline.core.program import Options, program
from pieline.core.records import load_jsonl, load_records
from pieline.studies.jam.datasets.sentences import load_sentences
from pieline.studies.jam.metrics.neutral import neutral_metrics
from pieline.studies.jam.metrics.runs import JamMetrics, match_predictions
from pieline.studies.jam.predictions.records import IdiomPrediction


@program(
    predictions=Path, neutral=(Path, "the neutral variants"), metrics=(Path, "of the confused run"),
    resamples=int, conditions=Conditions, output=Path,
)  # fmt: skip
def main(it: Options) -> None:
    (run,) = load_records([it.metrics], JamMetrics)
    neutral = load_sentences(it.neutral)
    found = load_jsonl(it.predictions, IdiomPrediction)
    metrics = neutral_metrics(
        neutral,
        match_predictions(neutral, found, where=it.predictions),
        language=run.language,
        model=run.model,
        setting=run.setting,
        seed=run.seed,
        confusing=sum(not right for item in run.judged for right in item.variants.values()),
        scoring=run.scoring,
        released=run.dataset_is_released,
        data_note=run.data_note,
        resamples=it.resamples,
        conditions=it.conditions,
        computed_from=digests([it.predictions, it.neutral, it.metrics]),
    )
    write_json(it.output, metrics.model_dump())
