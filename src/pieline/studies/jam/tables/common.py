"""Inputs, runs, labels and notes that the tables and figures of ID10M-JAM share."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import attrgetter
from statistics import fmean
from typing import NamedTuple, TypeVar, get_args

import pandas as pd

from pieline.core.conditions import Measured, MetricRecord, data_is_explained
from pieline.core.measures import Measure
from pieline.core.outcomes import READABLE
from pieline.core.records import load_records
from pieline.core.upstream import BY_COUNTS
from pieline.languages.registry import get_language
from pieline.reporting.displays import ConfiguredStudy
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.models import ModelDescription
from pieline.reporting.ours import of_runs
from pieline.studies.jam import paths
from pieline.studies.jam.metrics.scores import JamMetrics, NeutralMetrics
from pieline.studies.jam.predictions.prompt_settings import PromptSetting
from pieline.studies.jam.predictions.records import BASELINES
from pieline.studies.jam.settings import ANALYZED

T = TypeVar("T")
COUNTED_SETTING: PromptSetting = "few_shot_sc_cotbest"
"""Setting of the runs that Figure 3 counts, as in the authors' code."""
COUNTED_SEED = 42
"""Seed of the runs that Figure 3 counts, as in the authors' code."""


class RunKey(NamedTuple):
    """Setting, model and language of a run with all its seeds."""

    setting: str
    model: str
    language: str


Runs = Mapping[RunKey, Sequence[JamMetrics]]


def by_run(metrics: Iterable[JamMetrics]) -> dict[RunKey, list[JamMetrics]]:
    """Group metrics by setting, model and language, and sort each group by seed."""
    runs: dict[RunKey, list[JamMetrics]] = defaultdict(list)
    for metrics_of_seed in sorted(metrics, key=attrgetter("seed")):
        runs[_run_key(metrics_of_seed)].append(metrics_of_seed)
    return dict(runs)


def _run_key(metrics: JamMetrics) -> RunKey:
    return RunKey(metrics.setting, metrics.model, metrics.language)


def prompted_runs(metrics: Iterable[JamMetrics]) -> dict[RunKey, list[JamMetrics]]:
    """Group the metrics of runs that use a predefined prompt setting (see `by_run`).

    Encoders and baselines are excluded, as in the paper's figures.
    """
    prompt_settings = get_args(PromptSetting)
    return by_run(of_seed for of_seed in metrics if of_seed.setting in prompt_settings)


def count_unreadable(runs: Iterable[JamMetrics | NeutralMetrics]) -> tuple[int, int]:
    """Return the number of unreadable answers and the number of all answers in runs."""
    answers_by_outcome = Counter[str]()
    for metrics in runs:
        answers_by_outcome.update(metrics.outcomes)
    unreadable = sum(
        answers for outcome, answers in answers_by_outcome.items() if outcome not in READABLE
    )
    return unreadable, answers_by_outcome.total()


def runs_in_panel(
    runs: Mapping[RunKey, T], setting: str, reasoning: Collection[str]
) -> dict[RunKey, T]:
    """Return the runs that section 5 and Figure 2 show for a prompt setting.

    Reasoning models run only zero-shot, so their zero-shot runs are shown for every setting.

    Args:
        runs: Runs of language models.
        setting: Prompt setting.
        reasoning: Names of the reasoning models to show.
    """
    shown = {}
    for key, run in runs.items():
        is_reasoning_run = key.model in reasoning and key.setting == "zero_shot"
        if is_reasoning_run or key.setting == setting:
            shown[key] = run
    return shown


def mean_over_seeds(seeds: Sequence[JamMetrics], measure: Measure[JamMetrics]) -> float | None:
    """Return the mean of a measure over seeds; None without seeds or if any value is unknown."""
    values = []
    for metrics in seeds:
        value = measure.value(metrics)
        if value is None:
            return None
        values.append(value)
    return fmean(values) if values else None


def reasoning_models(inputs: DisplayInputs) -> set[str]:
    """Return the names of the reasoning models among the described models."""
    return {model.name for model in inputs.models if model.reasoning}


def counted_runs(runs: Runs, inputs: DisplayInputs) -> Runs:
    """Return the runs of language models that Figure 3 counts.

    These runs have the setting `COUNTED_SETTING` or, unless the form is `released`, are zero-shot
    runs of reasoning models. Only the seed `COUNTED_SEED` of each run is returned.
    """
    reasoning = set() if inputs.options["form"] == "released" else reasoning_models(inputs)
    counted = {}
    for key, seeds in runs_in_panel(runs, COUNTED_SETTING, reasoning).items():
        counted_seeds = [metrics for metrics in seeds if metrics.seed == COUNTED_SEED]
        if counted_seeds:
            counted[key] = counted_seeds
    return counted


def count_confused_runs(runs: Runs, language: str) -> dict[str, int]:
    """Return how many runs each variant of a language confuses, by variant id.

    `runs` are the result of `counted_runs`, so each run has one seed. The result also contains the
    variants that confuse no run.
    """
    confused_runs = Counter[str]()
    for key, seeds in runs.items():
        if key.language != language:
            continue
        for metrics in seeds:
            for original in metrics.judged:
                # Adds 1 for each variant that flipped the decision, and 0 for other variants.
                confused_runs.update(original.flipped)
    return dict(confused_runs)


GROUPS = {
    "zero_shot": "Zero-shot",
    "zero_shot_schema": "Zero-shot, form enforced",
    "few_shot_sc_cotbest": "Few-shot +SC+CoTBest",
    "reasoning": "Reasoning LLMs",
    "fine_tuned": "Encoders",
    "baseline": "No model",
}
"""Titles of table sections in the paper's order.

`zero_shot_schema` and `baseline` are not in the paper.
"""
_OTHER_TITLES = {
    "fine_tuned_originals": "Encoders + originals",
    "fine_tuned_neutral": "Encoders + neutral contexts",
    "fine_tuned_hard": "Encoders + hard variants",
}


def title_of(setting: str) -> str:
    """Return the display name of a setting; user-defined settings keep their name."""
    return (GROUPS | _OTHER_TITLES).get(setting, setting)


PROMPTS = (
    "SC: self-consistency, an idiom stays if most of several sampled answers name it; CoTBest:"
    " chain of thought that lists candidates and chooses at most one idiom."
)

NOT_RELEASED = "sample data or other than the public ID10M-JAM"


def has_results(study: ConfiguredStudy) -> bool:
    """Return whether the configuration has both models and hard variants."""
    return bool(study.settings.models) and study.settings.variants.source != "none"


def run_inputs(study: ConfiguredStudy, *more_kinds: str) -> DisplayInputs:
    """Return display inputs with the main runs of language models, encoders and `more_kinds`."""
    runs = study.plan.select(kind=("llm", "encoder", *more_kinds), experiment="")
    return study.display_inputs(runs, "llm", "encoder", models=study.settings.models)


def panel_inputs(study: ConfiguredStudy) -> DisplayInputs | None:
    """Return the inputs of Figures 2, 3 and 6 and of the numbers in section 5.

    The inputs are the runs of language models and encoders, and the settings `languages` and
    `form`. Returns None without models or without hard variants.
    """
    if not has_results(study):
        return None
    settings = study.settings
    options = {"languages": list(settings.languages), "form": settings.form}
    return run_inputs(study).model_copy(update={"options": options})


def inputs_with_baselines(study: ConfiguredStudy) -> DisplayInputs | None:
    """Return display inputs with all main runs, including external predictions, and the baselines.

    Returns None without models or without hard variants.
    """
    if not has_results(study):
        return None
    inputs = run_inputs(study, "predictions")
    metrics, models = list(inputs.metrics), list(inputs.models)
    for language in study.settings.languages:
        metrics += paths.baselines(language)
    for name, label in BASELINES.items():
        models.append(ModelDescription(name=name, kind="baseline", label=label))
    return inputs.model_copy(update={"metrics": tuple(metrics), "models": tuple(models)})


def statistics_inputs(study: ConfiguredStudy) -> DisplayInputs:
    """Return display inputs with the counts of sentences and variants of each language."""
    files = [paths.STATISTICS.format(language=language) for language in study.settings.languages]
    return study.display_inputs(others=files)


def attention_inputs(study: ConfiguredStudy) -> DisplayInputs | None:
    """Return display inputs with the attention analysis; None if no analysis is configured.

    The inputs contain no file if there are no runs that show which variants mislead.
    """
    model = study.settings.attention
    if not (has_results(study) and model):
        return None
    keys = {"language": ANALYZED, "model": model}
    run_metrics = study.plan.metrics(kind=("llm", "encoder"), experiment="", language=ANALYZED)
    files = [paths.ATTENTION.format(**keys)] if run_metrics else []
    inputs = study.display_inputs(models=[model], others=files)
    return inputs.model_copy(update={"options": keys})


def runs_with_files(inputs: DisplayInputs) -> dict[RunKey, list[tuple[JamMetrics, str]]]:
    """Return the metrics and the metric file of each seed (in ascending order), by run."""
    runs: dict[RunKey, list[tuple[JamMetrics, str]]] = defaultdict(list)
    records = zip(load_records(inputs.metrics, JamMetrics), inputs.metrics, strict=True)
    for metrics, path in sorted(records, key=lambda metrics_and_path: metrics_and_path[0].seed):
        runs[_run_key(metrics)].append((metrics, path))
    return dict(runs)


def run_numbers(inputs: DisplayInputs, measures: Sequence[Measure[JamMetrics]]) -> pd.DataFrame:
    """Return a frame with the value of each measure for each of our runs and seeds."""
    records = zip(load_records(inputs.metrics, JamMetrics), inputs.metrics, strict=True)
    return of_runs(inputs, records, measures, _keys_of, obstacles_of)


def _keys_of(metrics: JamMetrics) -> dict[str, str]:
    """Return the values that identify a run and seed in the frame of numbers."""
    return {**_run_key(metrics)._asdict(), "seed": str(metrics.seed)}


def code_of(language: str) -> str:
    """Return the uppercase code of a language, for narrow columns."""
    return get_language(language).code.upper()


def printed_runs(inputs: DisplayInputs, file: str) -> dict[RunKey, dict[str, float]]:
    """Return the numbers in each row of a printed table, by run.

    Rows of models that the inputs do not describe are omitted.

    Args:
        inputs: Inputs of a table or figure.
        file: Name of the printed table in published/.
    """
    # If several of our models represent one model of the paper, the last one gets its row.
    name_by_label = {label: models[-1] for label, models in inputs.names().items()}
    rows = {}
    for (setting, label, language), row in inputs.printed(file, *RunKey._fields).items():
        if label in name_by_label:
            rows[RunKey(setting, name_by_label[label], language)] = row
    return rows


def languages_of(runs: Iterable[RunKey]) -> list[str]:
    """Return the languages of runs in alphabetical order."""
    return sorted({key.language for key in runs})


def models_not_counted(
    runs: Iterable[RunKey], counted: Iterable[RunKey], inputs: DisplayInputs
) -> list[tuple[str, str]]:
    """Return the language and label of each model with runs of which Figure 3 counts none."""
    labels = inputs.labels()
    with_runs = {(key.language, labels[key.model]) for key in runs}
    with_counted_runs = {(key.language, labels[key.model]) for key in counted}
    return sorted(with_runs - with_counted_runs)


def missing_runs(inputs: DisplayInputs, runs: Iterable[RunKey]) -> dict[RunKey, str]:
    """Return why each configured run without a seed in `runs` is missing, by run."""
    runs_with_seeds = set(runs)
    reasons: dict[RunKey, str] = {}
    for run in inputs.left_out():
        key = key_of(run.keys)
        if key not in runs_with_seeds:
            reasons.setdefault(key, run.not_run)
    return reasons


def key_of(keys: Mapping[str, str]) -> RunKey:
    """Return the setting, model and language of a run, given the keys of the run in the plan."""
    return RunKey(keys["setting"], keys["model"], keys["language"])


def _notes_on_missing_seeds(inputs: DisplayInputs, runs: Collection[RunKey]) -> list[str]:
    """Return a note on each missing seed of a run that has other seeds."""
    labels = inputs.labels()
    notes = []
    for run in inputs.left_out():
        key = key_of(run.keys)
        if key in runs:
            seed = f"seed {run.keys['seed']} of {labels[key.model]}"
            setting_and_language = f"{title_of(key.setting)}, {get_language(key.language).label}"
            notes.append(f"Without {seed} ({setting_and_language}): {run.not_run}.")
    return notes


def data_obstacles(*measured: Measured) -> list[str]:
    """Return why numbers are not comparable with the paper's if they are based on other data.

    For the user's own data, the result is empty, because the conditions of the runs state the
    reason.
    """
    unexplained = [metrics for metrics in measured if not data_is_explained(metrics)]
    reasons = [metrics.data_note or NOT_RELEASED for metrics in unexplained]
    return list(dict.fromkeys(reasons))


def data_notes(*metrics: MetricRecord) -> tuple[str, ...]:
    """Return a note if the data was verified only by the number of sentences; () otherwise."""
    is_by_counts = any(record.data_note == BY_COUNTS for record in metrics)
    return (BY_COUNTS,) if is_by_counts else ()


def obstacles_of(*metrics: JamMetrics) -> list[str]:
    """Return why the metrics of runs are not comparable with the printed numbers."""
    reasons = data_obstacles(*metrics)
    if any(metrics_of_seed.overall.variants == 0 for metrics_of_seed in metrics):
        reasons.append("no hard variants")
    return reasons + deviations_of(*metrics)


def deviations_of(*metrics: MetricRecord) -> list[str]:
    """Return the deviations of runs from the paper's conditions, without duplicates."""
    deviations = [deviation for record in metrics for deviation in record.conditions.deviations]
    return list(dict.fromkeys(deviations))


def label_with_unreadable_answers(label: str, runs: Sequence[JamMetrics | NeutralMetrics]) -> str:
    """Return a label, followed by the number of unreadable answers of the runs if there are any."""
    unreadable, answers = count_unreadable(runs)
    return f"{label} (unreadable: {unreadable} of {answers})" if unreadable else label


def label_with_unreadable_by_language(
    label: str, runs_by_language: Mapping[str, Sequence[JamMetrics]]
) -> str:
    """Return a label, then the number of unreadable answers in each language that has any."""
    counts = []
    for language, runs in runs_by_language.items():
        unreadable, answers = count_unreadable(runs)
        if unreadable:
            counts.append(f"{code_of(language)} {unreadable} of {answers}")
    return f"{label} (unreadable: {', '.join(counts)})" if counts else label


def notes_on(metrics: Sequence[JamMetrics], inputs: DisplayInputs) -> tuple[str, ...]:
    """Return a table's notes about missing seeds, scoring, unreadable answers and data."""
    runs = {_run_key(metrics_of_seed) for metrics_of_seed in metrics}
    notes = _notes_on_missing_seeds(inputs, runs)
    is_authors_scoring = {metrics_of_seed.scoring for metrics_of_seed in metrics} == {"released"}
    if is_authors_scoring:
        notes.append("Scored as in the authors' code.")
    unreadable, _ = count_unreadable(metrics)
    if unreadable:
        counted_as = "answers that name no idiom" if is_authors_scoring else "wrong"
        notes.append(f"Unreadable answers (of all, over seeds) count as {counted_as}.")
    notes += data_notes(*metrics)
    notes += inputs.notes
    return tuple(notes)
