"""Figure 3 of IdioLink: zero-shot and fine-tuned models in each query mode."""

from __future__ import annotations

from math import isnan, nan
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from pieline.core.records import load_records
from pieline.reporting.displays import ConfiguredStudy, Figure
from pieline.reporting.figures import COLUMN_WIDTH, PAGE_WIDTH, SMALLEST, add_notes
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.ours import over_seeds
from pieline.studies.idiolink import inputs as given
from pieline.studies.idiolink.figures.modes import MODE_LABELS
from pieline.studies.idiolink.metrics.scores import IdiolinkMetrics
from pieline.studies.idiolink.records import QUERY_MODES
from pieline.studies.idiolink.tables.finetuning import LOSSES, best_trainings, shown_loss
from pieline.studies.idiolink.tables.zero_shot import METRICS, notes_on, of_rankings

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

_FILLS: dict[str, dict[str, Any]] = {
    "zero-shot": {"facecolor": "#d0d0d0", "hatch": ""},
    "trained on sentences": {"facecolor": "#2171b5", "hatch": ""},
    "trained on spans (where better)": {"facecolor": "#d95f0e", "hatch": "//////"},
}
"""Appearance of the bars by their label; the hatch distinguishes the colors in grey print."""
_WIDTH = 0.38


def finetuning(inputs: DisplayInputs) -> Drawing:
    """Plot both metrics (percent) by model as bars, with a row per metric and a column per mode.

    Error bars are standard deviations over seeds; `shown_loss` selects the loss. Models without a
    zero-shot run have no zero-shot bars.
    """
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    ours = of_rankings(inputs)
    is_tuned = ours["train_mode"] != ""
    zero_shot = ours[~is_tuned].set_index(["model", "query_mode", "measure"])["ours"].dropna()
    best = best_trainings(over_seeds(ours[is_tuned]))
    shown = [model for model in inputs.models if model.name in {*ours.loc[is_tuned, "model"]}]
    # With few models, a row of modes fits in a column.
    width = COLUMN_WIDTH if len(shown) < 2 else PAGE_WIDTH
    figure, axes = plt.subplots(
        2, 4, figsize=(width, 2.8 + 0.1 * len(shown)), sharey=True, layout="constrained"
    )
    drawn = set()
    for row, (metric, title) in zip(axes, METRICS.items(), strict=True):
        row[0].set_ylabel(f"{title} (%)")
        for axis, mode in zip(row, QUERY_MODES, strict=True):
            for place, model in enumerate(shown):
                key = (model.name, mode, metric)
                if key in zero_shot:
                    drawn.add(_bar(axis, place - _WIDTH / 2, zero_shot[key], "zero-shot"))
                if trained := best.get(key):
                    by_span = trained.train_mode.endswith("span")
                    fill = f"trained on {'spans (where better)' if by_span else 'sentences'}"
                    end = place + _WIDTH / 2
                    drawn.add(_bar(axis, end, trained.ours, fill, trained.deviation))
            axis.set(xlim=(-0.6, len(shown) - 0.4), ylim=(0, 120), yticks=range(0, 101, 20))
            names = ["\n".join(wrap(model.label, 12)) for model in shown]
            axis.set_xticks(range(len(shown)), names, fontsize=SMALLEST)
            if len(shown) > 1:
                for label in axis.get_xticklabels():
                    label.set(rotation=35, ha="right", rotation_mode="anchor")
            axis.grid(axis="x", visible=False)
            if metric == next(iter(METRICS)):
                axis.set_title(MODE_LABELS[mode].replace(" + ", "\n+ "), fontsize=6.5)
    labels = [label for label in _FILLS if label in drawn]
    handles = [mpl.patches.Patch(**_FILLS[label], edgecolor="white", lw=0) for label in labels]
    figure.legend(handles, labels, loc="outside upper center", ncols=3)
    seeds = max((len(trained.seeds.split()) for trained in best.values()), default=0)
    error_bars = f" Error bars: deviation over {seeds} seeds." if seeds > 1 else ""
    notes = [
        f"Loss of the fine-tuning: {LOSSES[shown_loss(ours)]}.{error_bars}",
        *notes_on(load_records(inputs.metrics, IdiolinkMetrics)),
        *inputs.origins(),
    ]
    add_notes(figure, notes)
    return figure


def _tuned(study: ConfiguredStudy) -> DisplayInputs | None:
    if not (models := given.tuned_bases(study)):
        return None
    tuned = [run for run in given.tuned(study) if not run.lacks]
    embedders = given.of_kinds(study, given.ranked(study), "embedder")
    return given.shown(study, [*given.zero_shot(study, embedders), *tuned], models)


FINETUNING_FIGURE = Figure(
    "idiolink_finetuning",
    "Figure 3",
    "Fine-tuned models against zero-shot.",
    finetuning,
    _tuned,
)


def _bar(axis: Axes, place: float, value: float, label: str, deviation: float = nan) -> str:
    """Draw a bar with the appearance of its label, and return the label."""
    axis.bar(place, value, width=_WIDTH, **_FILLS[label], edgecolor="white", linewidth=0)
    if not isnan(deviation):
        axis.errorbar(place, value, yerr=deviation, color="black", linewidth=0.8, capsize=1.5)
    end = value + 3 + (0 if isnan(deviation) else deviation)
    text = axis.text(place, end, f"{value:.1f}", ha="center", va="bottom", rotation=90)
    text.set_fontsize(SMALLEST)
    return label
