"""Build Table 5 (fine-tuning), and the average gains from instructions and spans (section 6)."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, product
from math import isnan, nan
from statistics import fmean
from typing import Any

import pandas as pd

from pieline.core.errors import pluralize
from pieline.core.measures import Measure
from pieline.core.records import load_records
from pieline.reporting.displays import ConfiguredStudy, Table
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.numbers import rows_of
from pieline.reporting.ours import OurNumbers, over_seeds
from pieline.reporting.tables import Column, Group, Row, TableContent, headers, number_row
from pieline.studies.idiolink.inputs import (
    fine_tuned_runs,
    models_of_kinds,
    models_to_rank,
    zero_shot_runs,
)
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
_NOTE_ON_VERDICTS = (
    "A mean is within sampling range, but not equal, if it lies in the 95% t interval (Welch) for"
    " the difference between our mean and the paper's of 3 seeds (with one"
    " seed of ours: in the prediction interval). A deviation is within sampling range if it lies in"
    " the F interval for the ratio of two variances; the printed deviations are tested with ddof 1"
    " and with ddof 0, and one of them is enough."
)
_NOTES_ON_TUPLES = {
    "sampled": "Trained with tuples that were sampled as described in section 4.3, not with those"
    " that the authors mined.",
    "released": "Trained with the tuples that the authors mined; those for the sentence modes are"
    " used in all training modes.",
}


def finetuned_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return our numbers for Table 5: means and standard deviations of scores over seeds."""
    return over_seeds(of_rankings(inputs))


def finetuned(numbers: pd.DataFrame, inputs: DisplayInputs) -> TableContent:
    """Lay out Table 5: R-Precision and nDCG@10 (percent) by training mode, model and query mode.

    The rows are the fine-tuned models of this run. Unless `inputs.rows` is "run", there are also
    rows for the models and training modes that are only in the paper.
    """
    scores_by_training = rows_of(numbers, ("train_mode", "model", "loss"), across=("query_mode",))
    groups: dict[str, list[Row]] = {title: [] for title in TRAIN_MODES.values()}
    for model in ordered_models(inputs, "idiolink_table5"):
        for (train_mode, trained_model, loss), scores in scores_by_training.items():
            is_of_run = bool(loss)  # the paper does not state its loss
            if trained_model == model.name and (is_of_run or inputs.rows != "run"):
                labels = (model.label, LOSSES.get(loss, "–"), model.parameters or "–")
                row = number_row(labels, SCORE_COLUMNS, scores)
                groups[TRAIN_MODES[train_mode]].append(row)
    metrics = load_records(inputs.metrics, IdiolinkMetrics)
    seed_count = count_seeds(numbers["seeds"])
    if seed_count == 1:
        seeds = "1 seed"
    else:
        seeds = f"{seed_count} seeds (mean ± standard deviation, ddof 1)"
    tuple_sources = {str(record.conditions.settings.get("tuples")) for record in metrics}
    notes = [_NOTE_ON_VERDICTS]
    notes += [note for source, note in _NOTES_ON_TUPLES.items() if source in tuple_sources]
    notes += notes_on(metrics)
    return scores_table(
        ("Train", "Model", "Loss", "Param"),
        groups,
        f"Fine-tuning results on IdioLink in percent, over {seeds}, by loss: that of"
        " equation 2, or that of the authors' code (InfoNCE over the positives of the batch,"
        " temperature 0.05). The paper does not state which loss it used for its numbers.",
        tuple(notes),
    )


def count_seeds(seeds_of_numbers: Iterable[str]) -> int:
    """Return the largest number of seeds in a string; each string lists the seeds of one mean."""
    return max((len(seeds.split()) for seeds in seeds_of_numbers), default=0)


def _fine_tuned_inputs(study: ConfiguredStudy) -> DisplayInputs | None:
    """Return inputs with all runs of fine-tuned models; None if no model is to be fine-tuned."""
    models = study.settings.finetuning.models
    if not models:
        return None
    runs = fine_tuned_runs(study, include_impossible=True)
    return study.display_inputs(runs, "embedder", models=models)


FINETUNED_TABLE = Table(
    "idiolink_finetuned",
    "Table 5",
    "Retrieval by fine-tuned models, in percent.",
    finetuned,
    _fine_tuned_inputs,
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
    """Return the numbers of each model's best training mode in each query mode, for Figure 3.

    In the span modes, a model may have been trained on sentences or on spans. As in the paper, the
    training mode with the higher mean is used, separately for each metric. Only models trained with
    the loss that `shown_loss` returns are included, and only if the scores of all their seeds are
    known.

    Args:
        ours: Means over seeds (see `finetuned_numbers`).

    Returns:
        Rows of `ours`, by model, query mode and metric.
    """
    has_shown_loss = ours["loss"] == shown_loss(ours)
    is_score = ours["measure"].isin(list(METRICS))
    candidates = ours[has_shown_loss & is_score & ours["ours"].notna()]
    best_first = candidates.sort_values("ours", ascending=False, kind="stable")
    best = best_first.drop_duplicates(["model", "query_mode", "measure"])
    rows: Any = best.itertuples()
    return {(row.model, row.query_mode, row.measure): row for row in rows}


GAINS = {
    "instruction": "instruction_sentence",
    "span": "span",
    "combined": "instruction_span",
}
"""Query mode that each gain compares with the mode `sentence`."""
_GAIN_LABELS = {"instruction": "Instructions", "span": "Span embedding", "combined": "Both"}

Scores = Mapping[tuple[str, str, str], float]
"""Scores in percent, by model, query mode and metric."""
Means = Mapping[tuple[str, str], float]
"""Mean gains in points, by gain and metric."""


def average_gains(scores: Scores, models: Sequence[str]) -> dict[tuple[str, str], float]:
    """Return the mean gains over models, in points, by gain and metric.

    A gain is omitted if a score of some model is missing, or if there are no models.
    """
    average = {}
    for (gain, mode), metric in product(GAINS.items(), METRICS):
        differences = []
        for model in models:
            score = scores.get((model, mode, metric), nan)
            sentence_score = scores.get((model, "sentence", metric), nan)
            differences.append(score - sentence_score)
        is_missing = any(isnan(difference) for difference in differences)
        if differences and not is_missing:
            average[gain, metric] = fmean(differences)
    return average


def _gain(gain: str, metric: str) -> Measure[Means]:
    return Measure(
        f"{gain}_gain_{metric}",
        lambda means: means.get((gain, metric)),
        unit="points",
        unknown="a score of some model is missing",
    )


MEASURES = [_gain(gain, metric) for gain, metric in product(GAINS, METRICS)]
"""Measures that read the mean gain in each metric from `Means`."""


def _averaged_models(inputs: DisplayInputs) -> list[str]:
    """Return the names of the configured models that are in the paper."""
    return [model.name for model in inputs.own_models() if model.published_as]


def gains_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return the average gains, in points, over the configured models that are in the paper."""
    our_scores, averaged_models = of_rankings(inputs), _averaged_models(inputs)
    rows: Any = our_scores.itertuples()
    scores = {(row.model, row.query_mode, row.measure): row.ours for row in rows}
    files_of_scores = our_scores.loc[our_scores["model"].isin(averaged_models), "files"]
    unique_files = dict.fromkeys(chain.from_iterable(files_of_scores))
    obstacles = obstacles_of(*load_records(inputs.metrics, IdiolinkMetrics))
    paper_model_count = sum(model.published_as is not None for model in inputs.models)
    if len(averaged_models) < paper_model_count:
        obstacles.append(f"over {len(averaged_models)} of the paper's {paper_model_count} models")
    numbers = OurNumbers(inputs.study)
    numbers.add(
        {},
        MEASURES,
        average_gains(scores, averaged_models),
        files=list(unique_files),
        obstacles=obstacles,
    )
    return numbers.frame()


def gains(numbers: pd.DataFrame, inputs: DisplayInputs) -> TableContent:
    """Lay out the average gains over the paper's models, in points."""
    # Without keys, `rows_of` returns a single row.
    [numbers_by_measure] = rows_of(numbers, ()).values()
    model_count = pluralize(len(_averaged_models(inputs)), "model")
    rows = []
    for gain, label in _GAIN_LABELS.items():
        columns = [Column(f"{gain}_gain_{metric}", "") for metric in METRICS]
        rows.append(number_row((label,), columns, numbers_by_measure))
    return TableContent(
        heads=(headers(["Gain", *METRICS.values()]),),
        groups=(Group(tuple(rows)),),
        caption=f"Average gains from instructions, span embedding and both over {model_count}, in"
        " points relative to the sentence embedding without instructions.",
        notes=notes_on(load_records(inputs.metrics, IdiolinkMetrics)),
        wide=False,
    )


def _zero_shot_embedders(study: ConfiguredStudy) -> DisplayInputs | None:
    """Return inputs with the embedders' zero-shot runs; None if no embedder is evaluated."""
    models = models_of_kinds(study, models_to_rank(study), "embedder")
    if not models:
        return None
    runs = zero_shot_runs(study, models)
    return study.display_inputs(runs, "embedder", models=models)


GAINS_TABLE = Table(
    "idiolink_gains",
    "Section 6",
    "Average gains by instructions and span embedding, in points.",
    gains,
    _zero_shot_embedders,
    gains_numbers,
    printed=("text_numbers",),
)
