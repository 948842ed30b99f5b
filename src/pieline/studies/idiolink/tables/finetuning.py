"""Fine-tuning results (Table 5), and average gains from instructions and spans (section 6)."""

from collections.abc import Mapping, Sequence
from itertools import chain, product
from math import isnan, nan
from statistics import fmean
from typing import Any

import pandas as pd

from pieline.core.measures import Measure
from pieline.core.records import load_records
from pieline.reporting.displays import ConfiguredStudy, Table
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.numbers import rows_of
from pieline.reporting.ours import OurNumbers, over_seeds
from pieline.reporting.tables import Column, Group, Row, TableContent, headers, number_row
from pieline.studies.idiolink import inputs as given
from pieline.studies.idiolink.metrics.scores import IdiolinkMetrics
from pieline.studies.idiolink.tables.zero_shot import (
    METRICS,
    SCORE_COLUMNS,
    notes_on,
    obstacles_of,
    of_rankings,
    ordered_models,
    scores_table,
)

TRAIN_MODES = {
    "sentence": "w/o inst - sentence",
    "instruction_sentence": "w/ inst - sentence",
    "span": "w/o inst - span",
    "instruction_span": "w/ inst - span",
}
"""Labels of the training modes, in the order of Table 5."""
LOSSES = {"paper": "equation 2", "released": "released"}
"""Labels of the losses in Table 5 and Figure 3."""
_JUDGED = (
    "A mean is within sampling range, but not equal, if it lies in the 95% t interval (Welch) for"
    " the difference between our mean and the paper's of 3 seeds (with one"
    " seed of ours: in the prediction interval). A deviation is within sampling range if it lies in"
    " the F interval for the ratio of two variances; the printed deviations are tested with ddof 1"
    " and with ddof 0, and one of them is enough."
)
_TUPLES = {
    "sampled": "Trained with tuples that were sampled as described in section 4.3, not with those"
    " that the authors mined.",
    "released": "Trained with the tuples that the authors mined; those for the sentence modes are"
    " used in all training modes.",
}


def finetuned_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return our numbers of Table 5: means and deviations over seeds."""
    return over_seeds(of_rankings(inputs))


def finetuned(numbers: pd.DataFrame, inputs: DisplayInputs) -> TableContent:
    """Lay out Table 5: both metrics (percent) by training mode, model and query mode.

    Rows are the fine-tuned models of this run, and models and training modes that are only in the
    paper unless `inputs.rows` is "run".
    """
    trainings = rows_of(numbers, ("train_mode", "model", "loss"), across=("query_mode",))
    if inputs.rows == "run":
        trainings = {key: scores for key, scores in trainings.items() if key[-1]}
    groups: dict[str, list[Row]] = {title: [] for title in TRAIN_MODES.values()}
    for model in ordered_models(inputs, "idiolink_table5"):
        for (train_mode, name, loss), scores in trainings.items():
            if name == model.name:
                labels = (model.label, LOSSES.get(loss, "–"), model.parameters or "–")
                row = number_row(labels, SCORE_COLUMNS, scores)
                groups[TRAIN_MODES[train_mode]].append(row)
    metrics = load_records(inputs.metrics, IdiolinkMetrics)
    seeds = max((len(each.split()) for each in numbers["seeds"]), default=0)
    over = "1 seed" if seeds == 1 else f"{seeds} seeds (mean ± standard deviation, ddof 1)"
    tuples = {str(item.conditions.settings.get("tuples")) for item in metrics}
    notes = [_JUDGED]
    notes += [note for source, note in _TUPLES.items() if source in tuples]
    notes += notes_on(metrics)
    return scores_table(
        ("Train", "Model", "Loss", "Param"),
        groups,
        f"Fine-tuning results on IdioLink in percent, over {over}, by loss: that of"
        " equation 2, or that of the authors' code (InfoNCE over the positives of the batch,"
        " temperature 0.05). The paper does not state which loss it used for its numbers.",
        tuple(notes),
    )


def _tuned(study: ConfiguredStudy) -> DisplayInputs | None:
    models = study.settings.finetuning.models
    return study.display_inputs(given.tuned(study), "embedder", models=models) if models else None


FINETUNED_TABLE = Table(
    "idiolink_finetuned",
    "Table 5",
    "Retrieval by fine-tuned models, in percent.",
    finetuned,
    _tuned,
    finetuned_numbers,
    printed=("idiolink_table5",),
    otherwise="idiolink.finetuning.train_modes does not name it",
)


def shown_loss(ours: pd.DataFrame) -> str:
    """Return the loss for Figure 3: `released` if any model used it, otherwise `paper`.

    Claims about Table 5 also prefer the released loss (published/tables.yaml).
    """
    return "released" if "released" in set(ours["loss"]) else "paper"


def best_trainings(ours: pd.DataFrame) -> Mapping[tuple[str, str, str], Any]:
    """Return the better training mode by model, query mode and metric, for Figure 3.

    For span queries, models may have been trained on sentences or spans; as in the paper, the
    training mode with the higher mean is used. Only models trained with `shown_loss` count, if the
    scores of all their seeds are known.

    Args:
        ours: Means over seeds (see `finetuned_numbers`).

    Returns:
        Rows of the frame, by model, query mode and metric.
    """
    shown = ours[(ours["loss"] == shown_loss(ours)) & ours["ours"].notna()]
    shown = shown[shown["measure"].isin(list(METRICS))]
    best = shown.sort_values("ours", ascending=False, kind="stable")
    rows: Any = best.drop_duplicates(["model", "query_mode", "measure"]).itertuples()
    return {(row.model, row.query_mode, row.measure): row for row in rows}


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
    """Return the configured models that are in the paper."""
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
        files=list(dict.fromkeys(chain.from_iterable(of_models["files"]))),
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
