"""Score what needs no model on ID10M-JAM: no idiom anywhere, the PIE everywhere, the majority."""

from pathlib import Path

from pieline.core.conditions import Conditions
from pieline.core.files import digests, write_json
from pieline.core.program import Options, program
from pieline.studies.jam.datasets.dataset import load_manifest
from pieline.studies.jam.datasets.sentences import load_sentences
from pieline.studies.jam.metrics.runs import jam_metrics
from pieline.studies.jam.predictions.baselines import predict


@program(
    sentences=Path, manifest=Path, scoring=(["paper", "released"], "whose scores"), resamples=int,
    conditions=Conditions, outputs=(list[Path], "in folders by baseline, setting and seed"),
)  # fmt: skip
def main(it: Options) -> None:
    sentences, manifest = load_sentences(it.sentences), load_manifest(it.manifest)
    for output in it.outputs:
        baseline, setting = output.parts[-3:-1]
        metrics = jam_metrics(
            sentences,
            predict(baseline, sentences),
            model=baseline,
            setting=setting,
            seed=0,
            scoring=it.scoring,
            released=manifest.is_released,
            data_note=manifest.data_note,
            resamples=it.resamples,
            conditions=it.conditions,
            computed_from=digests([it.sentences]),
        )
        write_json(output, metrics.model_dump())
