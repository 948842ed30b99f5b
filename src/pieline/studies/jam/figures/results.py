"""Draw ID10M-JAM's Figures 2 (accuracy and drift), 3 (confused models) and 6 (AC and MX)."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, product
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from pieline.core.errors import pluralize
from pieline.core.records import load_records
from pieline.languages.registry import get_language, language_names
from pieline.reporting.displays import Figure
from pieline.reporting.figures import COLUMN_WIDTH, SMALLEST, add_notes
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.models import ModelDescription
from pieline.studies.jam.metrics.scores import ACCURACY, DRIFT, JamMetrics
from pieline.studies.jam.tables.common import (
    COUNTED_SEED,
    COUNTED_SETTING,
    GROUPS,
    RunKey,
    Runs,
    by_run,
    confused_runs,
    counted_runs,
    languages_of,
    mean_over_seeds,
    not_counted,
    notes_on,
    panel,
    printed_runs,
    prompted,
    title_of,
    unreadable,
    with_panel,
)

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

COLORS = ("#2171b5", "#d95f0e", "#238b45", "#6a51a3", "#b8860b", "#c51b7d", "#4d4d4d", "#01665e")
"""Colors assigned to the languages in alphabetical order."""
MARKERS = {
    "zero_shot": "o",
    "zero_shot_schema": "s",
    "few_shot_sc_cotbest": "D",
    "reasoning": "^",
}
"""Marker shapes by group of runs (see `GROUPS`)."""
AREA = 20.0
"""Marker area where it has no meaning, and for models without a published size."""


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
        return AREA
    return 8 + 10 * max(0.0, len(f"{int(10 * size)}") - 1)


class _Mark(NamedTuple):
    """A run in a scatter plot, either printed in the paper or ours.

    `suffix` is appended to the number of the model: a star if our run has unreadable answers.
    """

    key: RunKey
    model: ModelDescription
    x: float
    y: float
    printed: bool
    marker: str
    area: float
    suffix: str = ""


def accuracy_vs_drift(inputs: DisplayInputs) -> Drawing:
    """Draw Figure 2: accuracy on originals (%) against negative drift (%).

    There is a panel for each setting and language. Marker shapes encode reasoning and areas the
    number of parameters. Printed runs are hollow and drawn behind ours. As in the paper, reasoning
    models appear in the panels of both paper settings, although they run only zero-shot. Runs with
    undefined drift are omitted.
    """
    runs, models = prompted(load_records(inputs.metrics, JamMetrics)), _models(inputs)
    numbers = inputs.printed("text_numbers", "id")
    printed, ours = {}, {}

    def mark(key: RunKey, drift: float, right: float, *, is_printed: bool) -> _Mark:
        model = models[key.model]
        shape = MARKERS["reasoning" if model.reasoning else "zero_shot"]
        area = marker_area(model.parameters)
        star = "*" if not is_printed and unreadable(runs[key])[0] else ""
        return _Mark(key, model, drift, right, is_printed, shape, area, star)

    for key, row in _printed(inputs, "jam_table3").items():
        right = 100 * row["success"] / numbers[f"jam.variants_{key.language}",]["value"]
        printed[key] = mark(key, row["negative_drift_pct"], right, is_printed=True)
    for key, seeds in runs.items():
        x, y = (mean_over_seeds(seeds, measure) for measure in (DRIFT, ACCURACY))
        if x is not None and y is not None:
            ours[key] = mark(key, x, y, is_printed=False)
    of_paper = ("zero_shot", "few_shot_sc_cotbest")
    reasoning = {name for name, model in models.items() if model.reasoning}
    shown = {key.setting for key in runs}.union(of_paper)
    settings = [name for name in GROUPS if name in shown]
    languages = languages_of({**printed, **runs}) or inputs.options["languages"]
    shown_marks: dict[tuple[str, str], list[_Mark]] = {}
    unmeasured = []
    for setting, language in product(settings, languages):
        beside = reasoning if setting in of_paper else ()
        theirs, own = (list(panel(of, setting, beside).values()) for of in (printed, ours))
        of_panel = [item for item in [*theirs, *own] if item.key.language == language]
        if of_panel:
            shown_marks[setting, language] = of_panel
        if not any(item.key.language == language for item in own):
            unmeasured.append(f"{get_language(language).label} {title_of(setting)}")
    figure, axes = _panels(len(shown_marks) or 1, height=1.4)
    drawn = dict(zip(axes, shown_marks.values(), strict=False))
    for axis, (setting, language) in zip(axes, shown_marks, strict=False):
        axis.set_title(f"{get_language(language).label}\n{title_of(setting)}", fontsize=SMALLEST)
    for axis in axes[::2]:
        axis.set_ylabel("accuracy (%)")
    _label_below(axes, "negative drift (%)")
    shapes = {MARKERS["zero_shot"]: "no reasoning", MARKERS["reasoning"]: "reasoning"}
    notes = ["Accuracy: on the originals. Larger markers: more parameters."]
    if runs and unmeasured:
        notes.append(f"Without a measured drift: {', '.join(unmeasured)}.")
    return _finish(figure, runs, drawn, shapes, [*notes, *_notes(runs, inputs)], data=inputs.data)


ACCURACY_VS_DRIFT = Figure(
    "jam_accuracy_vs_drift",
    "Figure 2",
    "Accuracy on the originals against negative drift.",
    accuracy_vs_drift,
    with_panel,
    printed=("jam_table3", "text_numbers"),
)


def _printed(inputs: DisplayInputs, file: str) -> dict[RunKey, dict[str, float]]:
    """Return the printed rows of prompted models in the figure's languages, by run."""
    return {
        key: row
        for key, row in printed_runs(inputs, file).items()
        if key.setting != "fine_tuned" and key.language in inputs.options["languages"]
    }


def _models(inputs: DisplayInputs) -> dict[str, ModelDescription]:
    return {model.name: model for model in inputs.models}


def confused_models(inputs: DisplayInputs) -> Drawing:
    """Draw Figure 3: a histogram of hard variants by how many models they confuse.

    Variants that confuse no model are omitted, as in the paper, which prints only the total
    of its bars. `counted_runs` selects the runs. Up to two bars are a line of text instead.
    """
    metrics = load_records(inputs.metrics, JamMetrics)
    released = inputs.options["form"] == "released"
    every, languages, models = prompted(metrics), languages_of(by_run(metrics)), _models(inputs)
    reasoning = {name for name, model in models.items() if model.reasoning}
    runs = counted_runs(every, () if released else reasoning)
    printed = inputs.printed("text_numbers", "id")
    bars: dict[str, list[int]] = {}
    titles = {}
    for language in languages:
        confused = confused_runs(runs, language)
        counts = Counter(confused.values())
        del counts[0]
        bars[language] = [counts[number] for number in range(1, max(counts, default=0) + 1)]
        titles[language] = (
            f"{get_language(language).label}: {sum(bars[language]) if confused else '–'} variants"
        )
        row = printed.get((f"jam.confusing_variants_{language}",))
        if row and not released:
            titles[language] += f"\n(printed: {row['value']:g})"
    if sum(map(len, bars.values())) > _MOST_IN_WORDS:
        figure = _histograms({name: each for name, each in bars.items() if each}, titles)
        without = [titles[name].replace("\n", " ") for name, each in bars.items() if not each]
    else:
        figure, without = _in_words(bars, titles), []
    others = "" if released else "; reasoning models zero-shot"
    remarks = [f"{title_of(COUNTED_SETTING)}, seed {COUNTED_SEED}{others}."]
    if uncounted := not_counted(every, runs, inputs):
        listed = (f"{label} ({get_language(language).label})" for language, label in uncounted)
        remarks.append(f"Without such a run, so not counted: {', '.join(listed)}.")
    remarks += [f"{each}." for each in without]
    _note(figure, every, [*remarks, *_unreadable(every, models), *_notes(runs, inputs)])
    return figure


CONFUSED_MODELS = Figure(
    "jam_confused_models",
    "Figure 3",
    "How many models each hard variant confuses.",
    confused_models,
    with_panel,
    printed=("text_numbers",),
)


_MOST_IN_WORDS = 2
"""Largest number of bars that a line of text replaces."""


def _histograms(bars: Mapping[str, Sequence[int]], titles: Mapping[str, str]) -> Drawing:
    """Draw a panel of bars per language; their places are numbers of models."""
    from matplotlib.ticker import MaxNLocator

    figure, axes = _panels(len(bars), height=1.7, shared=True)
    for axis, (language, heights) in zip(axes, bars.items(), strict=True):
        axis.bar(range(1, len(heights) + 1), heights, color=_color(language), width=0.8)
        for number, height in enumerate(heights, start=1):
            axis.text(number, height, str(height), ha="center", va="bottom", fontsize=6)
        axis.set_title(titles[language], fontsize=6.5)
        axis.yaxis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 5, 10]))
        axis.grid(axis="x", visible=False)
    for axis in axes[::2]:
        axis.set_ylabel("hard variants")
    _label_below(axes, "confused models")
    most = max(map(len, bars.values()))
    axes[0].set_ylim(0, max(1.0, axes[0].get_ylim()[1]))
    axes[0].set(xlim=(0.4, most + 0.6), xticks=range(1, most + 1, 1 + most // 6))
    return figure


def _in_words(bars: Mapping[str, Sequence[int]], titles: Mapping[str, str]) -> Drawing:
    """Return a figure that states a few bars as a line of text per language."""
    import matplotlib.pyplot as plt

    lines = []
    for language, heights in bars.items():
        parts = (
            f"{height} confuse {pluralize(number, 'model')}"
            for number, height in enumerate(heights, start=1)
        )
        title = titles[language].replace("\n", " ")
        lines.append(f"{title}{': ' if heights else ''}{', '.join(parts)}")
    figure = plt.figure(figsize=(COLUMN_WIDTH, 0.12 * (len(lines) + 1)), layout="constrained")
    figure.suptitle("\n".join(lines), x=0.01, ha="left", fontsize=7)
    return figure


def _unreadable(runs: Runs, models: Mapping[str, ModelDescription]) -> list[str]:
    """Return a note that counts the unreadable answers of runs; empty if there are none."""
    listed = defaultdict(list)
    for key, seeds in runs.items():
        number, total = unreadable(seeds)
        if number:
            run = f"{get_language(key.language).label} {title_of(key.setting)} {number} of {total}"
            listed[models[key.model].label].append(run)
    parts = (f"{label}: {', '.join(counts)}" for label, counts in listed.items())
    return [f"* Unreadable answers of {'; '.join(parts)}."] if listed else []


def _notes(runs: Runs, inputs: DisplayInputs) -> tuple[str, ...]:
    return notes_on([item for seeds in runs.values() for item in seeds], inputs)


def all_vs_mixed(inputs: DisplayInputs) -> Drawing:
    """Draw Figure 6: the shares of all-confused against mixed originals, one panel per language.

    Marker shapes encode the prompt setting, and for models that reason, that they do. Printed runs
    are hollow and drawn behind ours.
    """
    runs, models = prompted(load_records(inputs.metrics, JamMetrics)), _models(inputs)
    printed = _printed(inputs, "jam_table6")
    marks = []

    def add(key: RunKey, every: float, none: float, some: float, *, is_printed: bool) -> None:
        model, originals = models[key.model], every + none + some
        if not originals:
            return
        shape = MARKERS["reasoning" if model.reasoning else key.setting]
        star = "*" if not is_printed and unreadable(runs[key])[0] else ""
        x, y = 100 * some / originals, 100 * every / originals
        marks.append(_Mark(key, model, x, y, is_printed, shape, AREA, star))

    for key, row in printed.items():
        add(key, row["all_confused"], row["none_confused"], row["mixed"], is_printed=True)
    for key, seeds in runs.items():
        counts = (
            fmean(getattr(item.confusion, part) for item in seeds)
            for part in ("all_confused", "none_confused", "mixed")
        )
        add(key, *counts, is_printed=False)
    languages = languages_of(mark.key for mark in marks)
    figure, axes = _panels(len(languages) or 1, height=1.9)
    drawn = {}
    for axis, language in zip(axes, languages, strict=False):
        axis.set_title(get_language(language).label)
        drawn[axis] = [item for item in marks if item.key.language == language]
    for axis in axes[::2]:
        axis.set_ylabel("all confused (AC), % of originals")
    _label_below(axes, "mixed (MX), % of originals")
    shapes = {MARKERS[group]: GROUPS[group] for group in MARKERS}
    return _finish(figure, runs, drawn, shapes, _notes(runs, inputs), data=inputs.data)


ALL_VS_MIXED = Figure(
    "jam_all_vs_mixed",
    "Figure 6",
    "All-confused against partly confused originals.",
    all_vs_mixed,
    with_panel,
    printed=("jam_table6",),
)


def _color(language: str) -> str:
    return COLORS[language_names().index(language) % len(COLORS)]


def _panels(number: int, *, height: float, shared: bool = False) -> tuple[Drawing, list[Axes]]:
    """Return a figure with panels of a height in inches, in up to two columns.

    If `shared`, all panels have the same axes.
    """
    import matplotlib.pyplot as plt

    columns = min(2, number)
    rows = -(-number // columns)
    size = (COLUMN_WIDTH, height * rows)
    figure, axes = plt.subplots(
        rows,
        columns,
        figsize=size,
        sharex=shared,
        sharey=shared,
        layout="constrained",
        squeeze=False,
    )
    for axis in axes.flat[number:]:
        axis.axis("off")
    return figure, list(axes.flat[:number])


def _beyond(marks: Iterable[_Mark], moved: Iterable[_Mark]) -> list[str]:
    """Return a note with the numbers of the runs that were moved to the edge, if there are any."""
    places: dict[str, list[str]] = defaultdict(list)
    for mark, shown in zip(marks, moved, strict=True):
        if mark != shown:
            run = f"{get_language(mark.key.language).label} {title_of(mark.key.setting)}"
            places[mark.model.label].append(f"{run} ({mark.x:.0f}, {mark.y:.0f})")
    parts = (f"{label}: {', '.join(dict.fromkeys(runs))}" for label, runs in places.items())
    return [f"On the edge, because beyond the axes (x, y): {'; '.join(parts)}."] if places else []


def _label_below(axes: Sequence[Axes], text: str) -> None:
    """Label the horizontal axes of the lowest panels."""
    for axis in axes[-2:]:
        axis.set_xlabel(text)
        axis.tick_params(labelbottom=True)


def _limits(printed: Sequence[float], ours: Sequence[float]) -> tuple[float, float]:
    """Return the limits of an axis in percent.

    They enclose the printed numbers, and ours up to half their span away. A weak model of ours far
    away would crush the printed numbers into a corner. Without printed numbers, they enclose ours.
    """
    low, high = min(printed or ours, default=0.0), max(printed or ours, default=100.0)
    reach = (high - low) / 2
    near = [low, high, *(value for value in ours if low - reach <= value <= high + reach)]
    margin = max(1.0, 0.12 * (max(near) - min(near)))
    return max(0.0, min(near) - margin), min(100.0, max(near) + margin)


def _fit(axes: Iterable[Axes], marks: Sequence[_Mark]) -> None:
    """Set the limits of panels that show some of these runs."""
    limits = [
        _limits(
            [getattr(mark, name) for mark in marks if mark.printed],
            [getattr(mark, name) for mark in marks if not mark.printed],
        )
        for name in ("x", "y")
    ]
    for axis in axes:
        axis.set(xlim=limits[0], ylim=limits[1])


def _on_edge(axis: Axes, mark: _Mark) -> _Mark:
    """Return a run, moved to the edge if it is beyond the axes."""
    (left, right), (bottom, top) = axis.get_xlim(), axis.get_ylim()
    return mark._replace(x=min(max(mark.x, left), right), y=min(max(mark.y, bottom), top))


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
            s=mark.area,
            marker=mark.marker,
            facecolors="none" if mark.printed else color,
            edgecolors=color,
            linewidths=0.8,
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
    from adjustText import adjust_text
    from matplotlib import patheffects
    from matplotlib.transforms import Bbox

    if not named:
        return
    halo = [patheffects.withStroke(linewidth=1.2, foreground="white")]
    names = [
        axis.text(
            mark.x,
            mark.y,
            f"{numbers[mark.key.model]}{mark.suffix}",
            fontsize=SMALLEST,
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
        half = mark.area**0.5 / 2 * points_to_pixels
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
    figure: Drawing,
    runs: Runs,
    drawn: Mapping[Axes, Sequence[_Mark]],
    shapes: Mapping[str, str],
    notes: Sequence[str],
    *,
    data: str,
) -> Drawing:
    """Draw the runs of all panels, the legend and the notes, which number the models.

    Args:
        figure: Drawing to finish.
        runs: Our runs.
        drawn: Runs to draw by panel.
        shapes: Meanings of the marker shapes.
        notes: Notes to print below the figure.
        data: Source of our data.
    """
    import matplotlib as mpl
    from matplotlib.lines import Line2D

    marks = [mark for shown in drawn.values() for mark in shown]
    for language in languages_of(mark.key for mark in marks):
        alike = [mark for mark in marks if mark.key.language == language]
        _fit((axis for axis, shown in drawn.items() if {*shown} & {*alike}), alike)
    drawn = {axis: [_on_edge(axis, mark) for mark in shown] for axis, shown in drawn.items()}
    notes = [*_beyond(marks, chain.from_iterable(drawn.values())), *notes]
    named = {axis: _draw(axis, shown) for axis, shown in drawn.items()}
    used = {mark.marker for mark in marks}
    handles: list[Artist] = []
    names = []
    for marker, text in shapes.items():
        if marker in used:
            handles.append(Line2D([], [], color="#555555", marker=marker, ls="", ms=AREA**0.5))
            names.append(text)
    if any(mark.printed for mark in marks):
        # A bar for the fill, because the shapes have meanings of their own.
        handles += [
            mpl.patches.Patch(facecolor=face, edgecolor="#555555") for face in ("#555555", "none")
        ]
        ours = "ours, on the sample data" if data == "sample" else "ours"
        names += [f"filled: {ours}", "hollow: printed"]
    figure.set_figheight(figure.get_figheight() + 0.15 * (1 + len(names) // 2))
    figure.legend(handles, names, loc="outside upper center", ncols=2)
    by_print = sorted(marks, key=lambda mark: not mark.printed)
    models = {mark.key.model: mark.model for mark in by_print}
    numbers = {model: number for number, model in enumerate(models, start=1)}
    # Keep each number on one line with its name.
    listed = (
        f"{numbers[name]} {model.label}".replace(" ", "\N{NO-BREAK SPACE}")
        for name, model in models.items()
    )
    _note(figure, runs, [", ".join(listed) + ".", *_unreadable(runs, models), *notes])
    # Fix the layout first, because labels are placed in pixels.
    figure.draw_without_rendering()
    for axis, to_label in named.items():
        _name(axis, to_label, drawn[axis], numbers)
    return figure


def _note(figure: Drawing, runs: Runs, notes: Sequence[str]) -> None:
    none = [] if runs else ["No language model was run."]
    add_notes(figure, [*none, *notes])
