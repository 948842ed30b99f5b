"""Build the table of numbers stated in section 5 of ID10M-JAM."""

from collections.abc import Mapping, Sequence
from itertools import product
from statistics import median
from typing import NamedTuple, TypeVar

import pandas as pd

from pieline.core.measures import Measure
from pieline.core.records import load_records
from pieline.core.uncertainty import Spread
from pieline.languages.registry import get_language
from pieline.reporting.displays import Table
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.numbers import numbers_of, printed_numbers
from pieline.reporting.ours import OurNumbers
from pieline.reporting.published import first_table
from pieline.reporting.seeds import Ranges, median_tolerance
from pieline.reporting.tables import Cell, Group, Row, TableContent, headers
from pieline.studies.jam.metrics.scores import ACCURACY, DRIFT, JamMetrics
from pieline.studies.jam.settings import FINE_TUNED, JamSettings
from pieline.studies.jam.tables.common import (
    RunKey,
    Runs,
    confused_runs,
    counted_runs,
    languages_of,
    mean_over_seeds,
    not_counted,
    notes_on,
    obstacles_of,
    panel,
    prompted,
    title_of,
    with_panel,
)

T = TypeVar("T")
_PANELS = {"zero_shot": "", "few_shot_sc_cotbest": " few shot"}
"""Settings for which the paper states medians, with the ending of their labels."""


class _Median(NamedTuple):
    """A median over language models.

    Attributes:
        name: Name of the quantity.
        measure: Measure of the median itself.
        of_run: Measure of a run, of which the median is taken.
        column: Measure that Table 3 prints for a run.
    """

    name: str
    measure: Measure[float]
    of_run: Measure[JamMetrics]
    column: str


_MEDIANS = (
    _Median("accuracy", Measure("median_accuracy", float), ACCURACY, "success"),
    _Median("drift", Measure("median_drift", float), DRIFT, "negative_drift"),
)
_CONFUSING = Measure[int]("confusing_variants", lambda ours: ours, decimals=0)
_DRAWN = "both are medians of runs that deviate as printed"
"""Assumption on which the sampling range of a median is based."""
_JUDGED = (
    "Within sampling range does not mean equal: two medians differ by no more than 95% of pairs of"
    " draws do, if each printed run is drawn with its deviation (for a single seed: the pooled"
    " deviations of its language)."
)
WITHOUT_REASONING = "without reasoning models, which run only zero-shot, unlike the paper"
_UNKNOWN = "unknown of every run"


class Drawn(NamedTuple):
    """A printed mean with its deviation, and the rows to pool if it has no deviation."""

    spread: Spread
    pool: tuple[Spread, ...]


def text_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return medians over language models, and the numbers of confusing variants."""
    metrics, numbers = load_records(inputs.metrics, JamMetrics), OurNumbers(inputs.study)
    runs, printed = prompted(metrics), printed_numbers(inputs)
    obstacles = _obstacles(metrics, runs, _printed_spreads(inputs, printed, "success"))
    for language in _languages(runs):
        _add_confusing_variants(numbers, inputs, runs, language, obstacles)
        for statistic in _MEDIANS:
            spreads = _printed_spreads(inputs, printed, statistic.column)
            for setting in _PANELS:
                keys = {
                    "measure": statistic.measure.name,
                    "setting": setting,
                    "language": language,
                }
                drawn = _of_language(panel(spreads, setting, _reasoning(inputs)), language)
                means = _means(statistic.of_run, runs, inputs, setting, language)
                known = [mean for mean in means.values() if mean is not None]
                unknown = [
                    f"{statistic.name} of {inputs.labels()[key.model]} is unknown"
                    for key, mean in means.items()
                    if mean is None
                ]
                numbers.add(
                    keys,
                    [statistic.measure],
                    median(known) if known else None,
                    files=inputs.metrics,
                    obstacles=unknown + obstacles if known else obstacles,
                    not_run="" if known else _UNKNOWN,
                    ranges=_range_of_median(list(drawn.values()), keys, printed),
                )
    return numbers.frame()


def _add_confusing_variants(
    numbers: OurNumbers,
    inputs: DisplayInputs,
    runs: Runs,
    language: str,
    obstacles: Sequence[str],
) -> None:
    """Add the number of variants that confuse at least one counted run (see `counted_runs`)."""
    released = inputs.options["form"] == "released"
    counted = counted_runs(runs, () if released else _reasoning(inputs))
    counts = confused_runs(counted, language)
    if not counts:
        numbers.add(
            {"language": language},
            [_CONFUSING],
            None,
            files=inputs.metrics,
            obstacles=obstacles,
            not_run=_UNKNOWN,
        )
        return
    reasons = [WITHOUT_REASONING] if released else []
    for name, label in not_counted(runs, counted, inputs):
        if name == language:
            reasons.append(f"{label} has no such run")
    numbers.add(
        {"language": language},
        [_CONFUSING],
        sum(count > 0 for count in counts.values()),
        files=inputs.metrics,
        obstacles=[*reasons, *obstacles],
    )


def _means(
    measure: Measure[JamMetrics], runs: Runs, inputs: DisplayInputs, setting: str, language: str
) -> dict[RunKey, float | None]:
    """Return the mean over seeds of each run in the panel of a setting and language."""
    shown = _of_language(panel(runs, setting, _reasoning(inputs)), language)
    return {key: mean_over_seeds(seeds, measure) for key, seeds in shown.items()}


def _reasoning(inputs: DisplayInputs) -> set[str]:
    return {model.name for model in inputs.models if model.reasoning}


def _of_language(runs: Mapping[RunKey, T], language: str) -> dict[RunKey, T]:
    return {key: value for key, value in runs.items() if key.language == language}


def _languages(runs: Runs) -> list[str]:
    return sorted({*JamSettings().languages, *languages_of(runs)})


def _obstacles(
    metrics: Sequence[JamMetrics], runs: Runs, printed: Mapping[RunKey, Drawn]
) -> list[str]:
    """Return why numbers over all runs are not comparable with the printed ones."""
    theirs = {(key.setting, key.model) for key in printed}
    ours = {(key.setting, key.model) for key in runs}
    obstacles = obstacles_of(
        *(item for item in metrics if item.language in JamSettings().languages)
    )
    if theirs - ours:
        obstacles.append(f"{len(theirs & ours)} of the paper's {len(theirs)} runs were made")
    if ours - theirs:
        obstacles.append("with runs that the paper does not have")
    return obstacles


def _printed_spreads(
    inputs: DisplayInputs, printed: pd.DataFrame, measure: str
) -> dict[RunKey, Drawn]:
    """Return what Table 3 prints for the described language models, by run."""
    models = inputs.labels()
    in_table_3 = printed["shown_by"].map(first_table) == "jam_drift"
    rows = printed[in_table_3 & (printed["measure"] == measure)]
    spreads = {}
    for row in rows.to_dict("records"):
        if row["setting"] != FINE_TUNED and row["model"] in models:
            key = RunKey(row["setting"], row["model"], row["language"])
            spreads[key] = Drawn(row["spread"], row["pool"])
    return spreads


def _range_of_median(
    rows: Sequence[Drawn], keys: Mapping[str, str], printed: pd.DataFrame
) -> Ranges:
    """Return the sampling range of the median of printed rows; empty if none is printed."""
    values = printed.set_index(["measure", "setting", "language"])["printed"].to_dict()
    middle = values.get((keys["measure"], keys["setting"], keys["language"]))
    if middle is None or not rows:
        return {}
    half = median_tolerance([row.spread for row in rows], rows[0].pool)
    if keys["measure"] == "median_accuracy":  # Table 3 prints successes.
        half *= 100 / values.get((f"variants_{keys['language']}", "", ""), 100)
    half += 0.005  # The printed median is rounded.
    return {_DRAWN: (middle - half, middle + half)}


def text(numbers: pd.DataFrame, inputs: DisplayInputs) -> TableContent:
    """Lay out the table of medians over language models, and of confusing variants."""
    metrics = load_records(inputs.metrics, JamMetrics)
    runs, labels = prompted(metrics), inputs.labels()
    models_of_medians = {}
    for language, setting in product(_languages(runs), _PANELS):
        median_name = f"{get_language(language).label}, {title_of(setting)}"
        shown = _of_language(panel(runs, setting, _reasoning(inputs)), language)
        models_of_medians[median_name] = sorted(labels[key.model] for key in shown)
    rows = []
    for number in numbers_of(numbers):
        label = f"{number.measure} {number.language}{_PANELS.get(number.setting, '')}"
        rows.append(Row((label.replace("_", " "),), (Cell(number),)))
    notes = []
    if any(item.dataset_is_released for item in metrics):
        notes.append(_JUDGED)
    notes += _different_models(models_of_medians)
    notes += notes_on(metrics, inputs)
    return TableContent(
        heads=(headers(["Number", "ours" if inputs.data == "own" else "ours (printed)"]),),
        groups=(Group(tuple(rows)),),
        caption="Medians over language models (accuracy on originals and negative drift, in per"
        " cent) and the number of hard variants that confuse at least one of them. Reasoning models"
        " are in the medians of both settings, as in Figure 2.",
        notes=tuple(notes),
        wide=False,
    )


TEXT_TABLE = Table(
    "jam_text",
    "Section 5",
    "Numbers of the running text that follow from the figures.",
    text,
    with_panel,
    text_numbers,
    printed=("jam_table3", "text_numbers"),
)


def _different_models(models_of_medians: Mapping[str, Sequence[str]]) -> list[str]:
    """Return a note with the models of each median, if medians are over different models.

    `models_of_medians` has the labels of the models by language and setting; a median without
    models has no number.
    """
    models = {name: ", ".join(labels) for name, labels in models_of_medians.items() if labels}
    if len(set(models.values())) < 2:
        return []
    medians = "; ".join(f"{name}: {labels}" for name, labels in models.items())
    return [f"The medians are over different models. {medians}."]
