"""Build the table of numbers stated in section 5 of ID10M-JAM."""

from collections.abc import Mapping, Sequence
from statistics import median

from pieline.core.conditions import deviations
from pieline.core.records import load_records
from pieline.languages.registry import get_language
from pieline.reporting.columns import Column, Source, headers, over_seeds, text_cell
from pieline.reporting.displays import Table
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.printed import read_published
from pieline.reporting.seeds import Ranges, median_tolerance
from pieline.reporting.tables import Group, Row, TableContent
from pieline.studies.jam.inputs import with_panel
from pieline.studies.jam.metrics.runs import JamMetrics
from pieline.studies.jam.metrics.seeds import (
    accuracy,
    confused_runs,
    counted_runs,
    negative_drift,
    panel,
    prompted,
)
from pieline.studies.jam.settings import ConfusedModels, JamSettings
from pieline.studies.jam.tables.common import (
    languages_of,
    not_counted,
    notes_on,
    obstacles_of,
    printed_runs,
    printed_seeds,
    title_of,
)

_PANELS = {"": "zero_shot", "_few_shot": "few_shot_sc_cotbest"}
"""Settings for which the paper states medians, by suffix of the number's name."""
_MEDIANS = {"accuracy": (accuracy, "success"), "drift": (negative_drift, "negative_drift_pct")}
"""Metrics of which the paper states medians, each with its function and its column in Table 3."""
_DRAWN = "both are medians of runs that deviate as printed"
"""Assumption under which a median is within sampling range."""
_JUDGED = (
    "Within sampling range does not mean equal: two medians differ by no more than 95% of pairs of"
    " draws do, if each printed run is drawn with its deviation (for a single seed: the pooled"
    " deviations of its language)."
)


def text(inputs: DisplayInputs) -> TableContent:
    """Build the table of medians over language models, and of the number of confusing variants."""
    metrics = load_records(inputs.metrics, JamMetrics)
    runs, printed = prompted(metrics), printed_runs(inputs)
    paper_models = {key[:2] for key in printed if key.setting != "fine_tuned"}
    our_models = {key[:2] for key in runs}
    of_paper = [item for item in metrics if item.language in JamSettings().languages]
    obstacles = obstacles_of(*of_paper)
    if paper_models - our_models:
        obstacles.append(
            f"{len(paper_models & our_models)} of the paper's {len(paper_models)} runs were made"
        )
    if our_models - paper_models:
        obstacles.append("with runs that the paper does not have")
    text_numbers = read_published(inputs.files["text_numbers"], ["id"])
    figure3 = ConfusedModels.model_validate(inputs.options["figure3"])
    reasoning = {model.name for model in (*inputs.models, *inputs.absent) if model.reasoning}
    counted = counted_runs(runs, figure3, reasoning)
    uncounted = not_counted(runs, counted, inputs)
    in_text = {name: numbers["value"] for (name,), numbers in text_numbers.items()}
    labels = inputs.labels()
    averaged: dict[str, list[str]] = {}
    rows = []

    def add(name: str, value: float | None, decimals: int, ranges: Ranges, *own: str) -> None:
        label = name.replace("_", " ")
        column = Column[float | None](name, label, lambda ours: ours, decimals=decimals)
        problems = [*(["unknown of every run"] if value is None else own), *obstacles]
        source = Source({}, [value], inputs.metrics, obstacles=problems, ranges=ranges)
        rows.append(Row((label,), (text_cell(column, source, "jam", text_numbers),)))

    for language in sorted({*JamSettings().languages, *languages_of(runs)}):
        counts = confused_runs(counted, language)
        confusing = sum(count > 0 for count in counts.values()) if counts else None
        reasons = (f"{label} has no such run" for name, label in uncounted if name == language)
        add(f"confusing_variants_{language}", confusing, 0, {}, *deviations(figure3), *reasons)
        for name, (value, column) in _MEDIANS.items():
            for ending, setting in _PANELS.items():
                ours, theirs = (
                    [key for key in panel(of, setting, reasoning) if key.language == language]
                    for of in (runs, printed)
                )
                where = f"{get_language(language).label}, {title_of(setting)}"
                averaged[where] = sorted(labels[key.model] for key in ours)
                over = {key: over_seeds(runs[key], value) for key in ours}
                means = [mean.mean for mean in over.values() if mean]
                unknown = [
                    f"{name} of {labels[key.model]} is unknown" for key in ours if not over[key]
                ]
                full_name, ranges = f"median_{name}_{language}{ending}", {}
                if theirs and (middle := in_text.get(f"jam.{full_name}")) is not None:
                    seeds = printed_seeds(printed, theirs[0])
                    spreads = (seeds.spread(printed[key], column) for key in theirs)
                    known = [item for item in spreads if item]
                    half = median_tolerance(known, seeds.pool(column))
                    if name == "accuracy":  # Table 3 prints successes.
                        half *= 100 / (in_text.get(f"jam.variants_{language}", 100))
                    half += 0.005  # The printed median is rounded.
                    ranges = {_DRAWN: (middle - half, middle + half)}
                add(full_name, median(means) if means else None, 2, ranges, *unknown)
    return TableContent(
        heads=(headers(["Number", "ours" if inputs.is_own else "ours (printed)"]),),
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
    printed="jam_table3",
    text_numbers=True,
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
