"""Table of scores by PIE, model and query mode (not in the paper)."""

from collections.abc import Mapping
from typing import NamedTuple

import pandas as pd

from pieline.core.records import load_records
from pieline.reporting.displays import NOT_IN_PAPER, ConfiguredStudy, Table
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.ours import OurNumbers, over_seeds
from pieline.reporting.printed import rounded
from pieline.reporting.tables import Cell, Group, Head, Row, TableContent
from pieline.studies.idiolink import inputs as given
from pieline.studies.idiolink.metrics.ranking import RANKING
from pieline.studies.idiolink.metrics.scores import IdiolinkMetrics
from pieline.studies.idiolink.records import QUERY_MODES
from pieline.studies.idiolink.tables.zero_shot import mode_label, notes_on, obstacles_of, run_of


class PieMeans(NamedTuple):
    """Means over models; every mean is over the same models.

    Attributes:
        values: Means by PIE (rows) and query mode (columns).
        models: Names of the averaged models.
    """

    values: pd.DataFrame
    models: list[str]


def by_pie_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return the scores of each PIE; those of fine-tuned models are means over seeds."""
    numbers = OurNumbers(inputs.study)
    records = load_records(inputs.metrics, IdiolinkMetrics)
    for item, path in zip(records, inputs.metrics, strict=True):
        obstacles = obstacles_of(item)
        for pie, scores in item.by_pie.items():
            keys = {**run_of(item), "scope": pie}
            numbers.add(keys, RANKING, scores, files=[path], obstacles=obstacles)
    frame = numbers.frame()
    is_tuned = frame["train_mode"] != ""
    return pd.concat([frame[~is_tuned], over_seeds(frame[is_tuned])], ignore_index=True)


def hardest_first(ours: pd.DataFrame, means: PieMeans) -> list[str]:
    """Sort PIEs by their mean over the query modes of `means`, lowest first.

    PIEs without means come last.
    """
    over_modes = means.values.mean(axis="columns").reindex(sorted({*ours["scope"]}))
    return [*over_modes.sort_values(kind="stable").index]


def zero_shot_means(ours: pd.DataFrame) -> PieMeans:
    """Return the mean nDCG@10 (percent) over zero-shot models, by PIE and query mode."""
    return _over_same_models(_ndcg(ours, is_tuned=False))


def gains_by_pie(ours: pd.DataFrame) -> PieMeans:
    """Return the mean change in nDCG@10 from fine-tuning, in points, by PIE and query mode.

    Each fine-tuned model is compared with its zero-shot base model in the same mode, if both were
    run. The change of a base model is the mean over its trainings that are evaluated in the mode.
    """
    tuned = _ndcg(ours, is_tuned=True)
    tuned = tuned.groupby(tuned.index.names, sort=False).mean()
    return _over_same_models(tuned - _ndcg(ours, is_tuned=False).reindex(tuned.index))


def _ndcg(ours: pd.DataFrame, *, is_tuned: bool) -> "pd.Series[float]":
    """Return the nDCG@10 of zero-shot or fine-tuned models, by model, query mode and PIE."""
    rows = ours[(ours["measure"] == "ndcg_at_10") & ((ours["train_mode"] != "") == is_tuned)]
    return rows.set_index(["model", "query_mode", "scope"])["ours"]


def _over_same_models(values: "pd.Series[float]") -> PieMeans:
    """Average values by model, query mode and PIE over models.

    The modes are those of the model with the most modes. Only models with a value for every PIE in
    all these modes are averaged, because otherwise modes would differ by their models.
    """
    complete = values.dropna().unstack("scope").dropna()
    modes_of: dict[str, set[str]] = {name: set() for name in values.index.unique("model")}
    for model, mode in complete.index:
        modes_of[model].add(mode)
    most = max(modes_of.values(), key=len, default=set())
    models = [model for model, modes in modes_of.items() if most and modes >= most]
    averaged = complete[complete.index.isin(models, level="model")]
    means = averaged.groupby(level="query_mode").mean()
    return PieMeans(means.reindex([mode for mode in QUERY_MODES if mode in most]).T, models)


def notes_on_means(means: PieMeans, ours: pd.DataFrame, labels: Mapping[str, str]) -> list[str]:
    """Return notes that name the averaged zero-shot models, and those that are not averaged."""
    zero_shot = ours.loc[ours["train_mode"] == "", "model"].unique()
    averaged = ", ".join(labels[name] for name in means.models) or "no model"
    others = ", ".join(labels[name] for name in zero_shot if name not in means.models)
    return [
        f"Every zero-shot mean is over the same models: {averaged}.",
        *(
            [f"Not averaged, because a query mode or a score is missing: {others}."]
            if others
            else []
        ),
    ]


def by_pie(numbers: pd.DataFrame, inputs: DisplayInputs) -> TableContent:
    """Lay out the mean nDCG@10 (percent) over zero-shot models by PIE, hardest first.

    The frame has both metrics of every model.
    """
    means = zero_shot_means(numbers)
    rows = [
        Row(
            (str(rank), pie),
            tuple(Cell(text=rounded(of_modes.get(pie), 2)) for _, of_modes in means.values.items()),
        )
        for rank, pie in enumerate(hardest_first(numbers, means), start=1)
    ]
    return TableContent(
        heads=((*map(Head, ("Rank", "PIE", *map(mode_label, means.values.columns))),),),
        groups=(Group(tuple(rows)),),
        caption="nDCG@10 of each PIE by query mode in percent, the mean over zero-shot models with"
        " all these modes; the hardest PIE comes first.",
        notes=(
            *notes_on_means(means, numbers, inputs.labels()),
            *notes_on(load_records(inputs.metrics, IdiolinkMetrics)),
        ),
        long=True,
    )


def by_pie_inputs(study: ConfiguredStudy) -> DisplayInputs | None:
    """Return inputs with all zero-shot and fine-tuned runs; None without zero-shot ones."""
    ranked = given.ranked(study)
    if not (zero_shot := given.zero_shot(study, ranked)):
        return None
    tuned = [run for run in given.tuned(study) if not run.lacks]
    return given.shown(study, [*zero_shot, *tuned], ranked)


BY_PIE_TABLE = Table(
    "idiolink_by_pie",
    NOT_IN_PAPER,
    "R-Precision and nDCG@10 of each PIE.",
    by_pie,
    by_pie_inputs,
    by_pie_numbers,
)
