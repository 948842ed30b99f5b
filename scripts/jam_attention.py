"""Look into a causal model: attention from the PIE in variants that mislead and that do not."""

from pathlib import Path

import torch

from pieline.core.conditions import Conditions
from pieline.core.files import digests, write_json
from pieline.core.program import Options, program
from pieline.core.records import load_records
from pieline.models.entries import CheckpointEntry
from pieline.studies.jam.datasets.sentences import load_sentences
from pieline.studies.jam.metrics.attention import attention_metrics, load_causal_model
from pieline.studies.jam.metrics.runs import JamMetrics


@program(
    spec=CheckpointEntry.from_spec, weights=Path | None, model=str, sentences=Path,
    metrics=(list[Path], "who was misled"), pairs=(int, "of variants, at most"), threads=int,
    resamples=int, conditions=Conditions, output=Path,
)  # fmt: skip
def main(it: Options) -> None:
    torch.set_num_threads(it.threads)
    metrics = attention_metrics(
        load_records(it.metrics, JamMetrics),
        load_sentences(it.sentences),
        load_causal_model(it.spec, weights=it.weights),
        model=it.model,
        pairs=it.pairs,
        resamples=it.resamples,
        conditions=it.conditions,
        computed_from=digests([it.sentences, *it.metrics]),
    )
    write_json(it.output, metrics.model_dump())
