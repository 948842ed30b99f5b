"""Draw ID10M-JAM's Figures 2 (accuracy and drift), 3 (confused models) and 6 (AC and MX)."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
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
    count_confused_runs,
    count_unreadable,
    counted_runs,
    languages_of,
    mean_over_seeds,
    models_not_counted,
    notes_on,
    panel_inputs,
    printed_runs,
    prompted_runs,
    reasoning_models,
    runs_in_panel,
    title_of,
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
"""Area of a marker in square points, unless the area shows the published size of the model."""


def billions(parameters: str | None) -> float | None:
    """Convert a parameter count as printed in Table 7 to billions; None if there is no count.

    "17B active 109B overall" yields 109, the overall count; "150-250B" yields 200, the midpoint.
    """
    counts = re.findall(r"(?:([\d.]+)-)?([\d.]+)([MB])", parameters or "")
    if not counts:
        return None
    lower_end, count, unit = counts[-1]  # the overall count is the last one
    number = (float(lower_end) + float(count)) / 2 if lower_end else float(count)
    return number / 1000 if unit == "M" else number


def marker_area(parameters: str | None) -> float:
    """Return the area of a model's marker in square points, given the printed parameter count.

    The area is 8 below a billion parameters, and grows by 10 with each order of magnitude. For an
    unknown count, the area is `AREA`.
    """
    size = billions(parameters)
    if size is None:
        return AREA
    tenths_of_billions = int(10 * size)
    digits = len(str(tenths_of_billions))
    return 8 + 10 * (digits - 1)


class _Mark(NamedTuple):
    """A run in a scatter plot, either printed in the paper or ours.

    `suffix` is appended to the number that labels the marker (see `_suffix`).
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

    There is a panel for each setting and language (see `_panels_of_drift`). The shape of a marker
    shows whether the model reasons, and its area the number of parameters. Printed runs are hollow
    and drawn behind our runs. Runs with undefined drift are omitted.
    """
    runs = prompted_runs(load_records(inputs.metrics, JamMetrics))
    marks_by_panel = _panels_of_drift(runs, inputs)
    shown = {panel: marks for panel, marks in marks_by_panel.items() if marks}
    figure, axes = _create_panels(max(1, len(shown)), height=1.4)
    marks_by_axis: dict[Axes, Sequence[_Mark]] = {}
    for axis, ((setting, language), marks) in zip(axes, shown.items(), strict=False):
        axis.set_title(f"{get_language(language).label}\n{title_of(setting)}", fontsize=SMALLEST)
        marks_by_axis[axis] = marks
    _label_axes(axes, x="negative drift (%)", y="accuracy (%)")
    shapes = {MARKERS["zero_shot"]: "no reasoning", MARKERS["reasoning"]: "reasoning"}
    notes = ["Accuracy: on the originals. Larger markers: more parameters."]
    unmeasured = [
        f"{get_language(language).label} {title_of(setting)}"
        for (setting, language), marks in marks_by_panel.items()
        if all(mark.printed for mark in marks)
    ]
    # If there are no runs, another note states so.
    if runs and unmeasured:
        notes.append(f"Without a measured drift: {', '.join(unmeasured)}.")
    notes += _notes(runs, inputs)
    return _draw_scatter_plots(figure, runs, marks_by_axis, shapes, notes, data=inputs.data)


def _panels_of_drift(runs: Runs, inputs: DisplayInputs) -> dict[tuple[str, str], list[_Mark]]:
    """Return the marks in each panel of Figure 2, by setting and language.

    In each panel, the printed marks come first. As in the paper, reasoning models are in the panels
    of both settings of the paper, although they run only zero-shot.
    """
    printed, ours = _printed_drifts(inputs), _our_drifts(runs, inputs)
    reasoning = reasoning_models(inputs)
    settings_with_panels = {*_PAPER_SETTINGS, *(key.setting for key in runs)}
    settings = [setting for setting in GROUPS if setting in settings_with_panels]
    languages = languages_of([*printed, *runs]) or inputs.options["languages"]
    panels = {}
    for setting, language in product(settings, languages):
        shown_reasoning = reasoning if setting in _PAPER_SETTINGS else ()
        marks = [
            *runs_in_panel(printed, setting, shown_reasoning).values(),
            *runs_in_panel(ours, setting, shown_reasoning).values(),
        ]
        panels[setting, language] = _of_language(marks, language)
    return panels


ACCURACY_VS_DRIFT = Figure(
    "jam_accuracy_vs_drift",
    "Figure 2",
    "Accuracy on the originals against negative drift.",
    accuracy_vs_drift,
    panel_inputs,
    printed=("jam_table3", "text_numbers"),
)


_PAPER_SETTINGS = ("zero_shot", "few_shot_sc_cotbest")
"""Prompt settings of the panels in the paper's Figure 2."""


def _printed_drifts(inputs: DisplayInputs) -> dict[RunKey, _Mark]:
    """Return the mark of each printed run in Figure 2, by run."""
    models = _models(inputs)
    text_numbers = inputs.printed("text_numbers", "id")
    marks = {}
    for key, row in _printed_rows(inputs, "jam_table3").items():
        id_of_variants = (f"jam.variants_{key.language}",)
        variants = text_numbers[id_of_variants]["value"]
        # The paper prints successes, the number of variants of correctly judged originals.
        accuracy = 100 * row["success"] / variants
        drift = row["negative_drift_pct"]
        marks[key] = _drift_mark(key, models[key.model], drift, accuracy, printed=True)
    return marks


def _our_drifts(runs: Runs, inputs: DisplayInputs) -> dict[RunKey, _Mark]:
    """Return the mark of each of our runs with a defined drift in Figure 2, by run."""
    models = _models(inputs)
    marks = {}
    for key, seeds in runs.items():
        drift, accuracy = mean_over_seeds(seeds, DRIFT), mean_over_seeds(seeds, ACCURACY)
        if drift is not None and accuracy is not None:
            mark = _drift_mark(key, models[key.model], drift, accuracy, printed=False)
            marks[key] = mark._replace(suffix=_suffix(seeds))
    return marks


def _drift_mark(
    key: RunKey, model: ModelDescription, drift: float, accuracy: float, *, printed: bool
) -> _Mark:
    marker = MARKERS["reasoning" if model.reasoning else "zero_shot"]
    return _Mark(key, model, drift, accuracy, printed, marker, marker_area(model.parameters))


def _suffix(seeds: Sequence[JamMetrics]) -> str:
    """Return "*" if a run has unreadable answers; otherwise ""."""
    unreadable, _ = count_unreadable(seeds)
    return "*" if unreadable else ""


def _of_language(marks: Iterable[_Mark], language: str) -> list[_Mark]:
    return [mark for mark in marks if mark.key.language == language]


def _printed_rows(inputs: DisplayInputs, file: str) -> dict[RunKey, dict[str, float]]:
    """Return the printed row of each run of an LLM in the figure's languages, by run.

    `file` is the name of the printed table.
    """
    return {
        key: row
        for key, row in printed_runs(inputs, file).items()
        if key.setting != "fine_tuned" and key.language in inputs.options["languages"]
    }


def _models(inputs: DisplayInputs) -> dict[str, ModelDescription]:
    return {model.name: model for model in inputs.models}


def confused_models(inputs: DisplayInputs) -> Drawing:
    """Draw Figure 3: a histogram of hard variants by the number of models that they confuse.

    `counted_runs` selects the runs. As in the paper, variants that confuse no model are omitted. If
    there are at most two bars in total, the figure states them as text.
    """
    metrics = load_records(inputs.metrics, JamMetrics)
    all_runs = prompted_runs(metrics)
    models = _models(inputs)
    is_authors_form = inputs.options["form"] == "released"
    counted = counted_runs(all_runs, inputs)
    printed = {} if is_authors_form else inputs.printed("text_numbers", "id")
    bars: dict[str, list[int]] = {}
    titles: dict[str, str] = {}
    for language in languages_of(by_run(metrics)):
        confused_models_by_variant = count_confused_runs(counted, language)
        bars[language] = _variants_by_confused_models(confused_models_by_variant.values())
        # Without a counted run, the total is unknown.
        total = sum(bars[language]) if confused_models_by_variant else "–"
        printed_total = printed.get((f"jam.confusing_variants_{language}",))
        second_line = f"\n(printed: {printed_total['value']:g})" if printed_total else ""
        titles[language] = f"{get_language(language).label}: {total} variants{second_line}"
    notes = _notes_on_counted_runs(all_runs, counted, inputs)
    number_of_bars = sum(len(heights) for heights in bars.values())
    if number_of_bars <= _MOST_IN_WORDS:
        figure = _state_as_text(bars, titles)
    else:
        nonempty_bars = {language: heights for language, heights in bars.items() if heights}
        figure = _draw_histograms(nonempty_bars, titles)
        for language, heights in bars.items():
            if not heights:
                title_in_one_line = titles[language].replace("\n", " ")
                notes.append(f"{title_in_one_line}.")
    notes += _notes_on_unreadable(all_runs, models)
    notes += _notes(counted, inputs)
    _add_all_notes(figure, all_runs, notes)
    return figure


def _notes_on_counted_runs(all_runs: Runs, counted: Runs, inputs: DisplayInputs) -> list[str]:
    """Return notes on the runs that Figure 3 counts, and on the models that it does not count."""
    is_authors_form = inputs.options["form"] == "released"
    note_on_reasoning = "" if is_authors_form else "; reasoning models zero-shot"
    notes = [f"{title_of(COUNTED_SETTING)}, seed {COUNTED_SEED}{note_on_reasoning}."]
    uncounted = [
        f"{label} ({get_language(language).label})"
        for language, label in models_not_counted(all_runs, counted, inputs)
    ]
    if uncounted:
        notes.append(f"Without such a run, so not counted: {', '.join(uncounted)}.")
    return notes


def _variants_by_confused_models(confused_models: Iterable[int]) -> list[int]:
    """Return how many variants confuse exactly one model, exactly two models, and so on.

    `confused_models` contains the number of models that each variant confuses.
    """
    variants_by_number = Counter(confused_models)
    most_models = max(variants_by_number, default=0)
    return [variants_by_number[number] for number in range(1, most_models + 1)]


CONFUSED_MODELS = Figure(
    "jam_confused_models",
    "Figure 3",
    "How many models each hard variant confuses.",
    confused_models,
    panel_inputs,
    printed=("text_numbers",),
)


_MOST_IN_WORDS = 2
"""Largest number of bars whose heights are stated as text instead of drawn."""


def _draw_histograms(bars: Mapping[str, Sequence[int]], titles: Mapping[str, str]) -> Drawing:
    """Draw a histogram for each language.

    Args:
        bars: Heights of the bars by language: the number of variants that confuse one model, two
            models, and so on.
        titles: Titles of the panels by language.
    """
    from matplotlib.ticker import MaxNLocator

    figure, axes = _create_panels(len(bars), height=1.7, shared=True)
    for axis, (language, heights) in zip(axes, bars.items(), strict=True):
        axis.bar(range(1, len(heights) + 1), heights, color=_color(language), width=0.8)
        for number_of_models, height in enumerate(heights, start=1):
            axis.text(number_of_models, height, str(height), ha="center", va="bottom", fontsize=6)
        axis.set_title(titles[language], fontsize=6.5)
        axis.yaxis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 5, 10]))
        axis.grid(axis="x", visible=False)
    _label_axes(axes, x="confused models", y="hard variants")
    # All panels share the limits and ticks of the first one.
    most_models = max(len(heights) for heights in bars.values())
    tick_distance = 1 + most_models // 6
    axes[0].set(
        xlim=(0.4, most_models + 0.6),
        xticks=range(1, most_models + 1, tick_distance),
        ylim=(0, max(1.0, axes[0].get_ylim()[1])),
    )
    return figure


def _state_as_text(bars: Mapping[str, Sequence[int]], titles: Mapping[str, str]) -> Drawing:
    """Return a figure with a line of text per language, which states the heights of the bars."""
    import matplotlib.pyplot as plt

    lines = []
    for language, heights in bars.items():
        line = titles[language].replace("\n", " ")
        counts = [
            f"{height} confuse {pluralize(number_of_models, 'model')}"
            for number_of_models, height in enumerate(heights, start=1)
        ]
        if counts:
            line += f": {', '.join(counts)}"
        lines.append(line)
    figure = plt.figure(figsize=(COLUMN_WIDTH, 0.12 * (len(lines) + 1)), layout="constrained")
    figure.suptitle("\n".join(lines), x=0.01, ha="left", fontsize=7)
    return figure


def _notes_on_unreadable(runs: Runs, models: Mapping[str, ModelDescription]) -> list[str]:
    """Return a note on the unreadable answers of each model; empty without unreadable answers."""
    counts_by_model = defaultdict(list)
    for key, seeds in runs.items():
        unreadable, answers = count_unreadable(seeds)
        if unreadable:
            run = f"{get_language(key.language).label} {title_of(key.setting)}"
            counts_by_model[models[key.model].label].append(f"{run} {unreadable} of {answers}")
    if not counts_by_model:
        return []
    by_model = [f"{label}: {', '.join(counts)}" for label, counts in counts_by_model.items()]
    return [f"* Unreadable answers of {'; '.join(by_model)}."]


def _notes(runs: Runs, inputs: DisplayInputs) -> tuple[str, ...]:
    """Return the notes on runs that tables and figures share (see `notes_on`)."""
    return notes_on([metrics for seeds in runs.values() for metrics in seeds], inputs)


def all_vs_mixed(inputs: DisplayInputs) -> Drawing:
    """Draw Figure 6: the shares of all-confused against mixed originals, one panel per language.

    All reasoning models have the same marker shape. For other models, the shape shows the prompt
    setting. Printed runs are hollow and drawn behind our runs.
    """
    runs = prompted_runs(load_records(inputs.metrics, JamMetrics))
    models = _models(inputs)
    marks = []
    for key, printed_counts in _printed_rows(inputs, "jam_table6").items():
        if _number_of_originals(printed_counts):
            marks.append(_confusion_mark(key, models[key.model], printed_counts, printed=True))
    for key, seeds in runs.items():
        our_counts = {
            name: fmean(getattr(metrics.confusion, name) for metrics in seeds)
            for name in Confusion.model_fields
        }
        if _number_of_originals(our_counts):
            mark = _confusion_mark(key, models[key.model], our_counts, printed=False)
            marks.append(mark._replace(suffix=_suffix(seeds)))
    languages = languages_of(mark.key for mark in marks)
    figure, axes = _create_panels(max(1, len(languages)), height=1.9)
    marks_by_axis = {}
    for axis, language in zip(axes, languages, strict=False):
        axis.set_title(get_language(language).label)
        marks_by_axis[axis] = _of_language(marks, language)
    _label_axes(axes, x="mixed (MX), % of originals", y="all confused (AC), % of originals")
    shapes = {marker: GROUPS[group] for group, marker in MARKERS.items()}
    return _draw_scatter_plots(
        figure, runs, marks_by_axis, shapes, _notes(runs, inputs), data=inputs.data
    )


ALL_VS_MIXED = Figure(
    "jam_all_vs_mixed",
    "Figure 6",
    "All-confused against partly confused originals.",
    all_vs_mixed,
    panel_inputs,
    printed=("jam_table6",),
)


def _confusion_mark(
    key: RunKey, model: ModelDescription, counts: Mapping[str, float], *, printed: bool
) -> _Mark:
    """Return the mark of a run: its mixed and all-confused originals in percent of all originals.

    `counts` contains the numbers of all-confused, none-confused and mixed originals.
    """
    originals = _number_of_originals(counts)
    mixed = 100 * counts["mixed"] / originals
    all_confused = 100 * counts["all_confused"] / originals
    marker = MARKERS["reasoning" if model.reasoning else key.setting]
    return _Mark(key, model, mixed, all_confused, printed, marker, AREA)


def _number_of_originals(counts: Mapping[str, float]) -> float:
    """Return the sum of the numbers of all-confused, none-confused and mixed originals."""
    return sum(counts[name] for name in Confusion.model_fields)


def _color(language: str) -> str:
    return COLORS[language_names().index(language) % len(COLORS)]


def _create_panels(
    number: int, *, height: float, shared: bool = False
) -> tuple[Drawing, list[Axes]]:
    """Return a figure and the axes of its panels, which are in up to two columns.

    Args:
        number: Number of panels.
        height: Height of a panel in inches.
        shared: Whether all panels have the same limits and ticks.
    """
    import matplotlib.pyplot as plt

    columns = min(2, number)
    rows = math.ceil(number / columns)
    figure, axes = plt.subplots(
        rows,
        columns,
        figsize=(COLUMN_WIDTH, height * rows),
        sharex=shared,
        sharey=shared,
        layout="constrained",
        squeeze=False,
    )
    for axis in axes.flat[number:]:
        axis.axis("off")
    return figure, list(axes.flat[:number])


def _notes_on_moved(marks: Iterable[_Mark], drawn_marks: Iterable[_Mark]) -> list[str]:
    """Return a note on the runs that were moved to the edge of a panel; empty if there are none.

    Args:
        marks: Marks at their true positions.
        drawn_marks: The same marks at the positions where they are drawn.
    """
    moved_by_model: dict[str, list[str]] = defaultdict(list)
    for mark, drawn_mark in zip(marks, drawn_marks, strict=True):
        if mark != drawn_mark:
            run = f"{get_language(mark.key.language).label} {title_of(mark.key.setting)}"
            moved_by_model[mark.model.label].append(f"{run} ({mark.x:.0f}, {mark.y:.0f})")
    if not moved_by_model:
        return []
    by_model = []
    for label, runs in moved_by_model.items():
        # A run of a reasoning model may be in two panels.
        distinct_runs = dict.fromkeys(runs)
        by_model.append(f"{label}: {', '.join(distinct_runs)}")
    return [f"On the edge, because beyond the axes (x, y): {'; '.join(by_model)}."]


def _label_axes(axes: Sequence[Axes], *, x: str, y: str) -> None:
    """Label the vertical axes of the left panels, and the horizontal axes of the lowest panels.

    `axes` are the panels from left to right and top to bottom, in up to two columns.
    """
    for axis in axes[::2]:
        axis.set_ylabel(y)
    for axis in axes[-2:]:
        axis.set_xlabel(x)
        axis.tick_params(labelbottom=True)


def _limits(printed: Sequence[float], ours: Sequence[float]) -> tuple[float, float]:
    """Return the limits of an axis in percent.

    The limits enclose the printed numbers, and our numbers whose distance from the printed numbers
    is at most half the span of the printed numbers. A weak model that is farther away would
    compress the printed numbers into a corner. Without printed numbers, the limits enclose all our
    numbers.
    """
    reference = printed or ours
    lowest, highest = min(reference, default=0.0), max(reference, default=100.0)
    max_distance = (highest - lowest) / 2
    near_numbers = [
        number for number in ours if lowest - max_distance <= number <= highest + max_distance
    ]
    enclosed = [lowest, highest, *near_numbers]
    margin = max(1.0, 0.12 * (max(enclosed) - min(enclosed)))
    return max(0.0, min(enclosed) - margin), min(100.0, max(enclosed) + margin)


def _set_limits(axes: Iterable[Axes], marks: Sequence[_Mark]) -> None:
    """Set the limits of panels so that they show the given marks (see `_limits`)."""
    printed = [mark for mark in marks if mark.printed]
    ours = [mark for mark in marks if not mark.printed]
    horizontal = _limits([mark.x for mark in printed], [mark.x for mark in ours])
    vertical = _limits([mark.y for mark in printed], [mark.y for mark in ours])
    for axis in axes:
        axis.set(xlim=horizontal, ylim=vertical)


def _move_to_edge(axis: Axes, mark: _Mark) -> _Mark:
    """Return a mark at its position or, if that is outside the panel, at the nearest edge."""
    (left, right), (bottom, top) = axis.get_xlim(), axis.get_ylim()
    return mark._replace(x=min(max(mark.x, left), right), y=min(max(mark.y, bottom), top))


def _printed_first(marks: Iterable[_Mark]) -> list[_Mark]:
    printed = [mark for mark in marks if mark.printed]
    ours = [mark for mark in marks if not mark.printed]
    return printed + ours


def _draw_marks(axis: Axes, marks: Sequence[_Mark]) -> None:
    """Draw the markers of a panel, and a line from each printed run to the same run of ours."""
    our_mark_by_run = {mark.key: mark for mark in marks if not mark.printed}
    for mark in _printed_first(marks):
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
        ours = our_mark_by_run.get(mark.key)
        if mark.printed and ours:
            axis.plot([mark.x, ours.x], [mark.y, ours.y], color=color, lw=0.5, alpha=0.5, zorder=1)


def _label_marks(axis: Axes, marks: Sequence[_Mark], numbers: Mapping[str, int]) -> None:
    """Label the markers of a panel with the numbers of the models.

    A printed run has no label if the same run of ours is in the panel. Labels are moved so that
    they do not cover markers. The layout of the figure must be final, because the positions of
    labels are computed in pixels.

    Args:
        axis: Panel.
        marks: Marks in the panel, at the positions where they are drawn.
        numbers: Number of each model, by name.
    """
    from adjustText import adjust_text
    from matplotlib import patheffects
    from matplotlib.transforms import Bbox

    our_runs = {mark.key for mark in marks if not mark.printed}
    labeled = [mark for mark in marks if not mark.printed or mark.key not in our_runs]
    if not labeled:
        return
    halo = [patheffects.withStroke(linewidth=1.2, foreground="white")]
    labels = [
        axis.text(
            mark.x,
            mark.y,
            f"{numbers[mark.key.model]}{mark.suffix}",
            fontsize=SMALLEST,
            weight="normal" if mark.printed else "bold",
            path_effects=halo,
            zorder=4,
        )
        for mark in labeled
    ]
    pixels_per_point = axis.figure.dpi / 72
    marker_boxes = []
    for mark in marks:
        x, y = axis.transData.transform((mark.x, mark.y))
        # The width of a marker is about the square root of its area.
        half_width = mark.area**0.5 / 2 * pixels_per_point
        marker_boxes.append(
            Bbox.from_extents(x - half_width, y - half_width, x + half_width, y + half_width)
        )
    adjust_text(
        labels,
        x=[mark.x for mark in marks],
        y=[mark.y for mark in marks],
        target_x=[mark.x for mark in labeled],
        target_y=[mark.y for mark in labeled],
        objects=marker_boxes,
        ax=axis,
        arrowprops={"arrowstyle": "-", "color": "#999999", "lw": 0.4, "zorder": 1},
        expand=(1.1, 1.2),
        iter_lim=600,
    )


def _draw_scatter_plots(
    figure: Drawing,
    runs: Runs,
    marks_by_axis: Mapping[Axes, Sequence[_Mark]],
    shapes: Mapping[str, str],
    notes: Sequence[str],
    *,
    data: str,
) -> Drawing:
    """Draw the marks of all panels, the legend and the notes.

    Numbers label the markers; the first note lists the models by these numbers.

    Args:
        figure: Figure whose panels are empty.
        runs: Our runs.
        marks_by_axis: Marks to draw in each panel.
        shapes: Meaning of each marker shape, by marker.
        notes: Notes to print below the figure.
        data: Data of our runs: `sample`, `released` or `own`.
    """
    marks = [mark for marks_in_panel in marks_by_axis.values() for mark in marks_in_panel]
    for language in languages_of(mark.key for mark in marks):
        axes = [
            axis
            for axis, marks_in_panel in marks_by_axis.items()
            if _of_language(marks_in_panel, language)
        ]
        _set_limits(axes, _of_language(marks, language))
    drawn_marks_by_axis = {}
    drawn_marks = []
    for axis, marks_in_panel in marks_by_axis.items():
        moved_marks = [_move_to_edge(axis, mark) for mark in marks_in_panel]
        _draw_marks(axis, moved_marks)
        drawn_marks_by_axis[axis] = moved_marks
        drawn_marks += moved_marks
    _add_legend(figure, marks, shapes, data)
    models = {mark.key.model: mark.model for mark in _printed_first(marks)}
    numbers = {name: number for number, name in enumerate(models, start=1)}
    # Keep each number on one line with the label of the model.
    numbered_models = [
        f"{numbers[name]} {model.label}".replace(" ", "\N{NO-BREAK SPACE}")
        for name, model in models.items()
    ]
    all_notes = [f"{', '.join(numbered_models)}."]
    all_notes += _notes_on_unreadable(runs, models)
    all_notes += _notes_on_moved(marks, drawn_marks)
    all_notes += notes
    _add_all_notes(figure, runs, all_notes)
    figure.draw_without_rendering()  # makes the layout final
    for axis, moved_marks in drawn_marks_by_axis.items():
        _label_marks(axis, moved_marks, numbers)
    return figure


def _add_legend(
    figure: Drawing, marks: Sequence[_Mark], shapes: Mapping[str, str], data: str
) -> None:
    """Draw the legend of marker shapes and, with printed runs, of filled and hollow markers.

    `shapes` contains the meaning of each marker shape. `data` is the data of our runs: `sample`,
    `released` or `own`.
    """
    import matplotlib as mpl
    from matplotlib.lines import Line2D

    used_markers = {mark.marker for mark in marks}
    marker_size = AREA**0.5  # width in points
    handles: list[Artist] = []
    labels = []
    for marker, meaning in shapes.items():
        if marker in used_markers:
            handles.append(Line2D([], [], color="#555555", marker=marker, ls="", ms=marker_size))
            labels.append(meaning)
    if any(mark.printed for mark in marks):
        # Rectangles show the fill, because each marker shape already has a meaning.
        handles.append(mpl.patches.Patch(facecolor="#555555", edgecolor="#555555"))
        handles.append(mpl.patches.Patch(facecolor="none", edgecolor="#555555"))
        labels.append("filled: ours, on the sample data" if data == "sample" else "filled: ours")
        labels.append("hollow: printed")
    lines = 1 + len(labels) // 2  # in two columns; a line is 0.15 inches high
    figure.set_figheight(figure.get_figheight() + 0.15 * lines)
    figure.legend(handles, labels, loc="outside upper center", ncols=2)


def _add_all_notes(figure: Drawing, runs: Runs, notes: Sequence[str]) -> None:
    """Add notes below a figure, and a note that no model was run if `runs` is empty."""
    if not runs:
        notes = ["No language model was run.", *notes]
    add_notes(figure, notes)
