"""Table of scores by PIE, model and query mode (not in the paper)."""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from math import inf
from statistics import fmean
from typing import NamedTuple, TypeVar

from pieline.reporting.columns import Column, Source, cell, records_of, sources
from pieline.reporting.displays import NOT_IN_PAPER, ConfiguredStudy, Table
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.printed import rounded
from pieline.reporting.tables import Cell, Group, Head, Number, Row, TableContent
from pieline.studies.idiolink import inputs as given
from pieline.studies.idiolink.metrics.scores import IdiolinkMetrics
from pieline.studies.idiolink.records import QUERY_MODES
from pieline.studies.idiolink.tables.zero_shot import (
    METRICS,
    UNKNOWN,
    mode_label,
    notes_on,
    obstacles_of,
)

K = TypeVar("K", bound=Hashable)
PieScores = dict[tuple[str, str, str, str], float]
"""Mean scores over seeds (percent) by PIE, model, query mode and metric, without unknown scores."""


class PieMeans(NamedTuple):
    """Means over models by PIE and query mode; every mean is over the same models.

    Attributes:
        values: Means by PIE and query mode.
        models: Names of the averaged models.
        modes: Query modes with means.
    """

    values: dict[tuple[str, str], float]
    models: list[str]
    modes: list[str]


def scores_by_pie(metrics: Sequence[IdiolinkMetrics]) -> PieScores:
    """Return the scores of each PIE, averaged over the seeds of a model.

    The mean is unknown if the score of any seed is.
    """
    values = [
        ((pie, item.model, item.query_mode, metric), getattr(scores, metric))
        for item in metrics
        for pie, scores in item.by_pie.items()
        for metric in METRICS
    ]
    unknown = {key for key, value in values if value is None}
    return _means((key, 100 * value) for key, value in values if key not in unknown)


def is_fine_tuned(model: str) -> bool:
    """Return whether a name is that of a fine-tuned model (base+training mode+loss)."""
    return "+" in model


def hardest_first(metrics: Sequence[IdiolinkMetrics], means: PieMeans) -> list[str]:
    """Sort PIEs by their mean over the query modes of `means`, lowest first.

    PIEs without means come last.
    """
    over_modes = _means((pie, value) for (pie, _), value in means.values.items())
    pies = {pie for item in metrics for pie in item.by_pie}
    return sorted(pies, key=lambda pie: (over_modes.get(pie, inf), pie))


def zero_shot_means(scores: PieScores) -> PieMeans:
    """Return the mean nDCG@10 (percent) over zero-shot models, by PIE and query mode."""
    return _over_same_models(
        {
            (pie, model, mode): value
            for (pie, model, mode, metric), value in scores.items()
            if metric == "ndcg_at_10" and not is_fine_tuned(model)
        }
    )


def gains_by_pie(scores: PieScores) -> PieMeans:
    """Return the mean change in nDCG@10 from fine-tuning, in points, by PIE and query mode.

    Each fine-tuned model is compared with its zero-shot base model in the same mode, if both were
    run. The change of a base model is the mean over its trainings that are evaluated in the mode.
    """
    return _over_same_models(
        _means(
            ((pie, base, mode), value - before)
            for (pie, model, mode, metric), value in scores.items()
            if metric == "ndcg_at_10" and is_fine_tuned(model)
            for base in [model.split("+")[0]]
            if (before := scores.get((pie, base, mode, metric))) is not None
        )
    )


def _over_same_models(values: Mapping[tuple[str, str, str], float]) -> PieMeans:
    """Average values by PIE, model and query mode over models.

    The modes are those of the model with the most modes. Only models with a value for every PIE in
    all these modes are averaged, because otherwise modes would differ by their models.
    """
    pies = {pie for pie, _, _ in values}
    modes_of = defaultdict[str, set[str]](set)
    for (model, mode), known in Counter(key[1:] for key in values).items():
        if known == len(pies):
            modes_of[model].add(mode)
    most = max(modes_of.values(), key=len, default=set())
    models = [model for model, modes in modes_of.items() if modes >= most]
    return PieMeans(
        _means(
            ((pie, mode), value)
            for (pie, model, mode), value in values.items()
            if model in models and mode in most
        ),
        models,
        [mode for mode in QUERY_MODES if mode in most],
    )


def _means(values: Iterable[tuple[K, float]]) -> dict[K, float]:
    """Return the mean of the values of each key."""
    groups = defaultdict(list)
    for key, value in values:
        groups[key].append(value)
    return {key: fmean(members) for key, members in groups.items()}


def notes_on_means(
    means: PieMeans, metrics: Iterable[IdiolinkMetrics], labels: Mapping[str, str]
) -> list[str]:
    """Return notes that name the averaged zero-shot models, and those that are not averaged."""
    zero_shot = dict.fromkeys(item.model for item in metrics if not is_fine_tuned(item.model))
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


def by_pie(inputs: DisplayInputs) -> TableContent:
    """Build the table of mean nDCG@10 (percent) over zero-shot models by PIE, hardest first.

    The CSV has both metrics of every model.
    """
    runs = sources(inputs, IdiolinkMetrics, ["model", "query_mode"], obstacles_of)
    metrics = records_of(runs)
    scores = scores_by_pie(metrics)
    obstacles = obstacles_of(*metrics)
    means = zero_shot_means(scores)

    def numbers(rank: str, pie: str) -> Iterator[Number]:
        for (model, mode), source in runs.items():
            for metric in METRICS:
                key = {"difficulty_rank": rank, "pie": pie, **source.key}
                ours = scores.get((pie, model, mode, metric))
                of_pie = Source(key, [ours], source.files, obstacles=obstacles)
                column = Column[float | None](metric, "", lambda score: score, unknown=UNKNOWN)
                yield from cell(column, of_pie).numbers()

    rows = [
        Row(
            (rank, pie),
            tuple(Cell(text=rounded(means.values.get((pie, mode)), 2)) for mode in means.modes),
            unseen=tuple(numbers(rank, pie)),
        )
        for rank, pie in zip(map(str, count(1)), hardest_first(metrics, means), strict=False)
    ]
    return TableContent(
        heads=((Head("Rank"), Head("PIE"), *(Head(mode_label(mode)) for mode in means.modes)),),
        groups=(Group(tuple(rows)),),
        caption="nDCG@10 of each PIE by query mode in percent, the mean over zero-shot models with"
        " all these modes; the hardest PIE comes first.",
        notes=(*notes_on_means(means, metrics, inputs.labels()), *notes_on(metrics)),
        long=True,
    )


def by_pie_inputs(study: ConfiguredStudy) -> DisplayInputs | None:
    """Return inputs with all zero-shot and fine-tuned runs; None without zero-shot ones."""
    if not (zero_shot := given.of_ranked(study)):
        return None
    metrics = [*zero_shot, *given.tuned_metrics(study)]
    return given.shown(study, metrics, given.ranked(study))


BY_PIE_TABLE = Table(
    "idiolink_by_pie",
    NOT_IN_PAPER,
    "R-Precision and nDCG@10 of each PIE.",
    by_pie,
    by_pie_inputs,
)
