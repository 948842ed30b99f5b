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
from pieline.studies.jam.metrics.drift import Confusion
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

    `suffix` is appended to the number of the model (see `_star`).
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
    runs = prompted(load_records(inputs.metrics, JamMetrics))
    printed, ours = _printed_drifts(inputs), _our_drifts(runs, inputs)
    reasoning = {model.name for model in inputs.models if model.reasoning}
    shown = {key.setting for key in runs}.union(_PAPER_SETTINGS)
    settings = [name for name in GROUPS if name in shown]
    languages = languages_of({**printed, **runs}) or inputs.options["languages"]
    marks: dict[tuple[str, str], list[_Mark]] = {}
    unmeasured = []
    for setting, language in product(settings, languages):
        also_shown = reasoning if setting in _PAPER_SETTINGS else ()
        theirs = _of_language(panel(printed, setting, also_shown).values(), language)
        own = _of_language(panel(ours, setting, also_shown).values(), language)
        if theirs or own:
            marks[setting, language] = theirs + own
        if not own:
            unmeasured.append(f"{get_language(language).label} {title_of(setting)}")
    figure, axes = _panels(len(marks) or 1, height=1.4)
    drawn = dict(zip(axes, marks.values(), strict=False))
    for axis, (setting, language) in zip(axes, marks, strict=False):
        axis.set_title(f"{get_language(language).label}\n{title_of(setting)}", fontsize=SMALLEST)
    for axis in axes[::2]:
        axis.set_ylabel("accuracy (%)")
    _label_below(axes, "negative drift (%)")
    shapes = {MARKERS["zero_shot"]: "no reasoning", MARKERS["reasoning"]: "reasoning"}
    notes = ["Accuracy: on the originals. Larger markers: more parameters."]
    if runs and unmeasured:
        notes.append(f"Without a measured drift: {', '.join(unmeasured)}.")
    notes += _notes(runs, inputs)
    return _finish(figure, runs, drawn, shapes, notes, data=inputs.data)


ACCURACY_VS_DRIFT = Figure(
    "jam_accuracy_vs_drift",
    "Figure 2",
    "Accuracy on the originals against negative drift.",
    accuracy_vs_drift,
    with_panel,
    printed=("jam_table3", "text_numbers"),
)


_PAPER_SETTINGS = ("zero_shot", "few_shot_sc_cotbest")


def _printed_drifts(inputs: DisplayInputs) -> dict[RunKey, _Mark]:
    """Return the printed runs of Figure 2."""
    models = _models(inputs)
    numbers = inputs.printed("text_numbers", "id")
    marks = {}
    for key, row in _printed(inputs, "jam_table3").items():
        number = (f"jam.variants_{key.language}",)
        accuracy = 100 * row["success"] / numbers[number]["value"]
        drift = row["negative_drift_pct"]
        marks[key] = _drift_mark(key, models[key.model], drift, accuracy, printed=True)
    return marks


def _our_drifts(runs: Runs, inputs: DisplayInputs) -> dict[RunKey, _Mark]:
    """Return our runs in Figure 2; runs with undefined drift are omitted."""
    models = _models(inputs)
    marks = {}
    for key, seeds in runs.items():
        drift, accuracy = mean_over_seeds(seeds, DRIFT), mean_over_seeds(seeds, ACCURACY)
        if drift is not None and accuracy is not None:
            mark = _drift_mark(key, models[key.model], drift, accuracy, printed=False)
            marks[key] = mark._replace(suffix=_star(seeds))
    return marks


def _drift_mark(
    key: RunKey, model: ModelDescription, drift: float, accuracy: float, *, printed: bool
) -> _Mark:
    marker = MARKERS["reasoning" if model.reasoning else "zero_shot"]
    return _Mark(key, model, drift, accuracy, printed, marker, marker_area(model.parameters))


def _star(seeds: Sequence[JamMetrics]) -> str:
    """Return a star if a run has unreadable answers, otherwise an empty text."""
    return "*" if unreadable(seeds)[0] else ""


def _of_language(marks: Iterable[_Mark], language: str) -> list[_Mark]:
    return [mark for mark in marks if mark.key.language == language]


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

    Variants that confuse no model are omitted, as in the paper, which prints only the total of its
    bars. `counted_runs` selects the runs. If there are at most two bars, the figure is a line of
    text.
    """
    metrics = load_records(inputs.metrics, JamMetrics)
    released = inputs.options["form"] == "released"
    all_runs, models = prompted(metrics), _models(inputs)
    reasoning = {name for name, model in models.items() if model.reasoning}
    counted = counted_runs(all_runs, () if released else reasoning)
    printed = {} if released else inputs.printed("text_numbers", "id")
    bars: dict[str, list[int]] = {}
    titles: dict[str, str] = {}
    for language in languages_of(by_run(metrics)):
        confused = confused_runs(counted, language)
        bars[language] = _numbers_confused(confused.values())
        total = sum(bars[language]) if confused else "–"
        titles[language] = f"{get_language(language).label}: {total} variants"
        if row := printed.get((f"jam.confusing_variants_{language}",)):
            titles[language] += f"\n(printed: {row['value']:g})"
    others = "" if released else "; reasoning models zero-shot"
    notes = [f"{title_of(COUNTED_SETTING)}, seed {COUNTED_SEED}{others}."]
    if uncounted := not_counted(all_runs, counted, inputs):
        labels = (f"{label} ({get_language(language).label})" for language, label in uncounted)
        notes.append(f"Without such a run, so not counted: {', '.join(labels)}.")
    if sum(map(len, bars.values())) <= _MOST_IN_WORDS:
        figure = _in_words(bars, titles)
    else:
        figure = _histograms({name: heights for name, heights in bars.items() if heights}, titles)
        without_bars = [name for name, heights in bars.items() if not heights]
        notes += [f"{titles[name]}.".replace("\n", " ") for name in without_bars]
    notes += _unreadable(all_runs, models)
    notes += _notes(counted, inputs)
    _note(figure, all_runs, notes)
    return figure


def _numbers_confused(models_by_variant: Iterable[int]) -> list[int]:
    """Return how many variants confuse exactly one model, two models and so on."""
    counts = Counter(number for number in models_by_variant if number)
    return [counts[number] for number in range(1, max(counts, default=0) + 1)]


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
    """Draw a panel per language; the first bar is for one confused model, the next for two."""
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
    counts_by_model = defaultdict(list)
    for key, seeds in runs.items():
        number, total = unreadable(seeds)
        if number:
            run = f"{get_language(key.language).label} {title_of(key.setting)} {number} of {total}"
            counts_by_model[models[key.model].label].append(run)
    if not counts_by_model:
        return []
    parts = (f"{label}: {', '.join(counts)}" for label, counts in counts_by_model.items())
    return [f"* Unreadable answers of {'; '.join(parts)}."]


def _notes(runs: Runs, inputs: DisplayInputs) -> tuple[str, ...]:
    return notes_on([item for seeds in runs.values() for item in seeds], inputs)


def all_vs_mixed(inputs: DisplayInputs) -> Drawing:
    """Draw Figure 6: the shares of all-confused against mixed originals, one panel per language.

    Reasoning models have one marker shape; the shapes of other models encode the prompt setting.
    Printed runs are hollow and drawn behind ours.
    """
    runs, models = prompted(load_records(inputs.metrics, JamMetrics)), _models(inputs)
    marks = []
    for key, counts in _printed(inputs, "jam_table6").items():
        if _originals(counts):
            marks.append(_confusion_mark(key, models[key.model], counts, printed=True))
    for key, seeds in runs.items():
        counts = {
            name: fmean(getattr(item.confusion, name) for item in seeds)
            for name in Confusion.model_fields
        }
        if _originals(counts):
            mark = _confusion_mark(key, models[key.model], counts, printed=False)
            marks.append(mark._replace(suffix=_star(seeds)))
    languages = languages_of(mark.key for mark in marks)
    figure, axes = _panels(len(languages) or 1, height=1.9)
    drawn = {}
    for axis, language in zip(axes, languages, strict=False):
        axis.set_title(get_language(language).label)
        drawn[axis] = _of_language(marks, language)
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


def _confusion_mark(
    key: RunKey, model: ModelDescription, counts: Mapping[str, float], *, printed: bool
) -> _Mark:
    """Return a run by its numbers of all-confused, none-confused and mixed originals."""
    originals = _originals(counts)
    mixed = 100 * counts["mixed"] / originals
    all_confused = 100 * counts["all_confused"] / originals
    marker = MARKERS["reasoning" if model.reasoning else key.setting]
    return _Mark(key, model, mixed, all_confused, printed, marker, AREA)


def _originals(counts: Mapping[str, float]) -> float:
    return sum(counts[name] for name in Confusion.model_fields)


def _color(language: str) -> str:
    return COLORS[language_names().index(language) % len(COLORS)]


def _panels(number: int, *, height: float, shared: bool = False) -> tuple[Drawing, list[Axes]]:
    """Return a figure with panels in up to two columns.

    `height` is the height of a panel in inches; if `shared`, all panels have the same axes.
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
    """Return a note with the numbers of the runs that were moved to the edge; empty if none was."""
    places: dict[str, list[str]] = defaultdict(list)
    for mark, shown in zip(marks, moved, strict=True):
        if mark != shown:
            run = f"{get_language(mark.key.language).label} {title_of(mark.key.setting)}"
            places[mark.model.label].append(f"{run} ({mark.x:.0f}, {mark.y:.0f})")
    if not places:
        return []
    parts = (f"{label}: {', '.join(dict.fromkeys(runs))}" for label, runs in places.items())
    return [f"On the edge, because beyond the axes (x, y): {'; '.join(parts)}."]


def _label_below(axes: Sequence[Axes], text: str) -> None:
    """Label the horizontal axes of the lowest panels."""
    for axis in axes[-2:]:
        axis.set_xlabel(text)
        axis.tick_params(labelbottom=True)


def _limits(printed: Sequence[float], ours: Sequence[float]) -> tuple[float, float]:
    """Return the limits of an axis in percent.

    The limits enclose the printed numbers, and those of our numbers that are at most half their
    span away. A weak model farther away would crush the printed numbers into a corner. Without
    printed numbers, the limits enclose ours.
    """
    low, high = min(printed or ours, default=0.0), max(printed or ours, default=100.0)
    reach = (high - low) / 2
    enclosed = [value for value in ours if low - reach <= value <= high + reach]
    enclosed += [low, high]
    margin = max(1.0, 0.12 * (max(enclosed) - min(enclosed)))
    return max(0.0, min(enclosed) - margin), min(100.0, max(enclosed) + margin)


def _fit(axes: Iterable[Axes], marks: Sequence[_Mark]) -> None:
    """Set the limits of panels that show some of these runs."""
    printed = [mark for mark in marks if mark.printed]
    ours = [mark for mark in marks if not mark.printed]
    horizontal = _limits([mark.x for mark in printed], [mark.x for mark in ours])
    vertical = _limits([mark.y for mark in printed], [mark.y for mark in ours])
    for axis in axes:
        axis.set(xlim=horizontal, ylim=vertical)


def _on_edge(axis: Axes, mark: _Mark) -> _Mark:
    """Return a mark, moved to the nearest edge if it is outside the limits of the axes."""
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
    marks = list(chain.from_iterable(drawn.values()))
    for language in languages_of(mark.key for mark in marks):
        marks_of_language = _of_language(marks, language)
        axes = [axis for axis, shown in drawn.items() if set(shown) & set(marks_of_language)]
        _fit(axes, marks_of_language)
    drawn = {axis: [_on_edge(axis, mark) for mark in shown] for axis, shown in drawn.items()}
    to_label = {axis: _draw(axis, shown) for axis, shown in drawn.items()}
    _add_legend(figure, marks, shapes, data)
    printed_first = sorted(marks, key=lambda mark: not mark.printed)
    models = {mark.key.model: mark.model for mark in printed_first}
    numbers = {model: number for number, model in enumerate(models, start=1)}
    # Keep each number on one line with its name.
    labels = (
        f"{numbers[name]} {model.label}".replace(" ", "\N{NO-BREAK SPACE}")
        for name, model in models.items()
    )
    all_notes = [", ".join(labels) + "."]
    all_notes += _unreadable(runs, models)
    all_notes += _beyond(marks, chain.from_iterable(drawn.values()))
    all_notes += notes
    _note(figure, runs, all_notes)
    # Fix the layout first, because labels are placed in pixels.
    figure.draw_without_rendering()
    for axis, unlabeled in to_label.items():
        _name(axis, unlabeled, drawn[axis], numbers)
    return figure


def _add_legend(
    figure: Drawing, marks: Sequence[_Mark], shapes: Mapping[str, str], data: str
) -> None:
    """Draw the legend of marker shapes, and of the fill if there are printed runs."""
    import matplotlib as mpl
    from matplotlib.lines import Line2D

    used = {mark.marker for mark in marks}
    handles: list[Artist] = []
    names = []
    for marker, text in shapes.items():
        if marker in used:
            handles.append(Line2D([], [], color="#555555", marker=marker, ls="", ms=AREA**0.5))
            names.append(text)
    if any(mark.printed for mark in marks):
        # Bars show the fill, because each shape has a meaning.
        handles.append(mpl.patches.Patch(facecolor="#555555", edgecolor="#555555"))
        handles.append(mpl.patches.Patch(facecolor="none", edgecolor="#555555"))
        names.append("filled: ours, on the sample data" if data == "sample" else "filled: ours")
        names.append("hollow: printed")
    figure.set_figheight(figure.get_figheight() + 0.15 * (1 + len(names) // 2))
    figure.legend(handles, names, loc="outside upper center", ncols=2)


def _note(figure: Drawing, runs: Runs, notes: Sequence[str]) -> None:
    if not runs:
        notes = ["No language model was run.", *notes]
    add_notes(figure, notes)
