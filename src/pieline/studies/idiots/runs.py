"""Runs of the IdioTS study, and the conditions of its metric files."""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache
from itertools import product

from pieline.core.conditions import Conditions, digest_of
from pieline.llm.obstacles import unsupported_reason
from pieline.models.llm import LLMEntry
from pieline.plan import Plan, Run
from pieline.studies.idiots import inputs, paths, questions
from pieline.studies.idiots.files import Idiots
from pieline.study import OWN_PROMPT, Study

STRICT = "answers that say true but name no idiom are unreadable, the paper reads true/false alone"


def configured_runs(study: Idiots) -> Iterator[Run]:
    """Yield all configured runs."""
    settings = study.settings
    run_conditions = cache(lambda model, setting: conditions(study, model, setting))
    for model in settings.models:
        kind = study.project.entry(model).kind
        external = [(one.setting, one.seed) for one in study.prediction_files(model)]
        ways = settings.settings_by_model.get(model, settings.settings)
        for setting, seed in external or product(ways, settings.seeds):
            where = {"model": model, "setting": setting, "seed": str(seed)}
            predictions = paths.PREDICTIONS.format(**where)
            yield Run(
                study=study.name,
                model=model,
                key="/".join(where.values()),
                kind=kind,
                where=where,
                predictions=predictions,
                metrics=paths.METRICS.format(**where),
                conditions=run_conditions(model, setting),
                recordings=questions.recordings(study).format(**where) if kind == "llm" else "",
                behind=(predictions, paths.SENTENCES),
                unsupported=inputs.no_data(study) or _unsupported(study, model, setting),
            )


def lacks(study: Idiots, runs: Sequence[Run], archived: Collection[str]) -> Mapping[str, str]:
    """Return why runs cannot be made, by metric file."""
    if reason := inputs.no_data(study):
        return {run.metrics: reason for run in runs}
    return Study.lacks(study, runs, archived)


def _unsupported(study: Idiots, model: str, setting: str) -> str:
    """Return why a language model does not support a setting; empty for other models."""
    entry = study.project.entry(model)
    return unsupported_reason(entry, setting) if isinstance(entry, LLMEntry) else ""


def compared(study: Idiots, plan: Plan, model: str) -> list[Run]:
    """Return a model's runs with a custom prompt or the reference setting."""
    settings = study.settings
    return plan.made(model=model, setting=[*settings.prompts, settings.prompts_against or ""])


def compared_metrics(study: Idiots, model: str) -> list[str]:
    """Return the metric files of the runs that `compared` returns."""
    return [run.metrics for run in compared(study, study.plan, model)]


def compared_predictions(study: Idiots, model: str) -> list[str]:
    """Return the predictions of the runs that `compared` returns."""
    return [run.predictions for run in compared(study, study.plan, model)]


def other_metrics(study: Idiots, plan: Plan) -> dict[str, Conditions]:
    """Return the conditions of the comparisons of settings, by path."""
    if not study.settings.prompts_against:
        return {}
    return {
        paths.BIAS.format(model=model): bias_conditions(study, plan, model)
        for model in study.settings.models
        if compared(study, plan, model)
    }


def conditions(study: Idiots, model: str, setting: str) -> Conditions:
    """Return the conditions of a run."""
    if study.prediction_files(model):
        return study.mark_data(study.external_conditions(setting=setting))
    parameters, changed = study.as_sent(model, questions.parameters(study, setting))
    prompts = study.prompt_digests(questions.prompt(study, setting))
    is_own = setting in study.settings.prompts
    wording = [OWN_PROMPT.format(setting)] if is_own else study.reworded(prompts)
    # Only the other value than the paper's is listed, so that earlier results keep their
    # conditions.
    is_strict = study.settings.detection == "strict"
    return study.mark_data(
        Conditions(
            settings={
                "bootstrap_resamples": study.settings.bootstrap_resamples,
                "setting": setting,
                "prompts": prompts,
                **parameters,
                **({"detection": "strict"} if is_strict else {}),
            },
            weights=json.loads(study.project.entry(model).execution_spec()),
            deviations=(
                *study.project.changed_entry(model),
                *wording,
                *([STRICT] if is_strict else []),
                *changed,
            ),
        )
    )


def bias_conditions(study: Idiots, plan: Plan, model: str) -> Conditions:
    """Return the conditions of the comparison of a model's settings."""
    settings = study.settings
    return study.mark_data(
        Conditions(
            settings={
                "against": settings.prompts_against,
                "permutations": settings.permutations,
                "bootstrap_resamples": settings.bootstrap_resamples,
                "runs": {
                    run.metrics: digest_of(run.conditions.canonical())
                    for run in compared(study, plan, model)
                },
            }
        )
    )


def models(study: Idiots) -> list[str]:
    """Return the language models and the models with external predictions."""
    return list(study.settings.models)


def conditions_by_pattern(study: Idiots) -> dict[str, Callable[..., Conditions]]:
    """Return functions from wildcards to conditions, by path pattern of metric files."""
    return {
        paths.METRICS: lambda model, setting, **_: conditions(study, model, setting),
        paths.BIAS: lambda model: bias_conditions(study, study.plan, model),
    }
