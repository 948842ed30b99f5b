"""Average gains from instructions, span embedding and both (IdioLink, section 6)."""

from collections.abc import Mapping, Sequence
from itertools import chain, product
from math import isnan, nan
from statistics import fmean

from pieline.reporting.columns import Column, Source, headers, records_of, row, sources
from pieline.reporting.displays import ConfiguredStudy, Table
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.printed import read_published
from pieline.reporting.tables import Group, TableContent
from pieline.studies.idiolink import inputs as given
from pieline.studies.idiolink.metrics.scores import IdiolinkMetrics
from pieline.studies.idiolink.tables.zero_shot import (
    METRICS,
    UNKNOWN,
    notes_on,
    obstacles_of,
    score_pct,
)

GAINS = {
    "instruction": "instruction_sentence",
    "span": "span",
    "combined": "instruction_span",
}
"""Query mode that is compared with `sentence` for each gain."""
_LABELS = {"instruction": "Instructions", "span": "Span embedding", "combined": "Both"}
_TEXT_NAMES = {"ndcg_at_10": "ndcg"}
"""Names of metrics in published/text_numbers.csv, where they differ from ours."""

Scores = Mapping[tuple[str, str, str], float]
"""Scores in percent, by model, query mode and metric."""


def average_gains(scores: Scores, models: Sequence[str]) -> dict[tuple[str, str], float]:
    """Return the mean gains over models, in points, by gain and metric.

    A gain is omitted if the score of any model is missing.
    """
    gains_by_metric = {}
    for (gain, mode), metric in product(GAINS.items(), METRICS):
        differences = [
            scores.get((model, mode, metric), nan) - scores.get((model, "sentence", metric), nan)
            for model in models
        ]
        if differences and not any(map(isnan, differences)):
            gains_by_metric[gain, metric] = fmean(differences)
    return gains_by_metric


COLUMNS = [Column[float | None](name, label, lambda mean: mean) for name, label in METRICS.items()]


def gains(inputs: DisplayInputs) -> TableContent:
    """Build the table of average gains over the paper's models, in points."""
    printed = read_published(inputs.files["published"], ["id"])
    runs = sources(inputs, IdiolinkMetrics, ["model", "query_mode"], obstacles_of)
    metrics = records_of(runs)
    scores = {
        (item.model, item.query_mode, metric): value
        for item in metrics
        for metric in METRICS
        if (value := score_pct(item, metric)) is not None
    }
    counted = [model.name for model in inputs.models if model.published_as]
    means = average_gains(scores, counted)
    of_models = (source for (model, _), source in runs.items() if model in counted)
    files = tuple(chain.from_iterable(source.files for source in of_models))
    obstacles = obstacles_of(*metrics)
    if inputs.absent:
        papers = len(counted) + len(inputs.absent)
        obstacles.append(f"over {len(counted)} of the paper's {papers} models")

    def source(gain: str, metric: str) -> Source[float | None]:
        name = f"idiolink.{gain}_gain_{_TEXT_NAMES.get(metric, metric)}"
        unknown = [UNKNOWN] if any(score_pct(item, metric) is None for item in metrics) else []
        return Source(
            key={"id": name, "gain": gain},
            records=[means.get((gain, metric))],
            files=files,
            printed={metric: printed[name,]["value"]} if (name,) in printed else {},
            obstacles=[*unknown, *obstacles],
        )

    models = f"{len(counted)} model{'' if len(counted) == 1 else 's'}"
    rows = [
        row((label,), [(column, source(gain, column.name)) for column in COLUMNS])
        for gain, label in _LABELS.items()
    ]
    return TableContent(
        heads=(headers(["Gain"], COLUMNS),),
        groups=(Group(tuple(rows)),),
        caption=f"Average gains from instructions, span embedding and both over {models}, in points"
        " relative to the sentence embedding without instructions.",
        notes=notes_on(metrics),
        wide=False,
    )


def _of_embedders(study: ConfiguredStudy) -> DisplayInputs | None:
    models = given.models_of_kinds(study, "embedder")
    metrics = given.zero_shot(study, "full", models)
    return study.display_inputs(metrics, models, "embedder") if models else None


GAINS_TABLE = Table(
    "idiolink_gains",
    "Section 6",
    "Average gains by instructions and span embedding, in points.",
    gains,
    _of_embedders,
    printed="text_numbers",
)
