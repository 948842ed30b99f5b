"""Average gains from instructions, span embedding and both (IdioLink, section 6)."""

from collections.abc import Mapping, Sequence
from itertools import product
from math import isnan, nan
from statistics import fmean

import pandas as pd

from pieline.core.measures import Measure
from pieline.core.records import load_records
from pieline.reporting.displays import ConfiguredStudy, Table
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.numbers import rows_of
from pieline.reporting.ours import OurNumbers
from pieline.reporting.tables import Column, Group, TableContent, headers, number_row
from pieline.studies.idiolink import inputs as given
from pieline.studies.idiolink.metrics.scores import IdiolinkMetrics
from pieline.studies.idiolink.tables.zero_shot import METRICS, notes_on, obstacles_of, of_rankings

GAINS = {
    "instruction": "instruction_sentence",
    "span": "span",
    "combined": "instruction_span",
}
"""Query mode that is compared with `sentence` for each gain."""
_LABELS = {"instruction": "Instructions", "span": "Span embedding", "combined": "Both"}

Scores = Mapping[tuple[str, str, str], float]
"""Scores in percent, by model, query mode and metric."""
Means = Mapping[tuple[str, str], float]
"""Mean gains in points, by gain and metric."""


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


def _gain(gain: str, metric: str) -> Measure[Means]:
    return Measure(
        f"{gain}_gain_{metric}",
        lambda means: means.get((gain, metric)),
        unit="points",
        unknown="a score of some model is missing",
    )


MEASURES = [_gain(gain, metric) for gain, metric in product(GAINS, METRICS)]


def _counted(inputs: DisplayInputs) -> list[str]:
    """Return the configured models that the paper has, too."""
    return [model.name for model in inputs.own_models() if model.published_as]


def gains_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return the average gains over the paper's models."""
    runs, counted = of_rankings(inputs), _counted(inputs)
    keys = zip(runs["model"], runs["query_mode"], runs["measure"], strict=True)
    scores = dict(zip(keys, runs["ours"], strict=True))
    of_models = runs[runs["model"].isin(counted)]
    obstacles = obstacles_of(*load_records(inputs.metrics, IdiolinkMetrics))
    papers = sum(model.published_as is not None for model in inputs.models)
    if len(counted) < papers:
        obstacles.append(f"over {len(counted)} of the paper's {papers} models")
    numbers = OurNumbers(inputs.study)
    numbers.add(
        {},
        MEASURES,
        average_gains(scores, counted),
        files=[*dict.fromkeys(path for (path,) in of_models["files"])],
        obstacles=obstacles,
    )
    return numbers.frame()


def gains(numbers: pd.DataFrame, inputs: DisplayInputs) -> TableContent:
    """Lay out the table of average gains over the paper's models, in points."""
    (means,) = rows_of(numbers, ()).values()
    counted = _counted(inputs)
    models = f"{len(counted)} model{'' if len(counted) == 1 else 's'}"
    rows = [
        number_row((label,), [Column(f"{gain}_gain_{name}", "") for name in METRICS], means)
        for gain, label in _LABELS.items()
    ]
    return TableContent(
        heads=(headers(["Gain", *METRICS.values()]),),
        groups=(Group(tuple(rows)),),
        caption=f"Average gains from instructions, span embedding and both over {models}, in points"
        " relative to the sentence embedding without instructions.",
        notes=notes_on(load_records(inputs.metrics, IdiolinkMetrics)),
        wide=False,
    )


def _of_embedders(study: ConfiguredStudy) -> DisplayInputs | None:
    models = given.of_kinds(study, given.ranked(study), "embedder")
    runs = given.zero_shot(study, models)
    return study.display_inputs(runs, "embedder", models=models) if models else None


GAINS_TABLE = Table(
    "idiolink_gains",
    "Section 6",
    "Average gains by instructions and span embedding, in points.",
    gains,
    _of_embedders,
    gains_numbers,
    printed=("text_numbers",),
)
