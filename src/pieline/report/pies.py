"""Which PIEs are hard: scores by PIE, over models and query modes. Not in the paper."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from pieline.metrics.idiolink import IdiolinkMetrics
from pieline.published import Comparison, compare, write_comparisons
from pieline.report.figures import MODE_COLOURS, MODE_LABELS
from pieline.report.idiolink import METRICS, NOT_RELEASED, QUERY_MODES
from pieline.report.models import SAMPLE_NOTE

PieScores = dict[tuple[str, str, str, str], float]
"""Per cent by PIE, model, query mode and metric; means over seeds."""


def scores_by_pie(metrics: Sequence[IdiolinkMetrics]) -> PieScores:
    """Scores of each PIE, averaged over a model's seeds."""
    values = defaultdict(list)
    for item in metrics:
        for pie, scores in item.by_pie.items():
            for metric in METRICS:
                value = getattr(scores, metric)
                if value is not None:
                    values[pie, item.model, item.query_mode, metric].append(100 * value)
    return {key: fmean(found) for key, found in values.items()}


def hardest_first(scores: PieScores) -> list[str]:
    """PIEs by their mean nDCG@10 over all models and query modes, the lowest first."""
    values = defaultdict(list)
    for (pie, _, _, metric), value in scores.items():
        if metric == "ndcg_at_10":
            values[pie].append(value)
    return sorted(values, key=lambda pie: (fmean(values[pie]), pie))


def write_pies(metrics: Sequence[IdiolinkMetrics], csv: str | Path) -> None:
    """Every PIE's scores (per cent), the hardest PIE first, as CSV."""
    scores = scores_by_pie(metrics)
    released = all(item.dataset_is_released for item in metrics)
    obstacles = [] if released else [NOT_RELEASED]
    names = list(dict.fromkeys((item.model, item.query_mode) for item in metrics))
    rows: list[tuple[Mapping[str, str], Comparison]] = []
    for rank, pie in enumerate(hardest_first(scores), start=1):
        for model, mode in names:
            for metric in METRICS:
                key = {"difficulty_rank": str(rank), "pie": pie, "model": model}
                key |= {"query_mode": mode, "metric": metric}
                value = scores.get((pie, model, mode, metric))
                rows.append((key, compare(value, None, obstacles=obstacles)))
    write_comparisons(csv, rows, decimals=2)


def draw_pies(metrics: Sequence[IdiolinkMetrics]) -> Figure:
    """nDCG@10 of each PIE by query mode: a dot a mode, the mean over models, hardest PIE on top.

    Diamonds are the mean over fine-tuned models.
    """
    scores = scores_by_pie(metrics)
    pies = hardest_first(scores)
    figure, axis = plt.subplots(figsize=(5.4, 1.4 + 0.13 * len(pies)), layout="constrained")
    modes = [mode for mode in QUERY_MODES if any(item.query_mode == mode for item in metrics)]
    for tuned, marker in ((False, "o"), (True, "D")):
        for mode in modes:
            means = {}
            for place, pie in enumerate(pies):
                found = [
                    value
                    for (name, model, query_mode, metric), value in scores.items()
                    if (name, query_mode, metric) == (pie, mode, "ndcg_at_10")
                    and ("+" in model) == tuned
                ]
                if found:
                    means[place] = fmean(found)
            if means:
                label = f"{MODE_LABELS[mode]}{', fine-tuned' if tuned else ''}"
                axis.scatter(
                    list(means.values()),
                    list(means),
                    s=14 if tuned else 18,
                    marker=marker,
                    color=MODE_COLOURS[mode],
                    edgecolors="black" if tuned else "none",
                    linewidths=0.5,
                    label=label,
                    zorder=3,
                )
    axis.set_yticks(range(len(pies)), pies, fontsize=6)
    axis.set(xlim=(-2, 102), ylim=(len(pies) - 0.4, -0.6), xlabel="nDCG@10 (%), mean over models")
    figure.legend(loc="outside upper center", ncols=2)
    if not all(item.dataset_is_released for item in metrics):
        figure.supxlabel(SAMPLE_NOTE, fontsize=5, color="#666666")
    return figure
