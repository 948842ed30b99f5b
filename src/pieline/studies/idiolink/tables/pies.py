"""Which PIEs are hard: scores by PIE, over models and query modes. Not in the paper."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from pieline.reporting.models import SAMPLE_NOTE
from pieline.reporting.printed import Comparison, compare, write_comparisons
from pieline.studies.idiolink.figures.modes import MODE_COLOURS, MODE_LABELS
from pieline.studies.idiolink.metrics.scores import IdiolinkMetrics
from pieline.studies.idiolink.tables.zero_shot import METRICS, NOT_RELEASED, QUERY_MODES

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


def is_fine_tuned(model: str) -> bool:
    """Whether a model's name is model+training mode+loss."""
    return "+" in model


def hardest_first(scores: PieScores) -> list[str]:
    """PIEs by their mean nDCG@10 over zero-shot models and query modes, the lowest first.

    Fine-tuned models do not count: only some models are trained, and in some modes.
    """
    values = defaultdict(list)
    for (pie, model, _, metric), value in scores.items():
        if metric == "ndcg_at_10" and not is_fine_tuned(model):
            values[pie].append(value)
    return sorted(values, key=lambda pie: (fmean(values[pie]), pie))


def gains_by_pie(scores: PieScores) -> dict[tuple[str, str], float]:
    """What fine-tuning changes in nDCG@10 (points) by PIE and query mode, on average.

    Each fine-tuned model is set against the same model without fine-tuning in the same mode; where
    that was not run there is no gain to tell.
    """
    gains = defaultdict(list)
    for (pie, model, mode, metric), value in scores.items():
        before = scores.get((pie, model.split("+")[0], mode, metric))
        if metric == "ndcg_at_10" and is_fine_tuned(model) and before is not None:
            gains[pie, mode].append(value - before)
    return {key: fmean(found) for key, found in gains.items()}


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
    """nDCG@10 of each PIE by query mode, the hardest PIE on top: a dot a mode, mean over models.

    A second panel shows what fine-tuning changes, each model against itself.
    """
    scores = scores_by_pie(metrics)
    pies = hardest_first(scores)
    place = {pie: number for number, pie in enumerate(pies)}
    zero_shot = defaultdict(list)
    for (pie, model, mode, metric), value in scores.items():
        if metric == "ndcg_at_10" and not is_fine_tuned(model):
            zero_shot[pie, mode].append(value)
    panels = [("zero-shot: nDCG@10 (%)", {key: fmean(found) for key, found in zero_shot.items()})]
    if gains := gains_by_pie(scores):
        panels.append(("fine-tuning: change in points", gains))
    figure, axes = plt.subplots(
        1,
        len(panels),
        figsize=(3.0 + 2.1 * len(panels), 1.4 + 0.13 * len(pies)),
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    for axis, (title, values) in zip(axes[0], panels, strict=True):
        for mode in QUERY_MODES:
            found = {pie: value for (pie, name), value in values.items() if name == mode}
            axis.scatter(
                list(found.values()),
                [place[pie] for pie in found],
                s=18,
                color=MODE_COLOURS[mode],
                zorder=3,
            )
        axis.set_xlabel(title)
    axes[0][0].set(xlim=(-2, 102), ylim=(len(pies) - 0.4, -0.6))
    axes[0][0].set_yticks(range(len(pies)), pies, fontsize=6)
    if len(panels) > 1:
        axes[0][1].axvline(0, color="black", linewidth=0.8)
    modes = [mode for mode in QUERY_MODES if any(item.query_mode == mode for item in metrics)]
    handles = [mpl.lines.Line2D([], [], marker="o", ls="", color=MODE_COLOURS[m]) for m in modes]
    figure.legend(handles, [MODE_LABELS[m] for m in modes], loc="outside upper center", ncols=4)
    if not all(item.dataset_is_released for item in metrics):
        figure.supxlabel(SAMPLE_NOTE, fontsize=5, color="#666666")
    return figure
