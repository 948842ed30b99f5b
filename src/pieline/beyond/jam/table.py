"""Build the table that compares custom prompts, and training data of encoders, with a reference."""

from collections.abc import Iterator
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

NONE = "always-none"
"""Baseline that never drifts because it names no idiom."""


class PromptRow(NamedTuple):
    """Measures of a run on originals of one usage, and the setting it is compared with."""

    run: RunKey
    usage: str
    measures: PromptMeasures
    against: str


def prompt_rows(inputs: DisplayInputs) -> Iterator[PromptRow]:
    """Yield a row for each language, model, usage and setting; the rows of `NONE` come last.

    The options are `against` (reference setting for prompts, or null), `permutations` and
    `resamples`. The reference for encoders is the setting without added training texts.
    """
    our_runs = by_run(load_records(inputs.metrics, JamMetrics))
    counts = {name: inputs.options[name] for name in ("permutations", "resamples")}
    models = dict.fromkeys((*(key.model for key in our_runs if key.model != NONE), NONE))
    for language, model in product(languages_of(our_runs), models):
        judged = {
            key.setting: [item.judged for item in seeds]
            for key, seeds in our_runs.items()
            if key[1:] == (model, language)
        }
        against = FINE_TUNED if FINE_TUNED in judged else inputs.options["against"]
        for usage in USAGES:
            measured = prompt_measures(judged, against, usage, **counts)
            for setting, measures in measured.items():
                yield PromptRow(RunKey(setting, model, language), usage, measures, against)


def compared(inputs: DisplayInputs) -> str:
    """Return a description of what the table and the figure compare."""
    pairs = []
    if inputs.options["against"]:
        pairs.append(f"prompts of this project against {title_of(inputs.options['against'])}")
    if inputs.options["added"]:
        pairs.append("encoders trained with texts of other PIEs against those without")
    text = " and ".join(pairs)
    return text[:1].upper() + text[1:]


def prompt_label(setting: str) -> str:
    """Return the display name of a setting in the table and the figure."""
    return BASELINES[NONE] if setting == BASELINE else title_of(setting)


def prompt_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return the measures of each setting by usage, and its differences from the reference."""
    numbers, our_runs = OurNumbers(inputs.study), runs_with_files(inputs)
    for key, usage, measures, against in prompt_rows(inputs):
        keys = {**key._asdict(), "scope": usage}
        files = [path for _, path in our_runs[key]]
        obstacles = obstacles_of(*(item for item, _ in our_runs[key]))
        numbers.add(keys, SHARES, measures, files=files, obstacles=obstacles)
        for name, difference in EFFECTS.items():
            if effect := getattr(measures, name):
                numbers.add(
                    {**keys, "against": against},
                    [difference],
                    measures,
                    files=files,
                    obstacles=obstacles,
                    p_value=effect.p_value,
                    p_holm=effect.p_holm,
                )
    for key, reason in missing_runs(inputs, our_runs).items():
        numbers.add({**key._asdict(), "scope": "all"}, SHARES, None, not_run=reason)
    return numbers.frame()


def prompts(numbers: pd.DataFrame, inputs: DisplayInputs) -> TableContent:
    """Lay out the table of the effects of prompts and training data, by usage."""
    labels, metrics = inputs.labels(), load_records(inputs.metrics, JamMetrics)
    our_runs = by_run(metrics)
    columns = [
        Column("accuracy", "Accuracy (%)", r"Accuracy (\%)"),
        Column("success", "S_M", "$S_M$"),
        Column("negative_drift", "ND_M (%)", r"$\mathit{ND}_M$ (\%)"),
        Column("negative_drift_difference", "difference", interval=1),
        Column("negative_drift_difference", "p", "$p$", p_value=True),
        Column("variant_errors", "errors (%)", r"errors (\%)"),
        Column("variant_errors_difference", "difference", interval=1),
        Column("variant_errors_difference", "p", "$p$", p_value=True),
    ]
    by_row = {
        (RunKey(*key), usage): of_row
        for (*key, usage), of_row in rows_of(numbers, (*RunKey._fields, "scope")).items()
    }
    groups: dict[str, list[Row]] = {}

    def add(title: str, key: RunKey, usage: str, of_row: dict[str, Number]) -> None:
        name = label_with_unreadable_answers(prompt_label(key.setting), our_runs.get(key, []))
        groups.setdefault(title, []).append(number_row((usage, name), columns, of_row))

    runs = dict.fromkeys(key for key, _ in by_row if key.setting != BASELINE)
    for model, language in dict.fromkeys(key[1:] for key in runs):
        title = f"{labels[model]}, {get_language(language).label}"
        none = RunKey(BASELINE, NONE, language)
        of_model = [*(key for key in runs if key[1:] == (model, language)), none]
        for usage, key in product(USAGES, of_model):
            if key in our_runs:
                add(title, key, usage, by_row[key, usage])
        for key in of_model:
            if key not in our_runs and key != none:
                add(title, key, "all", by_row[key, "all"])
    return TableContent(
        heads=(headers(["Run", "PIE", "Setting"], columns),),
        groups=tuple(Group(tuple(rows), title) for title, rows in groups.items()),
        caption=f"{compared(inputs)} on the same originals: negative drift, and errors on all"
        " variants, which are false alarms where the PIE is literal and misses where it is"
        " idiomatic. Differences are in points, with 95% bootstrap intervals over"
        " originals; p is of a two-sided paired randomization test that swaps two runs"
        " on whole originals, corrected within a model, language and usage (Holm).",
        notes=(
            f"{BASELINES[NONE]} never drifts and misses every idiom: a change that only lowers"
            " ND_M, or trades misses for false alarms, is no improvement.",
            *notes_on(metrics, inputs),
        ),
        long=True,
        label_widths=(0.14, 0.07, 0.16),
    )


def effects(study: ExtendedStudy) -> DisplayInputs | None:
    """Return inputs with the runs to compare, their references and `always-none`.

    The result is None unless `prompts_against` is set or encoders are trained with added texts.
    """
    settings, against = study.settings, study.beyond.prompts_against
    added = study.beyond.added_settings()
    if not (has_results(study) and (against or added)):
        return None
    shown = [FINE_TUNED, *added] if added else []
    shown += [against, *settings.prompts] if against else []
    runs = study.plan.select(kind=("llm", "encoder"), experiment="", setting=shown)
    none = [paths.baselines(language)[0] for language in settings.languages]
    options = {
        "against": against,
        "added": bool(added),
        "permutations": settings.permutations,
        "resamples": settings.bootstrap_resamples,
    }
    given = study.display_inputs(runs, models=settings.models, others=none)
    return given.model_copy(update={"options": options})


PROMPTS_TABLE = Table(
    "jam_prompts",
    NOT_IN_PAPER,
    "Effects of prompts and training data, on the same originals.",
    prompts,
    effects,
    prompt_numbers,
)
