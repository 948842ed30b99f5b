"""Figure 3 of IdioLink: zero-shot and fine-tuned models in each query mode."""

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pieline.core.records import load_records
from pieline.reporting.inputs import DisplayInputs
from pieline.studies.idiolink.figures.modes import MODE_LABELS
from pieline.studies.idiolink.metrics.scores import IdiolinkMetrics
from pieline.studies.idiolink.records import QUERY_MODES
from pieline.studies.idiolink.tables.by_pie import is_fine_tuned
from pieline.studies.idiolink.tables.finetuning import LOSSES, Tuned, best_trainings, shown_loss
from pieline.studies.idiolink.tables.zero_shot import METRICS, notes_on, score_pct

_ZERO_SHOT = "#c7c7c7"
_TRAINED = {"sentence": "#2171b5", "span": "#d95f0e"}
_WIDTH = 0.38


def finetuning(inputs: DisplayInputs) -> Figure:
    """Plot both metrics (percent) by model as bars, with a row per metric and a column per mode.

    Error bars are standard deviations over seeds; `shown_loss` selects the loss. Models without a
    zero-shot run have no zero-shot bars.
    """
    metrics = load_records(inputs.metrics, IdiolinkMetrics)
    zero_shot = [item for item in metrics if not is_fine_tuned(item.model)]
    fine_tuned = [item for item in metrics if is_fine_tuned(item.model)]
    best = best_trainings(fine_tuned)
    plain = {(item.model, item.query_mode): item for item in zero_shot}
    trained = {Tuned.parse(item.model).model for item in fine_tuned}
    shown = [model for model in inputs.models if model.name in trained]
    figure, axes = plt.subplots(
        2, 4, figsize=(7.2, 3.6 + 0.1 * len(shown)), sharey=True, layout="constrained"
    )
    for row, (metric, title) in zip(axes, METRICS.items(), strict=True):
        row[0].set_ylabel(f"{title} (%)")
        for axis, mode in zip(row, QUERY_MODES, strict=True):
            for place, model in enumerate(shown):
                value = score_pct(plain.get((model.name, mode)), metric)
                if value is not None:
                    _bar(axis, place - _WIDTH / 2, value, _ZERO_SHOT)
                if training := best.get((model.name, mode, metric)):
                    train_mode, over_seeds = training
                    color = _TRAINED["span" if train_mode.endswith("span") else "sentence"]
                    _bar(axis, place + _WIDTH / 2, over_seeds.mean, color, over_seeds.deviation)
            axis.set(xlim=(-0.6, len(shown) - 0.4), ylim=(0, 120))
            axis.set_xticks(range(len(shown)), [model.label for model in shown], fontsize=6)
            if len(shown) > 2:
                for label in axis.get_xticklabels():
                    label.set(rotation=35, ha="right", rotation_mode="anchor")
            axis.grid(axis="x", visible=False)
            if metric == next(iter(METRICS)):
                axis.set_title(MODE_LABELS[mode], fontsize=8)
    handles = [mpl.patches.Patch(color=color) for color in (_ZERO_SHOT, *_TRAINED.values())]
    labels = ["zero-shot", "trained on sentences", "trained on spans (where better)"]
    figure.legend(handles, labels, loc="outside upper center", ncols=3)
    loss = LOSSES[shown_loss(fine_tuned)]
    seeds = max((over_seeds.seeds for _, over_seeds in best.values()), default=0)
    error_bars = f" Error bars: deviation over {seeds} seeds." if seeds > 1 else ""
    notes = [f"Loss of the fine-tuning: {loss}.{error_bars}", *notes_on(metrics)]
    figure.supxlabel("\n".join(notes), fontsize=6, color="#666666")
    return figure


def _bar(
    axis: Axes, place: float, value: float, color: str, deviation: float | None = None
) -> None:
    axis.bar(place, value, width=_WIDTH, color=color)
    if deviation is not None:
        axis.errorbar(place, value, yerr=deviation, color="black", linewidth=0.8, capsize=1.5)
    end = value + 3 + (deviation or 0)
    axis.text(place, end, f"{value:.1f}", ha="center", va="bottom", rotation=90, fontsize=5.5)
