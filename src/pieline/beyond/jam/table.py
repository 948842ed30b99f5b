"""Build the table of the effects of custom prompts and of additional training data."""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

import pandas as pd

from pieline.beyond.jam.metrics import EFFECTS, SHARES, USAGES, PromptMeasures, prompt_measures
from pieline.beyond.settings import ExtendedStudy
from pieline.core.records import load_records
from pieline.languages.registry import get_language
from pieline.reporting.displays import NOT_IN_PAPER, Table
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.numbers import Number, rows_of
from pieline.reporting.ours import OurNumbers
from pieline.reporting.tables import Column, Group, Row, TableContent, headers, number_row
from pieline.studies.jam import paths
from pieline.studies.jam.metrics.scores import JamMetrics
from pieline.studies.jam.predictions.records import BASELINES
from pieline.studies.jam.settings import BASELINE, FINE_TUNED
from pieline.studies.jam.tables.common import (
    RunKey,
    by_run,
    has_results,
    label_with_unreadable_answers,
    languages_of,
    missing_runs,
    notes_on,
    obstacles_of,
    runs_with_files,
    title_of,
)

ALWAYS_NONE = "always-none"
"""Baseline that never drifts because it names no idiom."""


class PromptRow(NamedTuple):
    """Measures of a run on originals of one usage.

    Attributes:
        against: Reference setting with which the run is compared.
    """

    run: RunKey
    usage: str
    measures: PromptMeasures
    against: str


def prompt_rows(inputs: DisplayInputs) -> Iterator[PromptRow]:
    """Yield a row for each language, model, usage and setting.

    The rows of `ALWAYS_NONE` are the last of each language. The options of `inputs` are `against`
    (reference setting for prompts, or null), `permutations` and `resamples`. The reference for
    encoders is the setting without additional training texts.
    """
    metrics_by_run = by_run(load_records(inputs.metrics, JamMetrics))
    models = list(dict.fromkeys(run.model for run in metrics_by_run if run.model != ALWAYS_NONE))
    for language, model in product(languages_of(metrics_by_run), [*models, ALWAYS_NONE]):
        judged_by_setting = {
            run.setting: [metrics.judged for metrics in metrics_of_seeds]
            for run, metrics_of_seeds in metrics_by_run.items()
            if run.model == model and run.language == language
        }
        is_encoder = FINE_TUNED in judged_by_setting
        against = FINE_TUNED if is_encoder else inputs.options["against"]
        for usage in USAGES:
            measures_by_setting = prompt_measures(
                judged_by_setting,
                against,
                usage,
                permutations=inputs.options["permutations"],
                resamples=inputs.options["resamples"],
            )
            for setting, measures in measures_by_setting.items():
                yield PromptRow(RunKey(setting, model, language), usage, measures, against)


def describe_comparison(inputs: DisplayInputs) -> str:
    """Return a phrase that states what the table and the figure compare."""
    comparisons = []
    if inputs.options["against"]:
        comparisons.append(f"prompts of this project against {title_of(inputs.options['against'])}")
    if inputs.options["added"]:
        comparisons.append("encoders trained with texts of other PIEs against those without")
    phrase = " and ".join(comparisons)
    # Captions start with the phrase; `capitalize` would change names of settings to lower case.
    return phrase[:1].upper() + phrase[1:]


def prompt_label(setting: str) -> str:
    """Return the label of a setting in the table and the figure."""
    return BASELINES[ALWAYS_NONE] if setting == BASELINE else title_of(setting)


def prompt_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return each setting's measures by usage, and its differences from the reference setting."""
    numbers, files_by_run = OurNumbers(inputs.study), runs_with_files(inputs)
    for run, usage, measures, against in prompt_rows(inputs):
        keys = {**run._asdict(), "scope": usage}
        files = [path for _, path in files_by_run[run]]
        obstacles = obstacles_of(*(metrics for metrics, _ in files_by_run[run]))
        numbers.add(keys, SHARES, measures, files=files, obstacles=obstacles)
        for field, difference in EFFECTS.items():
            if effect := getattr(measures, field):
                numbers.add(
                    {**keys, "against": against},
                    [difference],
                    measures,
                    files=files,
                    obstacles=obstacles,
                    p_value=effect.p_value,
                    p_holm=effect.p_holm,
                )
    for run, reason in missing_runs(inputs, files_by_run).items():
        numbers.add({**run._asdict(), "scope": "all"}, SHARES, None, not_run=reason)
    return numbers.frame()


COLUMNS = [
    Column("accuracy", "Accuracy (%)", r"Accuracy (\%)"),
    Column("success", "S_M", "$S_M$"),
    Column("negative_drift", "ND_M (%)", r"$\mathit{ND}_M$ (\%)"),
    Column("negative_drift_difference", "difference", interval=1),
    Column("negative_drift_difference", "p", "$p$", p_value=True),
    Column("variant_errors", "errors (%)", r"errors (\%)"),
    Column("variant_errors_difference", "difference", interval=1),
    Column("variant_errors_difference", "p", "$p$", p_value=True),
]


def _groups(
    numbers: pd.DataFrame, inputs: DisplayInputs, metrics: Sequence[JamMetrics]
) -> list[Group]:
    """Return a group of rows for each model and language.

    For each usage, a group has rows for the settings of the model, and a row for `ALWAYS_NONE`.
    Rows for the settings that were not run come last.
    """
    labels = inputs.labels()
    metrics_by_run = by_run(metrics)
    numbers_by_row: dict[tuple[RunKey, str], dict[str, Number]] = {}
    for row_key, row_numbers in rows_of(numbers, (*RunKey._fields, "scope")).items():
        *run_key, usage = row_key
        numbers_by_row[RunKey(*run_key), usage] = row_numbers

    def make_row(run: RunKey, usage: str) -> Row:
        label = label_with_unreadable_answers(
            prompt_label(run.setting), metrics_by_run.get(run, [])
        )
        return number_row((usage, label), COLUMNS, numbers_by_row[run, usage])

    runs_by_group: dict[tuple[str, str], list[RunKey]] = {}
    for run in dict.fromkeys(run for run, _usage in numbers_by_row):
        if run.setting != BASELINE:
            runs_by_group.setdefault((run.model, run.language), []).append(run)

    groups = []
    for (model, language), group_runs in runs_by_group.items():
        shown_runs = [*group_runs, RunKey(BASELINE, ALWAYS_NONE, language)]
        rows = [
            make_row(run, usage)
            for usage, run in product(USAGES, shown_runs)
            if run in metrics_by_run
        ]
        rows += [make_row(run, "all") for run in group_runs if run not in metrics_by_run]
        groups.append(Group(tuple(rows), f"{labels[model]}, {get_language(language).label}"))
    return groups


def prompts(numbers: pd.DataFrame, inputs: DisplayInputs) -> TableContent:
    """Lay out the table of the effects of prompts and training data, by usage."""
    comparison = describe_comparison(inputs)
    metrics = load_records(inputs.metrics, JamMetrics)
    return TableContent(
        heads=(headers(["Run", "PIE", "Setting"], COLUMNS),),
        groups=tuple(_groups(numbers, inputs, metrics)),
        caption=f"{comparison} on the same originals: negative drift, and errors on"
        " all variants, which are false alarms where the PIE is literal and misses where it is"
        " idiomatic. Differences are in points, with 95% bootstrap intervals over"
        " originals; p is of a two-sided paired randomization test that swaps two runs"
        " on whole originals, corrected within a model, language and usage (Holm).",
        notes=(
            f"{BASELINES[ALWAYS_NONE]} never drifts and misses every idiom: a change that only"
            " lowers ND_M, or trades misses for false alarms, is no improvement.",
            *notes_on(metrics, inputs),
        ),
        long=True,
        label_widths=(0.14, 0.07, 0.16),
    )


def effects_inputs(study: ExtendedStudy) -> DisplayInputs | None:
    """Return inputs with the compared runs, the reference runs and `ALWAYS_NONE`.

    The result is None if the configuration has no results, or if neither `prompts_against` nor
    `training_contexts` is set.
    """
    settings, against = study.settings, study.beyond.prompts_against
    added_settings = study.beyond.added_settings()
    if not has_results(study):
        return None
    shown_settings = []
    if added_settings:
        shown_settings += [FINE_TUNED, *added_settings]
    if against:
        shown_settings += [against, *settings.prompts]
    if not shown_settings:
        return None
    runs = study.plan.select(kind=("llm", "encoder"), experiment="", setting=shown_settings)
    # The first baseline is ALWAYS_NONE.
    always_none_files = [paths.baselines(language)[0] for language in settings.languages]
    options = {
        "against": against,
        "added": bool(added_settings),
        "permutations": settings.permutations,
        "resamples": settings.bootstrap_resamples,
    }
    inputs = study.display_inputs(runs, models=settings.models, others=always_none_files)
    return inputs.model_copy(update={"options": options})


PROMPTS_TABLE = Table(
    "jam_prompts",
    NOT_IN_PAPER,
    "Effects of prompts and training data, on the same originals.",
    prompts,
    effects_inputs,
    prompt_numbers,
)
