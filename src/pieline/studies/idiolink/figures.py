"""Figures of IdioLink."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import chain
from math import isnan, nan
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from pieline.core.records import load_record, load_records
from pieline.reporting.displays import NOT_IN_PAPER, ConfiguredStudy, Figure
from pieline.reporting.figures import COLUMN_WIDTH, PAGE_WIDTH, SMALLEST, add_notes
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.ours import over_seeds
from pieline.studies.idiolink import inputs as given
from pieline.studies.idiolink.datasets.assembly import ConstructionMetrics
from pieline.studies.idiolink.datasets.composition import DatasetChecks
from pieline.studies.idiolink.metrics.scores import IdiolinkMetrics
from pieline.studies.idiolink.originals.pairs import FilterReport
from pieline.studies.idiolink.records import DOMAINS, QUERY_MODES, TEXTS_PER_PAIR
from pieline.studies.idiolink.tables.described import about_data, about_texts
from pieline.studies.idiolink.tables.finetuning import LOSSES, best_trainings, shown_loss
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
"""Colors safe for color blindness: hue encodes the instruction, lightness the embedding."""
MODE_MARKERS = {"sentence": "o", "span": "s", "instruction_sentence": "^", "instruction_span": "D"}
MODE_HATCHES = {
    "sentence": "",
    "span": "",
    "instruction_sentence": "//////",
    "instruction_span": "//////",
}
"""Hatches distinguish the two hues in grey print."""


def modes(inputs: DisplayInputs) -> Drawing:
    """Plot both metrics (percent) as bars by model and query mode, for the full index.

    Error bars are bootstrap intervals over PIEs.
    """
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    metrics, models = load_records(inputs.metrics, IdiolinkMetrics), inputs.models
    rows: Any = of_rankings(inputs).itertuples()
    scores = {(row.model, row.query_mode, row.measure): row for row in rows}
    size = (COLUMN_WIDTH, 0.8 + 0.48 * len(models))
    figure, axes = plt.subplots(1, len(METRICS), figsize=size, sharey=True, layout="constrained")
    for axis, (metric, title) in zip(axes, METRICS.items(), strict=True):
        for place, model in enumerate(models):
            by_mode: dict[str, Any] = {
                mode: scores[model.name, mode, metric]
                for mode in QUERY_MODES
                if (model.name, mode, metric) in scores
            }
            _draw_modes(axis, place, by_mode)
        axis.set(xlim=(0, 115), xlabel=f"{title} (%)")
        axis.grid(axis="y", visible=False)
    axes[0].set_yticks(range(len(models)), ["\n".join(wrap(model.label, 16)) for model in models])
    axes[0].invert_yaxis()
    handles = [mpl.patches.Patch(**_fill(mode)) for mode in QUERY_MODES]
    figure.legend(
        handles, [MODE_LABELS[mode] for mode in QUERY_MODES], loc="outside upper center", ncols=2
    )
    notes = []
    if metrics and metrics[0].intervals:
        notes.append(f"Lines: 95% bootstrap intervals over {len(metrics[0].by_pie)} PIEs.")
    notes += notes_on(metrics)
    notes += inputs.origins()
    add_notes(figure, notes)
    return figure


def _draw_modes(axis: Axes, place: int, by_mode: Mapping[str, Any]) -> None:
    """Draw the bars of a model around `place`, one per query mode, with intervals and numbers.

    `by_mode` are rows of our numbers; rows without a number have no bar.
    """
    for number, (mode, score) in enumerate(by_mode.items()):
        if isnan(score.ours):
            continue
        row = place + 0.2 * (number - (len(by_mode) - 1) / 2)
        axis.barh(row, score.ours, height=0.18, **_fill(mode))
        if not isnan(score.high):
            axis.plot([score.low, score.high], [row, row], color="black", linewidth=0.8)
        end = score.ours if isnan(score.high) else score.high
        axis.text(end + 1, row, f"{score.ours:.1f}", va="center", fontsize=SMALLEST)


def _zero_shot(study: ConfiguredStudy) -> DisplayInputs | None:
    ranked = given.ranked(study)
    return given.shown(study, given.zero_shot(study, ranked), ranked)


MODES_FIGURE = Figure(
    "idiolink_modes",
    "Section 6",
    "Each model in the four query modes, with intervals over PIEs.",
    modes,
    _zero_shot,
)


def _fill(mode: str) -> dict[str, Any]:
    """Return the appearance of a mode's bars."""
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
    tuned_names = set(ours.loc[is_tuned, "model"])
    shown = [model for model in inputs.models if model.name in tuned_names]
    # With few models, a row of modes fits in a column.
    width = COLUMN_WIDTH if len(shown) < 2 else PAGE_WIDTH
    size = (width, (1.4 + 0.05 * len(shown)) * len(METRICS))
    figure, axes = plt.subplots(
        len(METRICS), len(QUERY_MODES), figsize=size, sharey=True, layout="constrained"
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
            _name_models(axis, [model.label for model in shown])
            axis.set(ylim=(0, 120), yticks=range(0, 101, 20))
    for axis, mode in zip(axes[0], QUERY_MODES, strict=True):
        axis.set_title(MODE_LABELS[mode].replace(" + ", "\n+ "), fontsize=6.5)
    labels = [label for label in _FILLS if label in drawn]
    handles = [mpl.patches.Patch(**_FILLS[label], edgecolor="white", lw=0) for label in labels]
    figure.legend(handles, labels, loc="outside upper center", ncols=3)
    seeds = max((len(trained.seeds.split()) for trained in best.values()), default=0)
    error_bars = f" Error bars: deviation over {seeds} seeds." if seeds > 1 else ""
    notes = [f"Loss of the fine-tuning: {LOSSES[shown_loss(ours)]}.{error_bars}"]
    notes += notes_on(load_records(inputs.metrics, IdiolinkMetrics))
    notes += inputs.origins()
    add_notes(figure, notes)
    return figure


def _name_models(axis: Axes, labels: Sequence[str]) -> None:
    """Label the places of the models on the horizontal axis; several labels are slanted."""
    axis.set_xlim(-0.6, len(labels) - 0.4)
    wrapped = ["\n".join(wrap(label, 12)) for label in labels]
    axis.set_xticks(range(len(labels)), wrapped, fontsize=SMALLEST)
    if len(labels) > 1:
        for text in axis.get_xticklabels():
            text.set(rotation=35, ha="right", rotation_mode="anchor")
    axis.grid(axis="x", visible=False)


def _tuned(study: ConfiguredStudy) -> DisplayInputs | None:
    if not (models := given.tuned_bases(study)):
        return None
    embedders = given.of_kinds(study, given.ranked(study), "embedder")
    runs = given.zero_shot(study, embedders)
    runs += [run for run in given.tuned(study) if not run.lacks]
    return given.shown(study, runs, models)


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


def flow(inputs: DisplayInputs) -> Drawing:
    """Plot the number of PIEs and of texts after each step of the construction."""
    import matplotlib.pyplot as plt

    metrics = load_record(inputs.metrics[0], ConstructionMetrics)
    report = load_record(inputs.files["filter_report"], FilterReport)
    corrections = (metrics.gold_corrections, metrics.silver_corrections)
    panels = {
        "PIEs": [
            ("in MAGPIE", report.pies),
            ("frequent and balanced", report.candidates),
            ("used", report.kept),
        ],
        "documents and queries": [
            ("generated", metrics.texts),
            ("automatically valid", metrics.labels.get("valid", 0)),
            ("checked by people", metrics.gold_texts),
            ("corrected", sum(counts.corrected for counts in corrections)),
        ],
    }
    figure, axes = plt.subplots(
        len(panels),
        1,
        figsize=(COLUMN_WIDTH, 2.4),
        height_ratios=[len(steps) for steps in panels.values()],
        layout="constrained",
    )
    for axis, (title, steps) in zip(axes, panels.items(), strict=True):
        counts = [count for _, count in steps]
        bars = axis.barh(range(len(steps)), counts, height=0.6, color="#2171b5")
        axis.bar_label(bars, [f"{count:,}" for count in counts], padding=2, fontsize=SMALLEST)
        axis.set_yticks(range(len(steps)), [name for name, _ in steps])
        axis.invert_yaxis()
        axis.set(title=title, xlim=(0, 1.15 * max(1, *counts)))
        axis.grid(axis="y", visible=False)
    add_notes(figure, about_data(sample=metrics.sample, released=False)[1])
    return figure


FLOW = Figure(
    "idiolink_flow",
    "Section 3.2",
    "From the PIEs of MAGPIE to documents and queries.",
    flow,
    given.construction,
)


def domains(inputs: DisplayInputs) -> Drawing:
    """Plot the number of documents and queries by domain and usage, as a heat map."""
    import matplotlib.pyplot as plt

    checks = load_record(inputs.metrics[0], DatasetChecks)
    columns = [
        (collection, usage) for collection, usages in TEXTS_PER_PAIR.items() for usage in usages
    ]
    present = set(chain.from_iterable(checks.domain_usage.values()))
    shown: list[str] = [domain for domain in DOMAINS if domain in present]
    shown += sorted(present.difference(DOMAINS))
    counts = []
    for domain in shown:
        row = []
        for collection, usage in columns:
            by_domain = checks.domain_usage.get(collection, {})
            row.append(by_domain.get(domain, {}).get(usage, 0))
        counts.append(row)
    figure, axis = plt.subplots(
        figsize=(COLUMN_WIDTH, 0.9 + 0.2 * len(shown)), layout="constrained"
    )
    axis.imshow(counts, cmap="Blues", aspect="auto", vmin=0)
    darkest = max(chain.from_iterable(counts), default=0)
    for place, row in enumerate(counts):
        for number, count in enumerate(row):
            color = "white" if count > 0.6 * darkest else "black"
            axis.text(number, place, f"{count:,}", ha="center", va="center", color=color)
    labels = [
        f"{usage}, {'queries' if collection == 'queries' else 'documents'}"
        for collection, usage in columns
    ]
    axis.set_xticks(range(len(columns)), labels, fontsize=SMALLEST)
    for label in axis.get_xticklabels():
        label.set(rotation=35, ha="right", rotation_mode="anchor")
    axis.set_yticks(range(len(shown)), shown)
    axis.grid(visible=False)
    axis.tick_params(length=0)
    for side in axis.spines.values():
        side.set_visible(False)
    add_notes(figure, about_texts(checks)[1])
    return figure


DOMAINS_FIGURE = Figure(
    "idiolink_domains",
    "Section 3.2.2",
    "Texts by domain and usage.",
    domains,
    given.data_checks,
)


def by_pie(inputs: DisplayInputs) -> Drawing:
    """Plot the mean nDCG@10 over zero-shot models by PIE (hardest first) and query mode.

    If there are fine-tuned models, a second panel shows the mean change from fine-tuning. The means
    of a panel are over the same models, which the notes name.
    """
    import matplotlib.pyplot as plt

    ours, labels = by_pie_numbers(inputs), inputs.labels()
    means, gains = zero_shot_means(ours), gains_by_pie(ours)
    pies = hardest_first(ours, means)
    panels = {"nDCG@10 (%), zero-shot": means}
    notes = notes_on_means(means, ours, labels)
    if gains.models:
        panels["nDCG@10, points gained"] = gains
        names = ", ".join(labels[name] for name in gains.models)
        losses = " and ".join(LOSSES[name] for name in sorted(set(ours["loss"]) - {""}))
        notes.append(
            f"Gains from fine-tuning (loss: {losses}): mean over {names}"
            " and all trainings evaluated in the query mode; those on sentences are also evaluated"
            " by span."
        )
    figure, axes = plt.subplots(
        1,
        len(panels),
        figsize=(COLUMN_WIDTH, 0.9 + 0.11 * len(pies)),
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    for axis, (title, shown) in zip(axes[0], panels.items(), strict=True):
        _scatter_by_mode(axis, shown, pies)
        axis.set_xlabel(title, fontsize=SMALLEST)
    axes[0][0].set(ylim=(len(pies) - 0.4, -0.6))
    axes[0][0].set_yticks(range(len(pies)), pies, fontsize=SMALLEST)
    if gains.models:
        axes[0][1].axvline(0, color="black", linewidth=0.8)
    _add_legend_of_modes(figure, {*map(str, means.values), *map(str, gains.values)})
    notes += notes_on(load_records(inputs.metrics, IdiolinkMetrics))
    notes += inputs.origins()
    add_notes(figure, notes)
    return figure


def _scatter_by_mode(axis: Axes, means: PieMeans, pies: Sequence[str]) -> None:
    """Draw the number of each PIE and query mode, with a row per PIE."""
    rows = {pie: row for row, pie in enumerate(pies)}
    for mode, by_pie in means.values.items():
        axis.scatter(
            by_pie,
            by_pie.index.map(rows),
            s=14,
            marker=MODE_MARKERS[str(mode)],
            color=MODE_COLORS[str(mode)],
            edgecolors="#333333",
            linewidths=0.4,
            zorder=3,
        )


def _add_legend_of_modes(figure: Drawing, shown: Collection[str]) -> None:
    from matplotlib.lines import Line2D

    handles, labels = [], []
    for mode in QUERY_MODES:
        if mode in shown:
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
