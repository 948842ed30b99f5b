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
    """Yield all configured runs."""
    settings = study.settings
    run_conditions = cache(lambda model, setting: conditions(study, model, setting))
    for model in settings.models:
        kind = study.project.entry(model).kind
        external = [(one.setting, one.seed) for one in study.prediction_files(model)]
        configured = product(settings.settings_of(model), settings.seeds_of(model))
        for setting, seed in external or configured:
            where = {"model": model, "setting": setting, "seed": str(seed)}
            predictions = paths.PREDICTIONS.format(**where)
            yield Run(
                study=study.name,
                model=model,
                keys=where,
                kind=kind,
                where=where,
                predictions=predictions,
                metrics=paths.METRICS.format(**where),
                conditions=run_conditions(model, setting),
                recordings=tasks.recordings(study).format(**where) if kind == "llm" else "",
                behind=(predictions, paths.SENTENCES),
                unsupported=paths.no_data(study) or _unsupported(study, model, setting),
                archive=study.project.archive_with(paths.METRICS.format(**where)),
            )


def lacks(study: Idiots, runs: Sequence[Run]) -> Mapping[str, str]:
    """Return why runs cannot be made, by metric file."""
    if reason := paths.no_data(study):
        return {run.metrics: reason for run in runs}
    return Study.lacks(study, runs)


def _unsupported(study: Idiots, model: str, setting: str) -> str:
    """Return why a language model does not support a setting; empty for other models."""
    entry = study.project.entry(model)
    return unsupported_reason(entry, setting) if isinstance(entry, LLMEntry) else ""


def conditions(study: Idiots, model: str, setting: str) -> Conditions:
    """Return the conditions of a run, which are the same for all seeds."""
    if study.prediction_files(model):
        return study.mark_data(study.external_conditions(setting=setting))
    parameters, changed = study.as_sent(model, tasks.parameters(study, model, setting))
    prompts = study.prompt_digests(tasks.prompt(study, setting))
    is_own = setting in study.settings.prompts
    wording = [OWN_PROMPT.format(setting)] if is_own else study.reworded(prompts)
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
                *changed,
            ),
        )
    )


def models(study: Idiots) -> list[str]:
    """Return the language models and the models with external predictions."""
    return list(study.settings.models)


def conditions_by_pattern(study: Idiots) -> dict[str, Callable[..., Conditions]]:
    """Return functions from wildcards to conditions, by path pattern of metric files."""
    return {
        paths.METRICS: lambda model, setting, **_: conditions(study, model, setting),
    }
