"""Draw ID10M-JAM's Figures 2 (accuracy and drift), 3 (confused models) and 6 (AC and MX)."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean
from textwrap import wrap
from typing import NamedTuple

import matplotlib as mpl
import matplotlib.pyplot as plt
from adjustText import adjust_text
from matplotlib import patheffects
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import Bbox

from pieline.core.conditions import deviations
from pieline.core.records import load_records
from pieline.languages.registry import get_language, language_names
from pieline.reporting.columns import over_seeds
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.models import ModelDescription
from pieline.reporting.printed import read_published
from pieline.studies.jam.metrics.runs import JamMetrics
from pieline.studies.jam.metrics.seeds import (
    RunKey,
    Runs,
    accuracy,
    by_run,
    confused_runs,
    counted_runs,
    negative_drift,
    panel,
    prompted,
    unreadable,
)
from pieline.studies.jam.settings import ConfusedModels
from pieline.studies.jam.tables.common import (
    GROUPS,
    languages_of,
    marked,
    not_counted,
    notes_on,
    printed_runs,
    title_of,
)

COLORS = ("#2171b5", "#d95f0e", "#238b45", "#6a51a3", "#b8860b", "#c51b7d", "#4d4d4d", "#01665e")
"""Colors assigned to the languages in alphabetical order."""
MARKERS = {False: "o", True: "^"}
"""Marker shape, by whether the model reasons."""
UNKNOWN_SIZE = 40.0
"""Marker area for models without a published size."""


def billions(parameters: str | None) -> float | None:
    """Parse a parameter count as printed in Table 7; return billions, or None if unpublished.

    "17B active 109B overall" yields 109, the overall count; "150-250B" yields 200, the midpoint.
    """
    matches = re.findall(r"(?:([\d.]+)-)?([\d.]+)([MB])", parameters or "")
    if not matches:
        return None
    low, high, unit = matches[-1]
    value = (float(low) + float(high)) / 2 if low else float(high)
    return value / 1000 if unit == "M" else value


def marker_area(parameters: str | None) -> float:
    """Return the marker area, which grows with the order of magnitude of the model size."""
    size = billions(parameters)
    if size is None:
        return UNKNOWN_SIZE
    return 18 + 22 * max(0.0, len(f"{int(10 * size)}") - 1)


class _Mark(NamedTuple):
    """A run in a scatter plot, either printed in the paper or ours.

    `label` is the model's label, followed by the number of unreadable answers if our run has any.
    """

    key: RunKey
    model: ModelDescription
    x: float
    y: float
    printed: bool
    label: str


def accuracy_vs_drift(inputs: DisplayInputs) -> Figure:
    """Draw Figure 2: accuracy on originals (%) against negative drift (%), one panel per setting.

    Marker shapes encode reasoning, colors the language and areas the number of parameters. Printed
    runs are hollow and drawn behind ours. As in the paper, reasoning models appear in the panels of
    both paper settings, although they run only zero-shot. Runs with undefined drift are omitted.
    """
    runs, models = prompted(load_records(inputs.metrics, JamMetrics)), _models(inputs)
    numbers = read_published(inputs.files["text_numbers"], ["id"])
    printed, ours = {}, {}
    for key, row in _printed(inputs).items():
        right = 100 * row["success"] / numbers[f"jam.variants_{key.language}",]["value"]
        model, drift = models[key.model], row["negative_drift_pct"]
        printed[key] = _Mark(key, model, drift, right, True, model.label)
    for key, seeds in runs.items():
        x, y = over_seeds(seeds, negative_drift), over_seeds(seeds, accuracy)
        if x and y:
            label = marked(models[key.model].label, {"": seeds})
            ours[key] = _Mark(key, models[key.model], x.mean, y.mean, False, label)
    marks = [*printed.values(), *ours.values()]
    of_paper = ("zero_shot", "few_shot_sc_cotbest")
    reasoning = {name for name, model in models.items() if model.reasoning}
    shown = {key.setting for key in runs}.union(of_paper)
    panels = [name for name in GROUPS if name in shown]
    figure, axes = _panels(len(panels), width=3.4, height=4.4)
    # Limit the axes to 0 to 100%, and leave room for labels to the right of and below the markers.
    widest = min(100.0, 1.6 * max((mark.x for mark in marks), default=60.0))
    deepest = min(100.0, 1.25 * (100 - min((mark.y for mark in marks), default=0.0)))
    drawn = {}
    for axis, setting in zip(axes, panels, strict=True):
        beside = reasoning if setting in of_paper else ()
        theirs, own = (list(panel(of, setting, beside).values()) for of in (printed, ours))
        axis.set(title=GROUPS[setting], xlabel="negative drift (%)")
        axis.set(xlim=(0, widest), ylim=(100 - deepest, 100))
        if not own:
            axis.text(0.5, 0.03, "no measured drift", transform=axis.transAxes, ha="center")
        drawn[axis] = [*theirs, *own]
    axes[0].set_ylabel("accuracy on originals (%)")
    return _finish(figure, runs, drawn, _notes(runs, inputs))


def _printed(inputs: DisplayInputs) -> dict[RunKey, dict[str, float]]:
    """Return the printed rows of prompted models in the figure's languages, by run."""
    return {
        key: row
        for key, row in printed_runs(inputs).items()
        if key.setting != "fine_tuned" and key.language in inputs.options["languages"]
    }


def _models(inputs: DisplayInputs) -> dict[str, ModelDescription]:
    return {model.name: model for model in (*inputs.models, *inputs.absent)}


def confused_models(inputs: DisplayInputs) -> Figure:
    """Draw Figure 3: a histogram of hard variants by how many models or runs they confuse.

    Variants that confuse no model or run are omitted, as in the paper, which prints only the total
    of its bars. `counted_runs` selects the runs.
    """
    metrics = load_records(inputs.metrics, JamMetrics)
    figure3 = ConfusedModels.model_validate(inputs.options["figure3"])
    every, languages, models = prompted(metrics), languages_of(by_run(metrics)), _models(inputs)
    reasoning = {name for name, model in models.items() if model.reasoning}
    runs = counted_runs(every, figure3, reasoning)
    printed = inputs.printed("id", file="text_numbers")
    figure, axes = _panels(len(languages) or 1)
    counted = "runs" if figure3.count == "runs" else "models"
    most = 1
    for axis, language in zip(axes, languages, strict=False):
        confused = confused_runs(runs, language)
        counts = Counter(confused.values())
        del counts[0]
        heights = [counts[number] for number in range(1, max(counts, default=0) + 1)]
        axis.bar(range(1, len(heights) + 1), heights, color=_color(language), width=0.8)
        for number, height in enumerate(heights, start=1):
            axis.text(number, height, str(height), ha="center", va="bottom", fontsize=7)
        title = f"{get_language(language).label}: {sum(heights) if confused else '–'} variants"
        row = printed.get((f"jam.confusing_variants_{language}",))
        if row and not deviations(figure3):
            title += f" (printed: {row['value']:g})"
        axis.set(title=title, xlabel=f"{counted} that a variant confuses")
        most = max(most, len(heights))
        axis.yaxis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 5, 10]))
        if not heights:
            text = "no variant" if confused else "no run is counted"
            axis.text(0.5, 0.5, text, transform=axis.transAxes, ha="center")
        axis.grid(axis="x", visible=False)
    for axis in axes[:: 2 if len(axes) > 3 else len(axes)]:  # first panel of each row
        axis.set_ylabel("hard variants")
    axes[0].set_ylim(0, max(1.0, axes[0].get_ylim()[1]))
    axes[0].set(xlim=(0.4, most + 0.6), xticks=range(1, most + 1, 1 + most // 12))
    remarks = ["Of each model and prompt type, by most of its seeds."]
    if figure3.count != "runs":
        others = "; reasoning models zero-shot" if figure3.count == "models" else ""
        remarks = [f"{title_of(figure3.setting)}, seed {figure3.seed}{others}."]
        if uncounted := not_counted(every, runs, inputs):
            listed = (f"{label} ({get_language(language).label})" for language, label in uncounted)
            remarks.append(f"Without such a run, so not counted: {', '.join(listed)}.")
    unreadable_runs = [
        f"{models[key.model].label}, {title_of(key.setting)}, {get_language(key.language).label}:"
        f" {number} of {total}"
        for key, seeds in runs.items()
        for number, total in (unreadable(seeds),)
        if number
    ]
    remarks += [f"Unreadable: {'; '.join(unreadable_runs)}."] if unreadable_runs else []
    _note(figure, every, [*remarks, *_notes(runs, inputs)])
    return figure


def _notes(runs: Runs, inputs: DisplayInputs) -> tuple[str, ...]:
    return notes_on([item for seeds in runs.values() for item in seeds], inputs)


def all_vs_mixed(inputs: DisplayInputs) -> Figure:
    """Draw Figure 6: the number of all-confused against mixed originals, for all prompt settings.

    Printed runs are hollow and drawn behind ours.
    """
    runs, models = prompted(load_records(inputs.metrics, JamMetrics)), _models(inputs)
    marks = [
        _Mark(key, model, row["mixed"], row["all_confused"], True, model.label)
        for key, row in _printed(inputs).items()
        for model in (models[key.model],)
    ]
    for key, seeds in runs.items():
        every = fmean(item.confusion.all_confused for item in seeds)
        some = fmean(item.confusion.mixed for item in seeds)
        label = marked(models[key.model].label, {"": seeds})
        marks.append(_Mark(key, models[key.model], some, every, False, label))
    figure, axes = _panels(1, width=6.4, height=4.6)
    axes[0].set(xlabel="mixed (MX), originals", ylabel="all confused (AC), originals")
    axes[0].set_xlim(-2, 2 + 1.1 * max((mark.x for mark in marks), default=1.0))
    axes[0].set_ylim(-2, 2 + 1.1 * max((mark.y for mark in marks), default=1.0))
    return _finish(figure, runs, {axes[0]: marks}, _notes(runs, inputs))


def _color(language: str) -> str:
    return COLORS[language_names().index(language) % len(COLORS)]


def _panels(number: int, *, width: float = 3.2, height: float = 2.9) -> tuple[Figure, list[Axes]]:
    # A single panel must be as wide as the legend above it.
    columns = number if number < 4 else 2
    rows = -(-number // columns)
    size = (max(5.6, 1.2 + width * columns), height * rows)
    figure, axes = plt.subplots(
        rows, columns, figsize=size, sharex=True, sharey=True, layout="constrained", squeeze=False
    )
    for axis in axes.flat[number:]:
        axis.axis("off")
    return figure, list(axes.flat[:number])


def _draw(axis: Axes, marks: Sequence[_Mark]) -> list[_Mark]:
    """Draw the runs of a panel and return those that need a label.

    If a printed run has a counterpart of ours, a line connects the two, and only ours is labeled.
    """
    ours = {mark.key: mark for mark in marks if not mark.printed}
    unnamed = set()
    for mark in sorted(marks, key=lambda mark: not mark.printed):
        color = _color(mark.key.language)
        axis.scatter(
            mark.x,
            mark.y,
            s=marker_area(mark.model.parameters),
            marker=MARKERS[mark.model.reasoning],
            facecolors="none" if mark.printed else color,
            edgecolors=color,
            linewidths=0.7,
            alpha=0.7 if mark.printed else 0.95,
            zorder=2 if mark.printed else 3,
            clip_on=False,
        )
        if mark.printed and (own := ours.get(mark.key)):
            axis.plot([mark.x, own.x], [mark.y, own.y], color=color, lw=0.5, alpha=0.5, zorder=1)
            unnamed.add(mark)
    return [mark for mark in marks if mark not in unnamed]


def _name(
    axis: Axes, named: Sequence[_Mark], marks: Sequence[_Mark], numbers: Mapping[str, int]
) -> None:
    """Label the markers `named` with model numbers, avoiding overlaps with all `marks`.

    The figure layout must be final.
    """
    if not named:
        return
    halo = [patheffects.withStroke(linewidth=1.2, foreground="white")]
    names = [
        axis.text(
            mark.x,
            mark.y,
            # Append the number of unreadable answers, if any, from the label.
            f"{numbers[mark.key.model]}{mark.label.removeprefix(mark.model.label)}",
            fontsize=6,
            color=_color(mark.key.language),
            weight="normal" if mark.printed else "bold",
            path_effects=halo,
            zorder=4,
        )
        for mark in named
    ]
    points_to_pixels = axis.figure.dpi / 72
    boxes = []
    for mark in marks:
        x, y = axis.transData.transform((mark.x, mark.y))
        half = marker_area(mark.model.parameters) ** 0.5 / 2 * points_to_pixels
        boxes.append(Bbox.from_extents(x - half, y - half, x + half, y + half))
    adjust_text(
        names,
        x=[mark.x for mark in marks],
        y=[mark.y for mark in marks],
        target_x=[mark.x for mark in named],
        target_y=[mark.y for mark in named],
        objects=boxes,
        ax=axis,
        arrowprops={"arrowstyle": "-", "color": "#999999", "lw": 0.4, "zorder": 1},
        expand=(1.1, 1.2),
        iter_lim=600,
    )


def _finish(
    figure: Figure, runs: Runs, drawn: Mapping[Axes, Sequence[_Mark]], notes: Sequence[str]
) -> Figure:
    """Draw the runs of all panels, the legend (color, shape, fill, area) and the notes."""
    named = {axis: _draw(axis, marks) for axis, marks in drawn.items()}
    marks = [mark for panel in drawn.values() for mark in panel]
    languages = sorted({mark.key.language for mark in marks} | {key.language for key in runs})
    handles: list[Artist] = [mpl.patches.Patch(color=_color(name)) for name in languages]
    names = [get_language(name).label for name in languages]

    def key(text: str, marker: str = "o", *, filled: bool = True, area: float = 40.0) -> None:
        face = "#555555" if filled else "none"
        handles.append(
            Line2D([], [], color="#555555", marker=marker, ls="", mfc=face, ms=area**0.5)
        )
        names.append(text)

    for reasoning, text in ((False, "no reasoning"), (True, "reasoning")):
        if any(mark.model.reasoning == reasoning for mark in marks):
            key(text, MARKERS[reasoning])
    if any(mark.printed for mark in marks):
        key("ours")
        key("printed", filled=False)
    parameters = {billions(mark.model.parameters): mark.model.parameters for mark in marks}
    sizes = sorted(size for size in parameters if size is not None)
    for size in dict.fromkeys((*sizes[:1], *sizes[-1:])):
        key(f"{size:g}B", filled=False, area=marker_area(parameters[size]))
    if None in parameters:
        key("size not published", filled=False, area=UNKNOWN_SIZE)
    columns = min(5, (len(names) + 1) // 2)
    figure.legend(handles, names, loc="outside upper center", ncols=columns)
    by_print = sorted(marks, key=lambda mark: not mark.printed)
    labels = {mark.key.model: mark.model.label for mark in by_print}
    numbers = {model: number for number, model in enumerate(labels, start=1)}
    listed = (f"{numbers[model]} {label}" for model, label in labels.items())
    _note(figure, runs, ["  ".join(listed), *notes])
    # Fix the layout first, because labels are placed in pixels.
    figure.draw_without_rendering()
    for axis, to_label in named.items():
        _name(axis, to_label, drawn[axis], numbers)
    return figure


def _note(figure: Figure, runs: Runs, notes: Sequence[str]) -> None:
    if not runs:
        axis = figure.axes[0]
        axis.text(0.5, 0.5, "no language model was run", transform=axis.transAxes, ha="center")
        axis.set(xticks=[], yticks=[])
    # At this font size, about 26 characters fit in an inch.
    wrapped = (line for note in notes for line in wrap(note, int(24 * figure.get_figwidth())))
    figure.supxlabel("\n".join(wrapped), fontsize=5, color="#666666")
