"""Draw the figures of IdioLink."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import isnan, nan
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from pieline.core.records import load_record, load_records
from pieline.reporting.displays import NOT_IN_PAPER, ConfiguredStudy, Figure
from pieline.reporting.figures import COLUMN_WIDTH, PAGE_WIDTH, SMALLEST, add_notes
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.ours import over_seeds
from pieline.studies.idiolink.datasets.assembly import ConstructionMetrics
from pieline.studies.idiolink.datasets.composition import DatasetChecks
from pieline.studies.idiolink.inputs import (
    construction_inputs,
    data_check_inputs,
    fine_tuned_runs,
    inputs_with_metrics,
    models_of_kinds,
    models_to_fine_tune,
    models_to_rank,
    zero_shot_runs,
)
from pieline.studies.idiolink.metrics.scores import IdiolinkMetrics
from pieline.studies.idiolink.originals.pairs import FilterReport
from pieline.studies.idiolink.records import DOMAINS, QUERY_MODES, TEXTS_PER_PAIR
from pieline.studies.idiolink.tables.described import remarks_on_construction, remarks_on_texts
from pieline.studies.idiolink.tables.finetuning import (
    LOSSES,
    best_trainings,
    count_seeds,
    shown_loss,
)
from pieline.studies.idiolink.tables.significance import (
    PieMeans,
    by_pie_inputs,
    by_pie_numbers,
    gains_by_pie,
    hardest_first,
    notes_on_means,
    zero_shot_means,
)
from pieline.studies.idiolink.tables.zero_shot import METRICS, notes_on, of_rankings

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

MODE_LABELS = {
    "sentence": "sentence",
    "span": "span",
    "instruction_sentence": "instruction + sentence",
    "instruction_span": "instruction + span",
}
MODE_COLORS = {
    "sentence": "#9ecae1",
    "span": "#2171b5",
    "instruction_sentence": "#fdc086",
    "instruction_span": "#d95f0e",
}
"""Color of each query mode, distinguishable with color blindness.

The hue shows whether there is an instruction, and the lightness shows whether the sentence or its
span is embedded.
"""
MODE_MARKERS = {"sentence": "o", "span": "s", "instruction_sentence": "^", "instruction_span": "D"}
MODE_HATCHES = {
    "sentence": "",
    "span": "",
    "instruction_sentence": "//////",
    "instruction_span": "//////",
}
"""Hatch of each query mode, which distinguishes the two hues in grey print."""


def modes(inputs: DisplayInputs) -> Drawing:
    """Plot R-Precision and nDCG@10 (percent) on the full index as bars, by model and query mode.

    Error bars are bootstrap intervals over PIEs.
    """
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    models = inputs.models
    rows: Any = of_rankings(inputs).itertuples()
    score_rows = {(row.model, row.query_mode, row.measure): row for row in rows}
    size = (COLUMN_WIDTH, 0.8 + 0.48 * len(models))
    figure, axes = plt.subplots(1, len(METRICS), figsize=size, sharey=True, layout="constrained")
    for axis, (metric, title) in zip(axes, METRICS.items(), strict=True):
        for y, model in enumerate(models):
            rows_by_mode: dict[str, Any] = {
                mode: score_rows[model.name, mode, metric]
                for mode in QUERY_MODES
                if (model.name, mode, metric) in score_rows
            }
            _draw_bars_by_mode(axis, y, rows_by_mode)
        axis.set(xlim=(0, 115), xlabel=f"{title} (%)")
        axis.grid(axis="y", visible=False)
    axes[0].set_yticks(range(len(models)), ["\n".join(wrap(model.label, 16)) for model in models])
    axes[0].invert_yaxis()
    handles = [mpl.patches.Patch(**_fill(mode)) for mode in QUERY_MODES]
    labels = [MODE_LABELS[mode] for mode in QUERY_MODES]
    figure.legend(handles, labels, loc="outside upper center", ncols=2)
    add_notes(figure, _notes_on_modes(inputs))
    return figure


def _notes_on_modes(inputs: DisplayInputs) -> list[str]:
    metrics = load_records(inputs.metrics, IdiolinkMetrics)
    notes = []
    # All runs have the same queries and the same number of resamples.
    if metrics and metrics[0].intervals:
        notes.append(f"Lines: 95% bootstrap intervals over {len(metrics[0].by_pie)} PIEs.")
    return [*notes, *notes_on(metrics), *inputs.origins()]


def _draw_bars_by_mode(axis: Axes, center: int, rows_by_mode: Mapping[str, Any]) -> None:
    """Draw a model's bars, one per query mode, each with its interval and its score.

    Args:
        axis: Axes of the figure.
        center: Vertical position around which the bars are centered.
        rows_by_mode: Row of our numbers for each query mode. A mode with an unknown score has no
            bar.
    """
    bar_distance = 0.2
    middle = (len(rows_by_mode) - 1) / 2
    for place, (mode, row) in enumerate(rows_by_mode.items()):
        if isnan(row.ours):
            continue
        y = center + bar_distance * (place - middle)
        axis.barh(y, row.ours, height=0.18, **_fill(mode))
        has_interval = not isnan(row.high)
        if has_interval:
            axis.plot([row.low, row.high], [y, y], color="black", linewidth=0.8)
        right_end = row.high if has_interval else row.ours
        axis.text(right_end + 1, y, f"{row.ours:.1f}", va="center", fontsize=SMALLEST)


def _zero_shot_inputs(study: ConfiguredStudy) -> DisplayInputs | None:
    models = models_to_rank(study)
    return inputs_with_metrics(study, zero_shot_runs(study, models), models)


MODES_FIGURE = Figure(
    "idiolink_modes",
    "Section 6",
    "Each model in the four query modes, with intervals over PIEs.",
    modes,
    _zero_shot_inputs,
)


def _fill(mode: str) -> dict[str, Any]:
    """Return the appearance of a query mode's bars, as keyword arguments of matplotlib."""
    return {
        "facecolor": MODE_COLORS[mode],
        "hatch": MODE_HATCHES[mode],
        "edgecolor": "white",
        "linewidth": 0,
    }


_FILLS: dict[str, dict[str, Any]] = {
    "zero-shot": {"facecolor": "#d0d0d0", "hatch": ""},
    "trained on sentences": {"facecolor": "#2171b5", "hatch": ""},
    "trained on spans (where better)": {"facecolor": "#d95f0e", "hatch": "//////"},
}
"""Appearance of the bars for each legend label; hatches distinguish the colors in grey print."""
_BAR_WIDTH = 0.38


def finetuning(inputs: DisplayInputs) -> Drawing:
    """Plot the scores (percent) of each model before and after fine-tuning as bars.

    Panels have a row per metric and a column per query mode. Error bars are standard deviations
    over seeds. Only models trained with the loss that `shown_loss` returns are shown. Models
    without a zero-shot run have no zero-shot bars.
    """
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    ours = of_rankings(inputs)
    is_tuned = ours["train_mode"] != ""
    tuned_models = set(ours.loc[is_tuned, "model"])
    models = [model for model in inputs.models if model.name in tuned_models]
    # With a single model, the four query modes fit in a column of the page.
    width = COLUMN_WIDTH if len(models) < 2 else PAGE_WIDTH
    size = (width, (1.4 + 0.05 * len(models)) * len(METRICS))
    figure, axes = plt.subplots(
        len(METRICS), len(QUERY_MODES), figsize=size, sharey=True, layout="constrained"
    )
    keys = ["model", "query_mode", "measure"]
    zero_shot_scores = ours[~is_tuned].set_index(keys)["ours"].dropna()
    best_by_key = best_trainings(over_seeds(ours[is_tuned]))
    drawn_labels = set()
    for row_of_axes, (metric, title) in zip(axes, METRICS.items(), strict=True):
        row_of_axes[0].set_ylabel(f"{title} (%)")
        for axis, mode in zip(row_of_axes, QUERY_MODES, strict=True):
            for x, model in enumerate(models):
                key = (model.name, mode, metric)
                if key in zero_shot_scores:
                    _draw_bar(axis, x - _BAR_WIDTH / 2, zero_shot_scores[key], "zero-shot")
                    drawn_labels.add("zero-shot")
                if training := best_by_key.get(key):
                    label = _training_label(training.train_mode)
                    x_of_bar = x + _BAR_WIDTH / 2
                    _draw_bar(axis, x_of_bar, training.ours, label, training.deviation)
                    drawn_labels.add(label)
            _label_models(axis, [model.label for model in models])
            axis.set(ylim=(0, 120), yticks=range(0, 101, 20))
    for axis, mode in zip(axes[0], QUERY_MODES, strict=True):
        axis.set_title(MODE_LABELS[mode].replace(" + ", "\n+ "), fontsize=6.5)
    labels = [label for label in _FILLS if label in drawn_labels]
    handles = [mpl.patches.Patch(**_FILLS[label], edgecolor="white", lw=0) for label in labels]
    figure.legend(handles, labels, loc="outside upper center", ncols=3)
    seed_count = count_seeds(training.seeds for training in best_by_key.values())
    error_bars = f" Error bars: deviation over {seed_count} seeds." if seed_count > 1 else ""
    notes = [f"Loss of the fine-tuning: {LOSSES[shown_loss(ours)]}.{error_bars}"]
    notes += notes_on(load_records(inputs.metrics, IdiolinkMetrics))
    notes += inputs.origins()
    add_notes(figure, notes)
    return figure


def _training_label(train_mode: str) -> str:
    """Return the legend label (a key of `_FILLS`) of models trained in `train_mode`."""
    if train_mode.endswith("span"):
        return "trained on spans (where better)"
    return "trained on sentences"


def _label_models(axis: Axes, labels: Sequence[str]) -> None:
    """Label the models on the horizontal axis; the labels of two or more models are slanted."""
    axis.set_xlim(-0.6, len(labels) - 0.4)
    wrapped_labels = ["\n".join(wrap(label, 12)) for label in labels]
    axis.set_xticks(range(len(labels)), wrapped_labels, fontsize=SMALLEST)
    if len(labels) > 1:
        for tick_label in axis.get_xticklabels():
            tick_label.set(rotation=35, ha="right", rotation_mode="anchor")
    axis.grid(axis="x", visible=False)


def _fine_tuned_inputs(study: ConfiguredStudy) -> DisplayInputs | None:
    """Return inputs with the fine-tuned and zero-shot runs; None if no model is fine-tuned."""
    models = models_to_fine_tune(study)
    if not models:
        return None
    embedders = models_of_kinds(study, models_to_rank(study), "embedder")
    runs = zero_shot_runs(study, embedders) + fine_tuned_runs(study)
    return inputs_with_metrics(study, runs, models)


FINETUNING_FIGURE = Figure(
    "idiolink_finetuning",
    "Figure 3",
    "Fine-tuned models against zero-shot.",
    finetuning,
    _fine_tuned_inputs,
)


def _draw_bar(axis: Axes, x: float, score: float, label: str, deviation: float = nan) -> None:
    """Draw a bar with its score above it; `label` (a key of `_FILLS`) sets the appearance."""
    axis.bar(x, score, width=_BAR_WIDTH, **_FILLS[label], edgecolor="white", linewidth=0)
    text_height = score + 3
    if not isnan(deviation):
        axis.errorbar(x, score, yerr=deviation, color="black", linewidth=0.8, capsize=1.5)
        text_height += deviation
    text = axis.text(x, text_height, f"{score:.1f}", ha="center", va="bottom", rotation=90)
    text.set_fontsize(SMALLEST)


def flow(inputs: DisplayInputs) -> Drawing:
    """Plot the number of PIEs and of texts after each step of the construction."""
    import matplotlib.pyplot as plt

    metrics = load_record(inputs.metrics[0], ConstructionMetrics)
    report = load_record(inputs.files["filter_report"], FilterReport)
    panels = {
        "PIEs": {
            "in MAGPIE": report.pies,
            "frequent and balanced": report.candidates,
            "used": report.kept,
        },
        "documents and queries": {
            "generated": metrics.texts,
            "automatically valid": metrics.labels.get("valid", 0),
            "checked by people": metrics.gold_texts,
            "corrected": metrics.gold_corrections.corrected + metrics.silver_corrections.corrected,
        },
    }
    figure, axes = plt.subplots(
        len(panels),
        1,
        figsize=(COLUMN_WIDTH, 2.4),
        height_ratios=[len(count_by_step) for count_by_step in panels.values()],
        layout="constrained",
    )
    for axis, (title, count_by_step) in zip(axes, panels.items(), strict=True):
        counts = list(count_by_step.values())
        bars = axis.barh(range(len(counts)), counts, height=0.6, color="#2171b5")
        axis.bar_label(bars, [f"{count:,}" for count in counts], padding=2, fontsize=SMALLEST)
        axis.set_yticks(range(len(counts)), list(count_by_step))
        axis.invert_yaxis()
        axis.set(title=title, xlim=(0, 1.15 * max(1, *counts)))
        axis.grid(axis="y", visible=False)
    add_notes(figure, remarks_on_construction(metrics).notes)
    return figure


FLOW = Figure(
    "idiolink_flow",
    "Section 3.2",
    "From the PIEs of MAGPIE to documents and queries.",
    flow,
    construction_inputs,
)


def domains(inputs: DisplayInputs) -> Drawing:
    """Plot the number of documents and queries by domain and usage, as a heat map."""
    import matplotlib.pyplot as plt

    checks = load_record(inputs.metrics[0], DatasetChecks)
    collections_and_usages = [
        (collection, usage) for collection, usages in TEXTS_PER_PAIR.items() for usage in usages
    ]
    shown_domains = _domains_with_texts(checks)
    counts = []
    for domain in shown_domains:
        domain_counts = []
        for collection, usage in collections_and_usages:
            count_by_domain = checks.domain_usage.get(collection, {})
            domain_counts.append(count_by_domain.get(domain, {}).get(usage, 0))
        counts.append(domain_counts)
    figure, axis = plt.subplots(
        figsize=(COLUMN_WIDTH, 0.9 + 0.2 * len(shown_domains)), layout="constrained"
    )
    axis.imshow(counts, cmap="Blues", aspect="auto", vmin=0)
    highest_count = max((max(domain_counts) for domain_counts in counts), default=0)
    for y, domain_counts in enumerate(counts):
        for x, count in enumerate(domain_counts):
            is_on_dark_cell = count > 0.6 * highest_count
            color = "white" if is_on_dark_cell else "black"
            axis.text(x, y, f"{count:,}", ha="center", va="center", color=color)
    labels = [f"{usage}, {collection}" for collection, usage in collections_and_usages]
    axis.set_xticks(range(len(labels)), labels, fontsize=SMALLEST)
    for tick_label in axis.get_xticklabels():
        tick_label.set(rotation=35, ha="right", rotation_mode="anchor")
    axis.set_yticks(range(len(shown_domains)), shown_domains)
    axis.grid(visible=False)
    axis.tick_params(length=0)
    for side in axis.spines.values():
        side.set_visible(False)
    add_notes(figure, remarks_on_texts(checks).notes)
    return figure


def _domains_with_texts(checks: DatasetChecks) -> list[str]:
    """Return the domains that have texts: the paper's in its order, then the user's own, sorted."""
    domains_with_texts: set[str] = set()
    for counts_by_domain in checks.domain_usage.values():
        domains_with_texts.update(counts_by_domain)
    paper_domains: list[str] = [domain for domain in DOMAINS if domain in domains_with_texts]
    return paper_domains + sorted(domains_with_texts.difference(DOMAINS))


DOMAINS_FIGURE = Figure(
    "idiolink_domains",
    "Section 3.2.2",
    "Texts by domain and usage.",
    domains,
    data_check_inputs,
)


def by_pie(inputs: DisplayInputs) -> Drawing:
    """Plot the mean nDCG@10 over zero-shot models by PIE (hardest first) and query mode.

    If there are fine-tuned models, a second panel shows the mean change from fine-tuning. All means
    of a panel are over the same models. The notes list these models.
    """
    import matplotlib.pyplot as plt

    ours = by_pie_numbers(inputs)
    means, gains = zero_shot_means(ours), gains_by_pie(ours)
    pies = hardest_first(ours, means)
    panels = {"nDCG@10 (%), zero-shot": means}
    if gains.models:
        panels["nDCG@10, points gained"] = gains
    figure, rows_of_axes = plt.subplots(
        1,
        len(panels),
        figsize=(COLUMN_WIDTH, 0.9 + 0.11 * len(pies)),
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    axes = rows_of_axes[0]
    for axis, (title, panel_means) in zip(axes, panels.items(), strict=True):
        _scatter_by_mode(axis, panel_means, pies)
        axis.set_xlabel(title, fontsize=SMALLEST)
    # The first PIE is at the top.
    axes[0].set(ylim=(len(pies) - 0.4, -0.6))
    axes[0].set_yticks(range(len(pies)), pies, fontsize=SMALLEST)
    if gains.models:
        axes[1].axvline(0, color="black", linewidth=0.8)
    drawn_modes = {str(mode) for panel_means in panels.values() for mode in panel_means.values}
    _add_legend_of_modes(figure, drawn_modes)
    notes = notes_on_means(means, ours, inputs.labels())
    if gains.models:
        notes.append(_note_on_gains(gains, ours, inputs.labels()))
    notes += notes_on(load_records(inputs.metrics, IdiolinkMetrics))
    notes += inputs.origins()
    add_notes(figure, notes)
    return figure


def _note_on_gains(gains: PieMeans, ours: pd.DataFrame, labels: Mapping[str, str]) -> str:
    models = ", ".join(labels[model] for model in gains.models)
    trained_losses = sorted(set(ours["loss"]) - {""})
    losses = " and ".join(LOSSES[loss] for loss in trained_losses)
    return (
        f"Gains from fine-tuning (loss: {losses}): mean over {models}"
        " and all trainings evaluated in the query mode; those on sentences are also evaluated"
        " by span."
    )


def _scatter_by_mode(axis: Axes, means: PieMeans, pies: Sequence[str]) -> None:
    """Draw a marker for the mean of each PIE and query mode, with a row per PIE."""
    row_of_pie = {pie: row for row, pie in enumerate(pies)}
    for mode, mean_by_pie in means.values.items():
        axis.scatter(
            mean_by_pie,
            mean_by_pie.index.map(row_of_pie),
            s=14,
            marker=MODE_MARKERS[str(mode)],
            color=MODE_COLORS[str(mode)],
            edgecolors="#333333",
            linewidths=0.4,
            zorder=3,
        )


def _add_legend_of_modes(figure: Drawing, drawn_modes: Collection[str]) -> None:
    """Add a legend with the marker of each drawn query mode."""
    from matplotlib.lines import Line2D

    handles, labels = [], []
    for mode in QUERY_MODES:
        if mode in drawn_modes:
            marker = Line2D(
                [],
                [],
                marker=MODE_MARKERS[mode],
                ls="",
                ms=4,
                color=MODE_COLORS[mode],
                markeredgecolor="#333333",
                markeredgewidth=0.4,
            )
            handles.append(marker)
            labels.append(MODE_LABELS[mode])
    figure.legend(handles, labels, loc="outside upper center", ncols=2)


BY_PIE_FIGURE = Figure(
    "idiolink_by_pie",
    NOT_IN_PAPER,
    "nDCG@10 of each PIE.",
    by_pie,
    by_pie_inputs,
)
