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
    count_confused_runs,
    counted_runs,
    languages_of,
    mean_over_seeds,
    models_not_counted,
    notes_on,
    obstacles_of,
    panel_inputs,
    prompted_runs,
    reasoning_models,
    runs_in_panel,
    title_of,
)

T = TypeVar("T")
_PANELS = {"zero_shot": "", "few_shot_sc_cotbest": " few shot"}
"""Settings for which the paper states medians, with the ending of the medians' labels."""


class _Median(NamedTuple):
    """A median over language models.

    Attributes:
        name: Name of the quantity whose median is taken.
        measure: Measure of the median.
        of_run: Measure of the quantity for a single run.
        column: Measure in Table 3 from which the quantity of a printed run can be derived.
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
"""Assumption behind the sampling range of a median."""
_JUDGED = (
    "Within sampling range does not mean equal: two medians differ by no more than 95% of pairs of"
    " draws do, if each printed run is drawn with its deviation (for a single seed: the pooled"
    " deviations of its language)."
)
WITHOUT_REASONING = "without reasoning models, which run only zero-shot, unlike the paper"
_UNKNOWN = "unknown of every run"


class PrintedMean(NamedTuple):
    """A printed mean over seeds.

    Attributes:
        spread: The mean and its deviation, if one is printed.
        pool: Printed means whose pooled deviation replaces a missing one.
    """

    spread: Spread
    pool: tuple[Spread, ...]


def text_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return our numbers in section 5: medians over models, and numbers of confusing variants."""
    numbers = OurNumbers(inputs.study)
    metrics = load_records(inputs.metrics, JamMetrics)
    runs = prompted_runs(metrics)
    printed = printed_numbers(inputs)
    obstacles = _obstacles(metrics, runs, _printed_means(inputs, printed, "success"))
    for language in _languages(runs):
        _add_confusing_variants(numbers, inputs, runs, language, obstacles)
        for statistic in _MEDIANS:
            printed_means = _printed_means(inputs, printed, statistic.column)
            for setting in _PANELS:
                keys = {
                    "measure": statistic.measure.name,
                    "setting": setting,
                    "language": language,
                }
                means_in_panel = _runs_of_median(printed_means, inputs, setting, language)
                ranges = _range_of_median(list(means_in_panel.values()), keys, printed)
                runs_in_median = _runs_of_median(runs, inputs, setting, language)
                _add_median(
                    numbers,
                    inputs,
                    statistic,
                    runs_in_median,
                    keys=keys,
                    obstacles=obstacles,
                    ranges=ranges,
                )
    return numbers.frame()


def _add_median(
    numbers: OurNumbers,
    inputs: DisplayInputs,
    statistic: _Median,
    runs: Runs,
    *,
    keys: Mapping[str, str],
    obstacles: Sequence[str],
    ranges: Ranges,
) -> None:
    """Add the median over the runs with a known mean over seeds to `numbers`."""
    known_means: list[float] = []
    unknown: list[str] = []
    for key, seeds in runs.items():
        mean = mean_over_seeds(seeds, statistic.of_run)
        if mean is None:
            unknown.append(f"{statistic.name} of {inputs.labels()[key.model]} is unknown")
        else:
            known_means.append(mean)
    numbers.add(
        keys,
        [statistic.measure],
        median(known_means) if known_means else None,
        files=inputs.metrics,
        obstacles=[*unknown, *obstacles] if known_means else obstacles,
        not_run="" if known_means else _UNKNOWN,
        ranges=ranges,
    )


def _add_confusing_variants(
    numbers: OurNumbers,
    inputs: DisplayInputs,
    runs: Runs,
    language: str,
    obstacles: Sequence[str],
) -> None:
    """Add the number of variants that confuse at least one run to `numbers`.

    Only the runs that Figure 3 counts are considered (see `counted_runs`). `obstacles` are the
    reasons why numbers over all runs are not comparable with the printed numbers.
    """
    is_authors_form = inputs.options["form"] == "released"
    counted = counted_runs(runs, inputs)
    confused_runs_by_variant = count_confused_runs(counted, language)
    if not confused_runs_by_variant:
        numbers.add(
            {"language": language},
            [_CONFUSING],
            None,
            files=inputs.metrics,
            obstacles=obstacles,
            not_run=_UNKNOWN,
        )
        return
    reasons = [WITHOUT_REASONING] if is_authors_form else []
    for language_of_model, label in models_not_counted(runs, counted, inputs):
        if language_of_model == language:
            reasons.append(f"{label} has no such run")
    confusing_variants = sum(
        confused_runs > 0 for confused_runs in confused_runs_by_variant.values()
    )
    numbers.add(
        {"language": language},
        [_CONFUSING],
        confusing_variants,
        files=inputs.metrics,
        obstacles=[*reasons, *obstacles],
    )


def _runs_of_median(
    runs: Mapping[RunKey, T], inputs: DisplayInputs, setting: str, language: str
) -> dict[RunKey, T]:
    """Return the runs over which the median for a setting and language is taken."""
    in_panel = runs_in_panel(runs, setting, reasoning_models(inputs))
    return {key: run for key, run in in_panel.items() if key.language == language}


def _languages(runs: Runs) -> list[str]:
    """Return the paper's languages and the languages of runs, in alphabetical order."""
    return sorted({*JamSettings().languages, *languages_of(runs)})


def _obstacles(
    metrics: Sequence[JamMetrics], runs: Runs, printed: Mapping[RunKey, PrintedMean]
) -> list[str]:
    """Return why numbers over all runs are not comparable with the printed numbers.

    Runs are compared by setting and model. `printed` contains the printed runs.
    """
    printed_runs = {(key.setting, key.model) for key in printed}
    our_runs = {(key.setting, key.model) for key in runs}
    missing_runs = printed_runs - our_runs
    additional_runs = our_runs - printed_runs
    papers_languages = JamSettings().languages
    in_papers_languages = [item for item in metrics if item.language in papers_languages]
    obstacles = obstacles_of(*in_papers_languages)
    if missing_runs:
        number_made = len(printed_runs & our_runs)
        obstacles.append(f"{number_made} of the paper's {len(printed_runs)} runs were made")
    if additional_runs:
        obstacles.append("with runs that the paper does not have")
    return obstacles


def _printed_means(
    inputs: DisplayInputs, printed: pd.DataFrame, measure: str
) -> dict[RunKey, PrintedMean]:
    """Return the means of a measure that Table 3 prints for language models, by run.

    Models that the inputs do not describe are omitted.
    """
    described_models = inputs.labels()
    is_in_table_3 = printed["shown_by"].map(first_table) == "jam_drift"
    rows = printed[is_in_table_3 & (printed["measure"] == measure)]
    means = {}
    for row in rows.to_dict("records"):
        is_language_model = row["setting"] != FINE_TUNED
        if is_language_model and row["model"] in described_models:
            key = RunKey(row["setting"], row["model"], row["language"])
            means[key] = PrintedMean(row["spread"], row["pool"])
    return means


def _range_of_median(
    means: Sequence[PrintedMean], keys: Mapping[str, str], printed: pd.DataFrame
) -> Ranges:
    """Return the sampling range of a printed median; empty if the paper prints no such median.

    Args:
        means: Printed means over which the median is taken.
        keys: Measure, setting and language of the median.
        printed: Frame of all printed numbers.
    """
    printed_values = printed.set_index(["measure", "setting", "language"])["printed"].to_dict()
    printed_median = printed_values.get((keys["measure"], keys["setting"], keys["language"]))
    if printed_median is None or not means:
        return {}
    half_width = median_tolerance([mean.spread for mean in means], means[0].pool)
    if keys["measure"] == "median_accuracy":
        # Table 3 prints successes, the number of variants whose original was judged correctly. If
        # the number of all variants is not printed, the successes count as percentages.
        variants = printed_values.get((f"variants_{keys['language']}", "", ""), 100)
        half_width *= 100 / variants
    half_width += 0.005  # the printed median is rounded to two decimals
    return {_DRAWN: (printed_median - half_width, printed_median + half_width)}


def text(numbers: pd.DataFrame, inputs: DisplayInputs) -> TableContent:
    """Lay out the table of medians over language models, and of confusing variants."""
    metrics = load_records(inputs.metrics, JamMetrics)
    runs = prompted_runs(metrics)
    labels = inputs.labels()
    models_of_medians = {}
    for language, setting in product(_languages(runs), _PANELS):
        median_name = f"{get_language(language).label}, {title_of(setting)}"
        runs_in_median = _runs_of_median(runs, inputs, setting, language)
        models_of_medians[median_name] = sorted(labels[key.model] for key in runs_in_median)
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
    panel_inputs,
    text_numbers,
    printed=("jam_table3", "text_numbers"),
)


def _different_models(models_of_medians: Mapping[str, Sequence[str]]) -> list[str]:
    """Return a note with the models of each median; empty if all medians have the same models.

    `models_of_medians` contains the labels of the models, by the name of the median. Medians
    without models are ignored.
    """
    models_as_text = {
        median_name: ", ".join(labels)
        for median_name, labels in models_of_medians.items()
        if labels
    }
    if len(set(models_as_text.values())) < 2:
        return []
    medians = "; ".join(f"{name}: {models}" for name, models in models_as_text.items())
    return [f"The medians are over different models. {medians}."]
