"""Build the table of numbers stated in section 5 of ID10M-JAM."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import NamedTuple

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

_PANELS = {"zero_shot": "", "few_shot_sc_cotbest": " few shot"}
"""Settings for which the paper states medians, with the ending of their labels."""
_MEDIANS = {
    Measure[float]("median_accuracy", lambda ours: ours): (ACCURACY, "success"),
    Measure[float]("median_drift", lambda ours: ours): (DRIFT, "negative_drift"),
}
"""Medians, with the measure of a run and the one that Table 3 prints."""
_CONFUSING = Measure[int]("confusing_variants", lambda ours: ours, decimals=0)
_DRAWN = "both are medians of runs that deviate as printed"
"""Assumption under which a median is within sampling range."""
_JUDGED = (
    "Within sampling range does not mean equal: two medians differ by no more than 95% of pairs of"
    " draws do, if each printed run is drawn with its deviation (for a single seed: the pooled"
    " deviations of its language)."
)
WITHOUT_REASONING = "without reasoning models, which run only zero-shot, unlike the paper"
_UNKNOWN = "unknown of every run"


class Drawn(NamedTuple):
    """A printed mean with its deviation, and the rows whose pooled deviation replaces none."""

    spread: Spread
    pool: tuple[Spread, ...]


def text_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return medians over language models, and the numbers of confusing variants."""
    metrics, numbers = load_records(inputs.metrics, JamMetrics), OurNumbers(inputs.study)
    runs, printed = prompted(metrics), printed_numbers(inputs)
    obstacles = _obstacles(metrics, runs, _printed_spreads(inputs, printed, "success"))
    reasoning = {model.name for model in inputs.models if model.reasoning}
    released = inputs.options["form"] == "released"
    counted = counted_runs(runs, () if released else reasoning)
    uncounted = not_counted(runs, counted, inputs)
    for language in _languages(runs):
        counts = confused_runs(counted, language)
        confusing = sum(count > 0 for count in counts.values()) if counts else None
        none = [f"{label} has no such run" for name, label in uncounted if name == language]
        own = [*([WITHOUT_REASONING] if released else []), *none] if counts else []
        numbers.add(
            {"language": language},
            [_CONFUSING],
            confusing,
            files=inputs.metrics,
            obstacles=[*own, *obstacles],
            not_run="" if counts else _UNKNOWN,
        )
        for median_of, (measure, column) in _MEDIANS.items():
            name = median_of.name.removeprefix("median_")
            theirs = _printed_spreads(inputs, printed, column)
            for setting in _PANELS:
                keys = {"measure": median_of.name, "setting": setting, "language": language}
                means = {
                    key: mean_over_seeds(seeds, measure)
                    for key, seeds in panel(runs, setting, reasoning).items()
                    if key.language == language
                }
                known = [mean for mean in means.values() if mean is not None]
                unknown = (
                    f"{name} of {inputs.labels()[key.model]} is unknown"
                    for key, mean in means.items()
                    if mean is None
                )
                drawn = [
                    row
                    for key, row in panel(theirs, setting, reasoning).items()
                    if key.language == language
                ]
                numbers.add(
                    keys,
                    [median_of],
                    median(known) if known else None,
                    files=inputs.metrics,
                    obstacles=[*(unknown if known else ()), *obstacles],
                    not_run="" if known else _UNKNOWN,
                    ranges=_range_of_median(drawn, keys, printed),
                )
    return numbers.frame()


def _languages(runs: Runs) -> list[str]:
    return sorted({*JamSettings().languages, *languages_of(runs)})


def _obstacles(
    metrics: Sequence[JamMetrics], runs: Runs, printed: Mapping[RunKey, Drawn]
) -> list[str]:
    """Return why numbers over all runs are not comparable with the printed ones."""
    theirs, ours = ({key[:2] for key in of} for of in (printed, runs))
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
    """Return what Table 3 prints of the described language models, and the rows to pool with it."""
    models = inputs.labels()
    rows = printed[
        (printed["shown_by"].map(first_table) == "jam_drift") & (printed["measure"] == measure)
    ]
    return {
        RunKey(row["setting"], row["model"], row["language"]): Drawn(row["spread"], row["pool"])
        for row in rows.to_dict("records")
        if row["setting"] != FINE_TUNED and row["model"] in models
    }


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
    reasoning = {model.name for model in inputs.models if model.reasoning}
    averaged = {
        f"{get_language(language).label}, {title_of(setting)}": sorted(
            labels[key.model] for key in panel(runs, setting, reasoning) if key.language == language
        )
        for language in _languages(runs)
        for setting in _PANELS
    }
    rows = [
        Row(
            (
                f"{number.measure} {number.language}{_PANELS.get(number.setting, '')}".replace(
                    "_", " "
                ),
            ),
            (Cell(number),),
        )
        for number in numbers_of(numbers)
    ]
    return TableContent(
        heads=(headers(["Number", "ours" if inputs.data == "own" else "ours (printed)"]),),
        groups=(Group(tuple(rows)),),
        caption="Medians over language models (accuracy on originals and negative drift, in per"
        " cent) and the number of hard variants that confuse at least one of them. Reasoning models"
        " are in the medians of both settings, as in Figure 2.",
        notes=(
            *([_JUDGED] if any(item.dataset_is_released for item in metrics) else []),
            *_different_models(averaged),
            *notes_on(metrics, inputs),
        ),
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


def _different_models(averaged: Mapping[str, Sequence[str]]) -> list[str]:
    """Return a note with the models of each median, if medians are over different models.

    `averaged` lists the labels of the models by language and setting; medians without models have
    no number.
    """
    listed = {where: ", ".join(labels) for where, labels in averaged.items() if labels}
    if len(set(listed.values())) < 2:
        return []
    medians = "; ".join(f"{where}: {labels}" for where, labels in listed.items())
    return [f"The medians are over different models. {medians}."]
