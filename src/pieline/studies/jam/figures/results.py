"""ID10M-JAM's figures: accuracy against drift (2), confused models (3), AC against MX (6)."""

import re
from collections import Counter
from collections.abc import Sequence
from statistics import fmean

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from pieline.core.records import load_records
from pieline.languages.registry import find, known
from pieline.reporting.given import Given
from pieline.reporting.models import ModelDescription
from pieline.studies.jam.metrics.runs import JamMetrics
from pieline.studies.jam.metrics.seeds import (
    RunKey,
    Runs,
    accuracy,
    by_run,
    confused_runs,
    negative_drift,
    over_seeds,
    prompted,
)
from pieline.studies.jam.tables.common import GROUPS, languages_of

COLOURS = ("#2171b5", "#d95f0e", "#238b45", "#6a51a3")
"""Of languages, in the order of their names."""
MARKERS = {False: "o", True: "^"}
"""Circle; triangle for reasoning models."""
UNKNOWN_SIZE = 40.0
"""Area of the marker of a model whose size nobody tells; drawn hollow."""


def billions(parameters: str | None) -> float | None:
    """Number of parameters (in 10^9) from what Table 7 prints; None where it is not told.

    Of "17B active 109B overall" the whole counts, of the range "150-250B" its middle.
    """
    found = re.findall(r"(?:([\d.]+)-)?([\d.]+)([MB])", parameters or "")
    if not found:
        return None
    low, high, unit = found[-1]
    value = (float(low) + float(high)) / 2 if low else float(high)
    return value / 1000 if unit == "M" else value


def marker_area(parameters: str | None) -> float:
    """Area of a model's marker: grows with the logarithm of its size."""
    size = billions(parameters)
    if size is None:
        return UNKNOWN_SIZE
    return 18 + 22 * max(0.0, len(f"{int(10 * size)}") - 1)


def accuracy_vs_drift(given: Given) -> Figure:
    """Figure 2: accuracy on originals (%) against negative drift (%), one panel a setting.

    Shape: reasoning or not; colour: language; size: parameters (hollow: not told). A run whose
    drift is unknown, because it judged no original right, is not drawn.
    """
    runs = prompted(load_records(given.metrics, JamMetrics))
    settings = [name for name in GROUPS if any(key.setting == name for key in runs)]
    figure, axes = _panels(len(settings) or 1)
    for axis, setting in zip(axes, settings, strict=False):
        drawn = 0
        for key, found in runs.items():
            if key.setting != setting:
                continue
            drift = over_seeds(found, negative_drift)
            right = over_seeds(found, accuracy)
            if drift and right:
                _mark(axis, key, given.models, drift.mean, right.mean)
                drawn += 1
        axis.set(title=GROUPS[setting], xlabel="negative drift (%)")
        if not drawn:
            _say_instead(axis, "drift unknown")
        axis.margins(x=0.4, y=0.2)  # room for the names
    axes[0].set_ylabel("accuracy on originals (%)")
    return _finish(figure, runs, given)


def confused_models(given: Given) -> Figure:
    """Figure 3: histogram of how many runs (model and setting) a hard variant confuses.

    A run of several seeds is confused by a variant if most of its seeds are. Variants that confuse
    none are left out, as in the paper.
    """
    metrics = load_records(given.metrics, JamMetrics)
    runs, languages = prompted(metrics), languages_of(by_run(metrics))
    figure, axes = _panels(len(languages) or 1)
    for axis, language in zip(axes, languages, strict=False):
        counts = Counter(confused_runs(runs, language).values())
        del counts[0]
        heights = [counts[number] for number in range(1, max(counts, default=0) + 1)]
        axis.bar(range(1, len(heights) + 1), heights, color=_colour(language), width=0.8)
        for number, height in enumerate(heights, start=1):
            axis.text(number, height, str(height), ha="center", va="bottom", fontsize=7)
        axis.set(title=find(language).label, xlabel="runs that a variant confuses")
        axis.set_xlim(0.4, max(1, len(heights)) + 0.6)
        step = 1 + len(heights) // 12
        axis.set_xticks(range(1, max(1, len(heights)) + 1, step))
        axis.yaxis.set_major_locator(MaxNLocator(integer=True))
        axis.grid(axis="x", visible=False)
    for axis in axes[:: 2 if len(axes) > 3 else len(axes)]:  # the first of each row
        axis.set_ylabel("hard variants")
    _note(figure, runs, given.notes)
    return figure


def all_vs_mixed(given: Given) -> Figure:
    """Figure 6: all-confused against mixed originals; the two prompt settings look alike."""
    runs = prompted(load_records(given.metrics, JamMetrics))
    figure, axes = _panels(1)
    for key, found in runs.items():
        every = fmean(item.confusion.all_confused for item in found)
        some = fmean(item.confusion.mixed for item in found)
        _mark(axes[0], key, given.models, some, every)
    axes[0].set(xlabel="mixed (MX)", ylabel="all confused (AC)")
    axes[0].margins(x=0.2, y=0.2)
    return _finish(figure, runs, given)


def _colour(language: str) -> str:
    return COLOURS[known().index(language) % len(COLOURS)]


def _panels(number: int) -> tuple[Figure, list[Axes]]:
    # A single panel still has to be as wide as the legend above it.
    columns = number if number < 4 else 2
    rows = -(-number // columns)
    size = (max(5.6, 1.2 + 2.6 * columns), 2.9 * rows)
    figure, axes = plt.subplots(
        rows, columns, figsize=size, sharey=True, layout="constrained", squeeze=False
    )
    for axis in axes.flat[number:]:
        axis.axis("off")
    return figure, list(axes.flat[:number])


def _mark(axis: Axes, key: RunKey, models: Sequence[ModelDescription], x: float, y: float) -> None:
    """One run as a point with the model's name."""
    model = next(model for model in models if model.name == key.model)
    hollow = billions(model.parameters) is None
    axis.scatter(
        x,
        y,
        s=marker_area(model.parameters),
        marker=MARKERS[model.reasoning],
        facecolors="none" if hollow else _colour(key.language),
        edgecolors=_colour(key.language),
        alpha=0.85,
        zorder=3,
    )
    axis.annotate(
        model.label, (x, y), xytext=(0, 5), textcoords="offset points", fontsize=5.5, ha="center"
    )


def _finish(figure: Figure, runs: Runs, given: Given) -> Figure:
    """Legend for shape and colour, and the notes on the data."""
    languages = languages_of(runs)
    handles: list[Artist] = [mpl.patches.Patch(color=_colour(name)) for name in languages]
    names = [find(name).label for name in languages]
    shown = {key.model for key in runs}
    for reasoning, text in ((False, "no reasoning"), (True, "reasoning")):
        if any(model.reasoning == reasoning for model in given.models if model.name in shown):
            handles.append(Line2D([], [], color="#555555", marker=MARKERS[reasoning], ls=""))
            names.append(text)
    handles.append(Line2D([], [], color="none"))
    names.append("area: parameters")
    figure.legend(
        handles, names, loc="outside upper center", ncols=len(names) if len(names) < 6 else 4
    )
    _note(figure, runs, given.notes)
    return figure


def _say_instead(axis: Axes, text: str) -> None:
    """What a panel without anything drawn says; its scale would mean nothing."""
    axis.text(0.5, 0.5, text, transform=axis.transAxes, ha="center")
    axis.set_xticks([])


def _note(figure: Figure, runs: Runs, notes: Sequence[str]) -> None:
    if not runs:
        _say_instead(figure.axes[0], "no language model was run")
        figure.axes[0].set_yticks([])
    figure.supxlabel("\n".join(notes), fontsize=5, color="#666666")
