"""Runs over seeds, numbers, labels and notes shared by the tables and figures of ID10M-JAM."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
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
    """Key of runs that differ only in their seed."""

    setting: str
    model: str
    language: str


Runs = Mapping[RunKey, Sequence[JamMetrics]]


def by_run(metrics: Iterable[JamMetrics]) -> dict[RunKey, list[JamMetrics]]:
    """Group metrics by setting, model and language, with each group ordered by seed."""
    runs: dict[RunKey, list[JamMetrics]] = defaultdict(list)
    for item in sorted(metrics, key=lambda item: item.seed):
        runs[RunKey(item.setting, item.model, item.language)].append(item)
    return dict(runs)


def prompted(metrics: Iterable[JamMetrics]) -> dict[RunKey, list[JamMetrics]]:
    """Group the runs that have a predefined prompt setting (see `by_run`).

    This excludes encoders, as in the paper's figures.
    """
    return by_run(item for item in metrics if item.setting in get_args(PromptSetting))


def unreadable(runs: Iterable[JamMetrics | NeutralMetrics]) -> tuple[int, int]:
    """Return the number of unreadable answers and the total number of answers in the runs."""
    outcomes = Counter[str]()
    for item in runs:
        outcomes.update(item.outcomes)
    return sum(outcomes[name] for name in outcomes.keys() - READABLE), outcomes.total()


def panel(runs: Mapping[RunKey, T], setting: str, reasoning: Collection[str]) -> dict[RunKey, T]:
    """Return the runs shown for a setting of language models in section 5 and Figure 2.

    Reasoning models, which run only zero-shot, are shown for every setting.
    """
    return {
        key: seeds
        for key, seeds in runs.items()
        if key.setting == setting or (key.setting == "zero_shot" and key.model in reasoning)
    }


def mean_over_seeds(seeds: Sequence[JamMetrics], measure: Measure[JamMetrics]) -> float | None:
    """Return the mean of a measure; None if the measure is unknown for a seed."""
    values = [measure.value(item) for item in seeds]
    known = [value for value in values if value is not None]
    return fmean(known) if known and len(known) == len(values) else None


def counted_runs(runs: Runs, reasoning: Collection[str]) -> Runs:
    """Return the runs of language models that Figure 3 counts: few-shot, with one seed.

    Models in `reasoning` run zero-shot, as in Figure 2. Models without a run with this seed and
    setting are excluded.
    """
    counted = {}
    for key, seeds in panel(runs, COUNTED_SETTING, reasoning).items():
        seeds_counted = [item for item in seeds if item.seed == COUNTED_SEED]
        if seeds_counted:
            counted[key] = seeds_counted
    return counted


def confused_runs(runs: Runs, language: str) -> dict[str, int]:
    """Return the number of runs that confuse each variant of a language, by variant id.

    Each run has one seed.
    """
    totals = Counter[str]()
    for key, seeds in runs.items():
        if key.language == language:
            for case in chain.from_iterable(item.judged for item in seeds):
                totals.update(case.flipped)
    return dict(totals)


GROUPS = {
    "zero_shot": "Zero-shot",
    "zero_shot_schema": "Zero-shot, form enforced",
    "few_shot_sc_cotbest": "Few-shot +SC+CoTBest",
    "reasoning": "Reasoning LLMs",
    "fine_tuned": "Encoders",
    "baseline": "No model",
}
"""Titles of table sections in the paper's order; the second and the last are not in the paper."""


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
    """Return whether the configuration names models and has hard variants for them."""
    return bool(study.settings.models) and study.settings.variants.source != "none"


def runs_of(study: ConfiguredStudy, *more_kinds: str) -> DisplayInputs:
    """Return inputs with the runs of language models, encoders and models of `more_kinds`."""
    runs = study.plan.select(kind=("llm", "encoder", *more_kinds), experiment="")
    return study.display_inputs(runs, "llm", "encoder", models=study.settings.models)


def with_panel(study: ConfiguredStudy) -> DisplayInputs | None:
    """Return inputs with the runs of this project, its languages and the form of Figure 3."""
    if not has_results(study):
        return None
    settings = study.settings
    options = {"languages": list(settings.languages), "form": settings.form}
    return runs_of(study).model_copy(update={"options": options})


def with_baselines(study: ConfiguredStudy) -> DisplayInputs | None:
    """Return inputs with all runs, including external ones, and baselines."""
    if not has_results(study):
        return None
    inputs = runs_of(study, "predictions")
    metrics, models = list(inputs.metrics), list(inputs.models)
    for language in study.settings.languages:
        metrics += paths.baselines(language)
    for name, label in BASELINES.items():
        models.append(ModelDescription(name=name, kind="baseline", label=label))
    return inputs.model_copy(update={"metrics": tuple(metrics), "models": tuple(models)})


def statistics_of(study: ConfiguredStudy) -> DisplayInputs:
    """Return inputs with the counts of sentences and variants by language."""
    languages = study.settings.languages
    return study.display_inputs(
        others=[paths.STATISTICS.format(language=name) for name in languages]
    )


def attention_of(study: ConfiguredStudy) -> DisplayInputs | None:
    """Return inputs with the attention analysis, if one is configured."""
    model = study.settings.attention
    if not (has_results(study) and model):
        return None
    keys = {"language": ANALYZED, "model": model}
    others = []
    if study.plan.metrics(kind=("llm", "encoder"), experiment="", language=ANALYZED):
        others.append(paths.ATTENTION.format(**keys))
    inputs = study.display_inputs(models=[model], others=others)
    return inputs.model_copy(update={"options": keys})


def runs_with_files(inputs: DisplayInputs) -> dict[RunKey, list[tuple[JamMetrics, str]]]:
    """Return the metrics of each run with their files, in order of seed."""
    runs: dict[RunKey, list[tuple[JamMetrics, str]]] = defaultdict(list)
    pairs = zip(load_records(inputs.metrics, JamMetrics), inputs.metrics, strict=True)
    for item, path in sorted(pairs, key=lambda pair: pair[0].seed):
        runs[RunKey(item.setting, item.model, item.language)].append((item, path))
    return dict(runs)


def run_numbers(inputs: DisplayInputs, measures: Sequence[Measure[JamMetrics]]) -> pd.DataFrame:
    """Return our numbers of every run and seed."""
    records = zip(load_records(inputs.metrics, JamMetrics), inputs.metrics, strict=True)
    return of_runs(inputs, records, measures, _keys_of, obstacles_of)


def _keys_of(item: JamMetrics) -> dict[str, str]:
    key = RunKey(item.setting, item.model, item.language)
    return {**key._asdict(), "seed": str(item.seed)}


def code_of(language: str) -> str:
    """Return the uppercase language code shown in narrow columns."""
    return get_language(language).code.upper()


def printed_runs(inputs: DisplayInputs, file: str) -> dict[RunKey, dict[str, float]]:
    """Return the rows of a printed table by run, for described models only."""
    names = {label: models[-1] for label, models in inputs.names().items()}
    rows = {}
    for (setting, label, language), row in inputs.printed(file, *RunKey._fields).items():
        if label in names:
            rows[RunKey(setting, names[label], language)] = row
    return rows


def languages_of(runs: Iterable[RunKey]) -> list[str]:
    """Return the languages of these runs in alphabetical order."""
    return sorted({key.language for key in runs})


def not_counted(
    runs: Iterable[RunKey], counted: Iterable[RunKey], inputs: DisplayInputs
) -> list[tuple[str, str]]:
    """Return the language and label of each model with runs, none of which Figure 3 counts."""
    labels = inputs.labels()
    with_runs = {(key.language, labels[key.model]) for key in runs}
    return sorted(with_runs - {(key.language, labels[key.model]) for key in counted})


def missing_runs(inputs: DisplayInputs, runs: Iterable[RunKey]) -> dict[RunKey, str]:
    """Return the reason for each configured run without any seed in `runs`, by its key."""
    made, missing = set(runs), dict[RunKey, str]()
    for run in inputs.left_out():
        key = key_of(run.keys)
        if key not in made:
            missing.setdefault(key, run.not_run)
    return missing


def key_of(keys: Mapping[str, str]) -> RunKey:
    """Return the key of a run without its seed."""
    return RunKey(keys["setting"], keys["model"], keys["language"])


def _left_out_seeds(inputs: DisplayInputs, runs: Iterable[RunKey]) -> tuple[str, ...]:
    """Return notes on missing seeds of runs that have other seeds."""
    labels, made = inputs.labels(), set(runs)
    return tuple(
        f"Without seed {run.keys['seed']} of {labels[run.keys['model']]}"
        f" ({title_of(run.keys['setting'])}, {get_language(run.keys['language']).label}):"
        f" {run.not_run}."
        for run in inputs.left_out()
        if key_of(run.keys) in made
    )


def of_other_data(*measured: Measured) -> list[str]:
    """Return why numbers on data other than the paper's are not comparable.

    For the user's own data, the conditions of the runs state the reason instead.
    """
    other = (item.data_note or NOT_RELEASED for item in measured if not data_is_explained(item))
    return list(dict.fromkeys(other))


def data_notes(*metrics: MetricRecord) -> tuple[str, ...]:
    """Return a note if the data was verified only by counts; otherwise an empty tuple."""
    return (BY_COUNTS,) if any(item.data_note == BY_COUNTS for item in metrics) else ()


def obstacles_of(*metrics: JamMetrics) -> list[str]:
    """Return why the metrics of these runs are not comparable with the printed ones."""
    reasons = of_other_data(*metrics)
    if not all(item.overall.variants for item in metrics):
        reasons.append("no hard variants")
    return reasons + deviations_of(*metrics)


def deviations_of(*metrics: MetricRecord) -> list[str]:
    """Return how the conditions of these runs deviate from the paper's."""
    return list(dict.fromkeys(reason for item in metrics for reason in item.conditions.deviations))


def marked(label: str, runs: Mapping[str, Sequence[JamMetrics | NeutralMetrics]]) -> str:
    """Return a model's label, with its number of unreadable answers if there are any.

    Args:
        label: Label of the model.
        runs: Runs of the model, by a name to display with the number; the name may be empty.
    """
    parts = []
    for name, metrics in runs.items():
        number, total = unreadable(metrics)
        if number:
            parts.append(f"{name} {number} of {total}".strip())
    return f"{label} (unreadable: {', '.join(parts)})" if parts else label


def notes_on(metrics: Sequence[JamMetrics], inputs: DisplayInputs) -> tuple[str, ...]:
    """Return the notes below a table on missing seeds, scoring, unreadable answers and data."""
    runs = {RunKey(item.setting, item.model, item.language) for item in metrics}
    released = {item.scoring for item in metrics} == {"released"}
    notes = list(_left_out_seeds(inputs, runs))
    if released:
        notes.append("Scored as in the authors' code.")
    if any(unreadable([item])[0] for item in metrics):
        as_what = "as answers that name no idiom" if released else "as wrong"
        notes.append(f"Unreadable answers (of all, over seeds) count {as_what}.")
    notes += data_notes(*metrics)
    notes += inputs.notes
    return tuple(notes)
