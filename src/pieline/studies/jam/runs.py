"""List the runs of the ID10M-JAM study, and state the conditions of its metric files."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from pieline.core.conditions import Conditions, deviations
from pieline.llm.obstacles import SCHEMA_SETTING, unsupported_reason
from pieline.models.entries import EncoderEntry
from pieline.models.llm import LLMEntry
from pieline.plan import Plan, Run
from pieline.studies.jam import files, paths, tasks
from pieline.studies.jam.files import Jam
from pieline.studies.jam.predictions.prompt_settings import (
    FEW_SHOT,
    RELEASED_EXAMPLES,
    RELEASED_FORM,
)
from pieline.studies.jam.predictions.prompting import is_asked
from pieline.studies.jam.settings import (
    ADDED,
    ANALYZED,
    FINE_TUNED,
    NEUTRAL,
)
from pieline.studies.jam.training.settings import RELEASED_DEVIATIONS
from pieline.study import OWN_PROMPT

WRITER = "Gemini 2.5 Pro"
"""Model that wrote the paper's variants (section 3.3, appendix G)."""
_STRICT_MAJORITY = "Table 6 by a strict majority of all answers, unlike the paper's vote"


def configured_runs(study: Jam) -> Iterator[Run]:
    """Yield all configured runs, then the run of the neutral-context ablation, if configured."""
    # Runs that differ only in language or seed have the same conditions.
    cached_conditions = cache(lambda model, setting: conditions(study, model, setting))
    for wildcards in _configured_wildcards(study):
        run_conditions = cached_conditions(wildcards["model"], wildcards["setting"])
        yield _make_run(study, wildcards, run_conditions)
    if study.settings.neutral:
        yield _make_ablation(study, study.settings.neutral)


def _make_run(study: Jam, wildcards: dict[str, str], run_conditions: Conditions) -> Run:
    """Return the run of a model on the dataset, given its wildcards and conditions."""
    language, model, setting = wildcards["language"], wildcards["model"], wildcards["setting"]
    predictions, metrics = paths.PREDICTIONS.format(**wildcards), paths.METRICS.format(**wildcards)
    kind = study.project.entry(model).kind
    recordings = tasks.recordings(study, "jam").format(**wildcards) if kind == "llm" else ""
    return Run(
        study=study.name,
        model=model,
        keys=wildcards,
        kind=kind,
        where=wildcards,
        predictions=predictions,
        metrics=metrics,
        conditions=run_conditions,
        recordings=recordings,
        behind=(predictions, files.sentences(study, language)),
        unsupported=unsupported(study, language, model, setting),
        archive=study.project.archive_with(metrics),
    )


def _make_ablation(study: Jam, model: str) -> Run:
    """Return the run of a model on neutral variants (appendix G)."""
    wildcards = _ablation_wildcards(study, model)
    language, setting = wildcards["language"], wildcards["setting"]
    metrics = paths.NEUTRAL_METRICS.format(**wildcards)
    kind = study.project.entry(model).kind
    recordings = tasks.recordings(study, "jam_neutral").format(**wildcards) if kind == "llm" else ""
    return Run(
        study=study.name,
        model=model,
        keys={"model": model, "setting": setting, "language": language},
        kind=kind,
        where=wildcards,
        predictions=paths.NEUTRAL_PREDICTIONS.format(**wildcards),
        metrics=metrics,
        conditions=neutral_conditions(study, model, setting),
        recordings=recordings,
        experiment=NEUTRAL,
        unsupported=unsupported(study, language, model, setting),
        archive=study.project.archive_with(metrics),
    )


def _wildcards(language: str, model: str, setting: str, seed: int) -> dict[str, str]:
    """Return the wildcards of the paths of a run."""
    return {"language": language, "model": model, "setting": setting, "seed": str(seed)}


def _ablation_wildcards(study: Jam, model: str) -> dict[str, str]:
    """Return the wildcards of the run whose hard variants are replaced by neutral variants.

    A language model runs zero-shot in the language of the paper's ablation. An encoder is
    fine-tuned in this language or, if it does not support this language, in the first language of
    its entry.
    """
    entry = study.project.entry(model)
    if not isinstance(entry, EncoderEntry):
        return _wildcards(ANALYZED, model, "zero_shot", study.settings.seeds_of(model)[0])
    language = ANALYZED if ANALYZED in entry.languages else entry.languages[0]
    return _wildcards(language, model, FINE_TUNED, study.settings.fine_tuning.seeds[0])


def _configured_wildcards(study: Jam) -> Iterator[dict[str, str]]:
    """Yield the wildcards of every configured run, without the ablation."""
    settings = study.settings
    for model in settings.models:
        entry = study.project.entry(model)
        for file in study.prediction_files(model):  # only of external models
            if file.language in settings.languages:
                yield _wildcards(file.language, model, file.setting, file.seed)
        if isinstance(entry, LLMEntry):
            languages = settings.languages
            model_settings = [name for name in settings.settings_of(model) if is_asked(entry, name)]
            seeds = settings.seeds_of(model)
        elif isinstance(entry, EncoderEntry):
            languages = [name for name in settings.languages if name in entry.languages]
            model_settings = [FINE_TUNED, *study.added_settings()]
            seeds = settings.fine_tuning.seeds
        else:
            continue
        for language, setting, seed in product(languages, model_settings, seeds):
            yield _wildcards(language, model, setting, seed)


# Why runs cannot be made -------------------------------------------------------------------------


def impossible_runs(study: Jam, runs: Sequence[Run]) -> dict[str, str]:
    """Return the reason why a run cannot be made, by the run's metric file.

    Runs that can be made are left out.
    """
    archived_metrics = {run.metrics for run in runs if run.archive}
    reasons = {}
    for run in runs:
        if run.experiment == NEUTRAL:
            reason = _why_no_ablation(study, run.where, archived_metrics)
        else:
            reason = _why_no_run(study, run.where, archived_metrics)
        if reason:
            reasons[run.metrics] = reason
    return reasons


def _why_no_run(study: Jam, wildcards: Mapping[str, str], archived_metrics: set[str]) -> str:
    """Return the reason why a run on the dataset cannot be made; empty if the run can be made.

    `archived_metrics` are the metric files of the runs that are taken from archives.
    """
    project, model, setting = study.project, wildcards["model"], wildcards["setting"]
    if paths.METRICS.format(**wildcards) in archived_metrics:
        return ""
    if reason := unsupported(study, wildcards["language"], model, setting):
        return reason
    # The model that writes the neutral contexts must answer.
    writer = study.settings.variants.model
    if writer and files.uses_neutral_contexts(study, setting):
        contexts = tasks.neutral_contexts(study, wildcards["language"])
        if reason := project.unanswered(writer, contexts.recordings):
            return reason
    # The model that judges the sentences must answer.
    if project.entry(model).kind != "llm":
        return ""
    return project.unanswered(model, tasks.recordings(study, "jam").format(**wildcards))


def _why_no_ablation(study: Jam, wildcards: Mapping[str, str], archived_metrics: set[str]) -> str:
    """Return the reason why the ablation cannot be made; empty if the ablation can be made.

    `archived_metrics` are the metric files of the runs that are taken from archives.
    """
    project, model, writer = study.project, wildcards["model"], study.settings.variants.model
    is_archived = paths.NEUTRAL_METRICS.format(**wildcards) in archived_metrics
    # The variants to rewrite are those that the model misjudged in its run on the dataset.
    if reason := _why_no_run(study, wildcards, archived_metrics):
        return reason
    if not is_archived:
        reason = _why_no_contexts(study, wildcards["language"])
        if reason:
            return reason
    if writer:
        recordings = tasks.neutral_variants(study, **wildcards).recordings
        if reason := project.unanswered(writer, recordings):
            return f"of {project.entry(writer).label}, which writes the texts, {reason}"
    if is_archived or project.entry(model).kind != "llm":
        return ""
    return project.unanswered(model, tasks.recordings(study, "jam_neutral").format(**wildcards))


def unsupported(study: Jam, language: str, model: str, setting: str) -> str:
    """Return why a run is impossible even if all answers are recorded; empty if it is possible.

    A run is impossible if the prompt enforces a response format that the model does not support, or
    if the setting needs neutral contexts and there are none.
    """
    settings, entry = study.settings, study.project.entry(model)
    if isinstance(entry, LLMEntry):
        # All prompts of the authors' code enforce a format, like the setting with a schema.
        is_custom = setting in settings.prompts
        enforces_format = settings.form == "released" and not is_custom
        required_support = SCHEMA_SETTING if enforces_format else setting
        reason = unsupported_reason(entry, required_support)
        if reason:
            return reason
    if files.uses_neutral_contexts(study, setting):
        return _why_no_contexts(study, language)
    return ""


def _why_no_contexts(study: Jam, language: str) -> str:
    """Return why there are no neutral contexts in a language; empty if there are.

    A model writes the contexts, or the sample contains them.
    """
    if study.settings.variants.model:
        return ""
    sample_file = Path(study.project.here("data/sample/id10m/neutral", f"{language}.json"))
    if study.project.is_sample and sample_file.exists():
        return ""
    return f"no neutral contexts in {language.capitalize()} (jam.variants.model writes them)"


# Conditions --------------------------------------------------------------------------------------


def other_metrics(study: Jam, plan: Plan) -> dict[str, Conditions]:
    """Return the conditions of each metric file that does not belong to one run, by path."""
    conditions_by_path = {paths.HUMANS: data_conditions(study)}
    for language in study.settings.languages:
        statistics_path = paths.STATISTICS.format(language=language)
        conditions_by_path[statistics_path] = data_conditions(study)
        for baseline_path in paths.baselines(language):
            conditions_by_path[baseline_path] = baseline_conditions(study)
    attention_model = study.settings.attention
    if attention_model:
        attention_path = paths.ATTENTION.format(language=ANALYZED, model=attention_model)
        conditions_by_path[attention_path] = attention_conditions(study, attention_model)
    return conditions_by_path


def baseline_conditions(study: Jam) -> Conditions:
    """Return the conditions of the metric files of baselines."""
    settings = study.settings.model_dump(include={"scoring", "bootstrap_resamples"})
    return study.mark_data(Conditions(settings=settings))


def data_conditions(study: Jam) -> Conditions:
    """Return the conditions of the metric files of data counts and of human labels."""
    return study.mark_data(Conditions())


def neutral_conditions(study: Jam, model: str, setting: str) -> Conditions:
    """Return the conditions of a model's run in the neutral-context ablation (appendix G)."""
    run_conditions = _conditions_without_data(study, model, setting)
    settings = dict(run_conditions.settings)
    differences = list(run_conditions.deviations)
    writer = study.settings.variants.model
    if writer:
        generation, _ = study.as_sent(writer, tasks.generation(study))
        settings |= {"writer": writer, "generation": generation}
        differences.append("neutral contexts by our prompt, the paper's is not printed")
        entry = study.project.language_model(writer)
        if entry.published_as != WRITER:
            differences.append(f"neutral contexts by {entry.label}, the paper's by {WRITER}")
    return study.mark_data(
        Conditions(settings=settings, weights=run_conditions.weights, deviations=tuple(differences))
    )


def attention_conditions(study: Jam, model: str) -> Conditions:
    """Return the conditions of the attention analysis of a model (appendix H)."""
    return study.mark_data(
        Conditions(
            settings={"bootstrap_resamples": study.settings.bootstrap_resamples},
            weights=json.loads(tasks.weights_spec(study, model)),
            deviations=study.project.changed_entry(model),
        )
    )


def conditions(study: Jam, model: str, setting: str) -> Conditions:
    """Return the conditions of the runs of a model in a setting, in any language and seed."""
    return study.mark_data(_conditions_without_data(study, model, setting))


def _conditions_without_data(study: Jam, model: str, setting: str) -> Conditions:
    """Return the conditions of a run before `mark_data` adds the deviations of the data."""
    settings = study.settings
    used_settings = settings.model_dump(include={"scoring", "bootstrap_resamples"})
    used_settings["setting"] = setting
    is_external = bool(study.prediction_files(model))
    if is_external:
        return study.external_conditions(**used_settings)

    used_settings["form"] = settings.form
    differences = list(study.project.changed_entry(model))
    if settings.scoring != "paper":
        differences.append("scored as in the released analysis, unlike the paper's text")
    is_trained = setting in (FINE_TUNED, *ADDED)
    if is_trained:
        used_settings |= settings.fine_tuning.model_dump(exclude={"seeds"})
        differences += _training_deviations(study, setting)
    else:
        prompt_settings, prompt_differences = _prompting(study, model, setting)
        used_settings |= prompt_settings
        differences += prompt_differences
    if is_trained or setting == FEW_SHOT:
        used_settings["train_split"] = settings.train_split
        if settings.train_split != "train":
            purpose = "trained on" if is_trained else "examples from"
            differences.append(f"{purpose} ID10M's {settings.train_split} split, the paper's train")
    return Conditions(
        settings=used_settings,
        weights=json.loads(study.project.entry(model).execution_spec()),
        deviations=tuple(differences),
    )


def _training_deviations(study: Jam, setting: str) -> list[str]:
    """Return how the training of an encoder differs from the paper's training."""
    differences = list(deviations(study.settings.fine_tuning))
    if study.settings.form == "released":
        differences += RELEASED_DEVIATIONS
    if setting in ADDED:
        differences.append(f"also trained with texts of other PIEs ({ADDED[setting]})")
    return differences


def _prompting(study: Jam, model: str, setting: str) -> tuple[dict[str, Any], list[str]]:
    """Return the prompt digests and parameters of a run, and deviations from the paper's."""
    prompts = study.prompt_digests(*paths.prompt_files(study, setting).values())
    # The paper does not state whether reasoning models were sent the temperature.
    withheld = {"temperature"} if study.project.language_model(model).reasoning else set()
    request = tasks.parameters(study, model, setting)
    sent, parameter_deviations = study.as_sent(model, request, withheld=withheld)
    differences = [*_prompt_deviations(study, setting, prompts), *parameter_deviations]
    if setting == FEW_SHOT and study.settings.form == "released":
        differences.append(_STRICT_MAJORITY)
    return {"prompts": prompts, **sent}, differences


def _prompt_deviations(study: Jam, setting: str, digests: Mapping[str, str]) -> list[str]:
    """Return how the prompts of a setting differ from the paper's prompts.

    `digests` are the digests of the prompt files, by file name.
    """
    if setting in study.settings.prompts:
        return [OWN_PROMPT.format(setting)]
    if study.settings.form != "released":
        return study.reworded(digests)
    differences = list(RELEASED_FORM)
    if setting == FEW_SHOT:
        differences += RELEASED_EXAMPLES
    return differences


def conditions_by_pattern(study: Jam) -> dict[str, Callable[..., Conditions]]:
    """Return functions that map wildcards to conditions, by path pattern of metric files."""
    return {
        paths.METRICS: lambda model, setting, **_: conditions(study, model, setting),
        paths.NEUTRAL_METRICS: lambda model, setting, **_: neutral_conditions(
            study, model, setting
        ),
        paths.ATTENTION: lambda model, **_: attention_conditions(study, model),
        paths.STATISTICS: lambda **_: data_conditions(study),
        paths.HUMANS: lambda: data_conditions(study),
    }


def models(study: Jam) -> list[str]:
    """Return the evaluated models, the model of the attention analysis and the writer of variants.

    Each model occurs once. The writer is left out if the configuration needs no new texts.
    """
    settings = study.settings
    used_models = list(settings.models)
    if settings.attention:
        used_models.append(settings.attention)
    writer = settings.variants.model
    needs_writer = bool(files.written_languages(study) or settings.neutral)
    if writer and needs_writer:
        used_models.append(writer)
    return list(dict.fromkeys(used_models))


def archived_models(study: Jam) -> set[str]:
    """Return the models whose weights are not needed, because archives contain all their runs.

    The model of the attention analysis and the writer of variants are left out, because jobs other
    than runs need their weights.
    """
    models_with_other_uses = {study.settings.attention, study.settings.variants.model}
    return study.plan.archived_models() - models_with_other_uses
