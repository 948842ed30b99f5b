"""Runs of the IdioTS study, and the conditions of its metric files."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import product

from pieline.core.conditions import Conditions
from pieline.llm.obstacles import unsupported_reason
from pieline.models.llm import LLMEntry
from pieline.plan import Run
from pieline.studies.idiots import paths, tasks
from pieline.studies.idiots.files import Idiots
from pieline.study import OWN_PROMPT, Study


def configured_runs(study: Idiots) -> Iterator[Run]:
    """Yield all configured runs: models with their settings and seeds, and external predictions."""
    settings = study.settings
    # Runs that differ only in the seed have the same conditions.
    cached_conditions = cache(lambda model, setting: conditions(study, model, setting))
    for model in settings.models:
        kind = study.project.entry(model).kind
        prediction_files = study.prediction_files(model)
        if prediction_files:
            settings_and_seeds = [(file.setting, file.seed) for file in prediction_files]
        else:
            settings_and_seeds = list(
                product(settings.settings_of(model), settings.seeds_of(model))
            )
        for setting, seed in settings_and_seeds:
            wildcards = {"model": model, "setting": setting, "seed": str(seed)}
            predictions = paths.PREDICTIONS.format(**wildcards)
            metrics = paths.METRICS.format(**wildcards)
            recordings = tasks.recordings(study).format(**wildcards) if kind == "llm" else ""
            yield Run(
                study=study.name,
                model=model,
                keys=wildcards,
                kind=kind,
                where=wildcards,
                predictions=predictions,
                metrics=metrics,
                conditions=cached_conditions(model, setting),
                recordings=recordings,
                behind=(predictions, paths.SENTENCES),
                unsupported=paths.no_data_reason(study) or _unsupported(study, model, setting),
                archive=study.project.archive_with(metrics),
            )


def impossible_runs(study: Idiots, runs: Sequence[Run]) -> Mapping[str, str]:
    """Return why each impossible run cannot be made, by the path of its metric file."""
    reason = paths.no_data_reason(study)
    if reason:
        return {run.metrics: reason for run in runs}
    return Study.impossible_runs(study, runs)


def _unsupported(study: Idiots, model: str, setting: str) -> str:
    """Return why a language model does not support a setting.

    The result is empty if it supports the setting, and for external predictions.
    """
    entry = study.project.entry(model)
    return unsupported_reason(entry, setting) if isinstance(entry, LLMEntry) else ""


def conditions(study: Idiots, model: str, setting: str) -> Conditions:
    """Return the conditions of a model's runs in a setting; they do not depend on the seed."""
    if study.prediction_files(model):
        return study.mark_data(study.external_conditions(setting=setting))
    parameters, changed_parameters = study.as_sent(model, tasks.parameters(study, model, setting))
    prompts = study.prompt_digests(tasks.prompt(study, setting))
    is_custom_prompt = setting in study.settings.prompts
    wording = [OWN_PROMPT.format(setting)] if is_custom_prompt else study.reworded(prompts)
    return study.mark_data(
        Conditions(
            settings={
                "bootstrap_resamples": study.settings.bootstrap_resamples,
                "setting": setting,
                "prompts": prompts,
                **parameters,
            },
            weights=json.loads(study.project.entry(model).execution_spec()),
            deviations=(
                *study.project.changed_entry(model),
                *wording,
                *changed_parameters,
            ),
        )
    )


def models(study: Idiots) -> list[str]:
    """Return the names of the configured models: language models and external predictions."""
    return list(study.settings.models)


def conditions_by_pattern(study: Idiots) -> dict[str, Callable[..., Conditions]]:
    """Return functions that compute the conditions of metric files, by path pattern.

    Each function takes the wildcards of its path pattern.
    """
    return {
        paths.METRICS: lambda model, setting, **_: conditions(study, model, setting),
    }
