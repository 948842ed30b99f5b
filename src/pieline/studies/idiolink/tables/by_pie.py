"""Table of scores by PIE, model and query mode (not in the paper)."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import count
from math import inf
from statistics import fmean
from typing import TypeVar

from pieline.reporting.columns import Column, Source, cell, records_of, sources
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.printed import rounded
from pieline.reporting.tables import Cell, Group, Head, Number, Row, TableContent
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


def scores_by_pie(metrics: Sequence[IdiolinkMetrics]) -> PieScores:
    """Return the scores of each PIE, averaged over the seeds of a model."""
    return _means(
        ((pie, item.model, item.query_mode, metric), 100 * value)
        for item in metrics
        for pie, scores in item.by_pie.items()
        for metric in METRICS
        if (value := getattr(scores, metric)) is not None
    )


def is_fine_tuned(model: str) -> bool:
    """Return whether a name is that of a fine-tuned model (base+training mode+loss)."""
    return "+" in model


def hardest_first(metrics: Sequence[IdiolinkMetrics]) -> list[str]:
    """Sort PIEs by mean nDCG@10 over zero-shot models and query modes, lowest first.

    Fine-tuned models are excluded, because only some models are trained, and only in some modes.
    PIEs with unknown scores come last.
    """
    means = _means(
        (pie, value)
        for (pie, model, _, metric), value in scores_by_pie(metrics).items()
        if metric == "ndcg_at_10" and not is_fine_tuned(model)
    )
    pies = {pie for item in metrics for pie in item.by_pie}
    return sorted(pies, key=lambda pie: (means.get(pie, inf), pie))


def zero_shot_means(scores: PieScores) -> dict[tuple[str, str], float]:
    """Return the mean nDCG@10 (percent) over zero-shot models, by PIE and query mode."""
    return _means(
        ((pie, mode), value)
        for (pie, model, mode, metric), value in scores.items()
        if metric == "ndcg_at_10" and not is_fine_tuned(model)
    )


def gains_by_pie(scores: PieScores) -> dict[tuple[str, str], float]:
    """Return the mean change in nDCG@10 from fine-tuning, in points, by PIE and query mode.

    Each fine-tuned model is compared with its zero-shot base model in the same mode, if both were
    run.
    """
    return _means(
        ((pie, mode), value - before)
        for (pie, model, mode, metric), value in scores.items()
        if metric == "ndcg_at_10" and is_fine_tuned(model)
        if (before := scores.get((pie, model.split("+")[0], mode, metric))) is not None
    )


def _means(values: Iterable[tuple[K, float]]) -> dict[K, float]:
    """Return the mean of the values of each key."""
    groups = defaultdict(list)
    for key, value in values:
        groups[key].append(value)
    return {key: fmean(members) for key, members in groups.items()}


def by_pie(inputs: DisplayInputs) -> TableContent:
    """Build the table of mean nDCG@10 (percent) over zero-shot models by PIE, hardest first.

    The CSV has both metrics of every model.
    """
    runs = sources(inputs, IdiolinkMetrics, ["model", "query_mode"], obstacles_of)
    metrics = records_of(runs)
    scores = scores_by_pie(metrics)
    obstacles = obstacles_of(*metrics)
    means = zero_shot_means(scores)
    zero_shot = {mode for model, mode in runs if not is_fine_tuned(model)}
    modes = [mode for mode in QUERY_MODES if mode in zero_shot]

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
            tuple(Cell(text=rounded(means.get((pie, mode)), 2)) for mode in modes),
            unseen=tuple(numbers(rank, pie)),
        )
        for rank, pie in zip(map(str, count(1)), hardest_first(metrics), strict=False)
    ]
    return TableContent(
        heads=((Head("Rank"), Head("PIE"), *(Head(mode_label(mode)) for mode in modes)),),
        groups=(Group(tuple(rows)),),
        caption="nDCG@10 of each PIE by query mode in percent, the mean over zero-shot models; the"
        " hardest PIE comes first.",
        notes=notes_on(metrics),
        long=True,
    )
