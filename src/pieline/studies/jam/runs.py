"""Runs of the ID10M-JAM study, and the conditions of its metric files."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from pathlib import Path

from pieline.core.conditions import Conditions, deviations
from pieline.llm.obstacles import SCHEMA_SETTING, unsupported_reason
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
    """Yield all configured runs, then the run of the ablation."""
    run_conditions = cache(lambda model, setting: conditions(study, model, setting))
    for language, model, setting, seed in _grid(study):
        where = {"language": language, "model": model, "setting": setting, "seed": str(seed)}
        predictions = paths.PREDICTIONS.format(**where)
        kind = study.project.entry(model).kind
        yield Run(
            study=study.name,
            model=model,
            keys=where,
            kind=kind,
            where=where,
            predictions=predictions,
            metrics=paths.METRICS.format(**where),
            conditions=run_conditions(model, setting),
            recordings=tasks.recordings(study, "jam").format(**where) if kind == "llm" else "",
            behind=(predictions, files.sentences(study, language)),
            unsupported=unsupported(study, language, model, setting),
            archive=study.project.archive_with(paths.METRICS.format(**where)),
        )
    if (name := study.settings.neutral) is None:
        return
    where = _ablated(study, name)
    kind = study.project.entry(name).kind
    yield Run(
        study=study.name,
        model=name,
        keys={each: where[each] for each in ("model", "setting", "language")},
        kind=kind,
        where=where,
        predictions=paths.NEUTRAL_PREDICTIONS.format(**where),
        metrics=paths.NEUTRAL_METRICS.format(**where),
        conditions=neutral_conditions(study, name, where["setting"]),
        recordings=tasks.recordings(study, "jam_neutral").format(**where) if kind == "llm" else "",
        experiment=NEUTRAL,
        unsupported=unsupported(study, where["language"], name, where["setting"]),
        archive=study.project.archive_with(paths.NEUTRAL_METRICS.format(**where)),
    )


def _ablated(study: Jam, model: str) -> dict[str, str]:
    """Return the wildcards of the run whose variants get neutral contexts.

    A language model runs zero-shot in the paper's language. An encoder is fine-tuned in the same
    language, or in its own first language if it does not support the paper's.
    """
    entry = study.project.entry(model)
    if entry.kind == "encoder":
        setting, seeds = FINE_TUNED, study.settings.fine_tuning.seeds
        languages = vars(entry)["languages"]
    else:
        setting, seeds = "zero_shot", study.settings.seeds_of(model)
        languages = [ANALYZED]
    return {
        "language": ANALYZED if ANALYZED in languages else languages[0],
        "model": model,
        "setting": setting,
        "seed": str(seeds[0]),
    }


def _grid(study: Jam) -> Iterator[tuple[str, str, str, int]]:
    """Yield language, model, setting and seed of every configured run."""
    settings = study.settings
    for model in settings.models:
        entry = study.project.entry(model)
        for one in study.prediction_files(model):
            if one.language in settings.languages:
                yield one.language, model, one.setting, one.seed
        if isinstance(entry, LLMEntry):
            languages = settings.languages
            model_settings = [each for each in settings.settings_of(model) if is_asked(entry, each)]
            seeds = settings.seeds_of(model)
        elif entry.kind == "encoder":
            supported = vars(entry)["languages"]
            languages = [name for name in settings.languages if name in supported]
            model_settings = [FINE_TUNED, *study.added_settings()]
            seeds = settings.fine_tuning.seeds
        else:
            continue
        for language, setting, seed in product(languages, model_settings, seeds):
            yield language, model, setting, seed


# Why runs cannot be made -------------------------------------------------------------------------


def lacks(study: Jam, runs: Sequence[Run]) -> dict[str, str]:
    """Return why runs cannot be made, by metric file."""
    archived = {run.metrics for run in runs if run.archive}
    reasons = {}
    for run in runs:
        lacks_of = _lacks_of_ablation if run.experiment == NEUTRAL else _lacks_of_run
        if reason := lacks_of(study, run.where, archived):
            reasons[run.metrics] = reason
    return reasons


def _lacks_of_run(study: Jam, where: Mapping[str, str], archived: set[str]) -> str:
    """Return why a run cannot be made; empty if it can. `archived` are runs of archives."""
    language, model, setting = where["language"], where["model"], where["setting"]
    if paths.METRICS.format(**where) in archived:
        return ""
    if reason := unsupported(study, language, model, setting):
        return reason
    writer = study.settings.variants.model
    if writer and files.shows_neutral(study, setting):
        recordings = tasks.neutral_contexts(study, language).recordings
        if reason := study.project.unanswered(writer, recordings):
            return reason
    if study.project.entry(model).kind != "llm":
        return ""
    return study.project.unanswered(model, tasks.recordings(study, "jam").format(**where))


def _lacks_of_ablation(study: Jam, where: Mapping[str, str], archived: set[str]) -> str:
    """Return why the ablation cannot be made: its run, texts or answers are missing."""
    project, model, writer = study.project, where["model"], study.settings.variants.model
    is_archived = paths.NEUTRAL_METRICS.format(**where) in archived
    if reason := _lacks_of_run(study, where, archived):
        return reason
    if not is_archived and (reason := _lacks_contexts(study, where["language"])):
        return reason
    if writer:
        recordings = tasks.neutral_variants(study, **where).recordings
        if reason := project.unanswered(writer, recordings):
            return f"of {project.entry(writer).label}, which writes the texts, {reason}"
    if is_archived or project.entry(model).kind != "llm":
        return ""
    return project.unanswered(model, tasks.recordings(study, "jam_neutral").format(**where))


def unsupported(study: Jam, language: str, model: str, setting: str) -> str:
    """Return why a run is impossible even if all answers are recorded; empty if it is possible.

    The released prompts require a model that supports an enforced response format, and some
    settings need neutral contexts, which a model writes or the sample contains.
    """
    settings, entry = study.settings, study.project.entry(model)
    if isinstance(entry, LLMEntry):
        is_enforced = settings.form == "released" and setting not in settings.prompts
        if reason := unsupported_reason(entry, SCHEMA_SETTING if is_enforced else setting):
            return reason
    if files.shows_neutral(study, setting):
        return _lacks_contexts(study, language)
    return ""


def _lacks_contexts(study: Jam, language: str) -> str:
    """Return why a language has no neutral contexts; empty if it has them."""
    in_sample = Path(study.project.here("data/sample/id10m/neutral", f"{language}.json")).exists()
    if study.settings.variants.model or (study.project.is_sample and in_sample):
        return ""
    return f"no neutral contexts in {language.capitalize()} (jam.variants.model writes them)"


# Conditions --------------------------------------------------------------------------------------


def other_metrics(study: Jam, plan: Plan) -> dict[str, Conditions]:
    """Return the conditions of metric files that do not belong to one run, by path."""
    others = {paths.HUMANS: data_conditions(study)}
    for language in study.settings.languages:
        others[paths.STATISTICS.format(language=language)] = data_conditions(study)
        for path in paths.baselines(language):
            others[path] = baseline_conditions(study)
    if attention := study.settings.attention:
        path = paths.ATTENTION.format(language=ANALYZED, model=attention)
        others[path] = attention_conditions(study, attention)
    return others


def baseline_conditions(study: Jam) -> Conditions:
    """Return the conditions of baselines."""
    settings = study.settings.model_dump(include={"scoring", "bootstrap_resamples"})
    return study.mark_data(Conditions(settings=settings))


def data_conditions(study: Jam) -> Conditions:
    """Return the conditions of data counts and human labels."""
    return study.mark_data(Conditions())


def neutral_conditions(study: Jam, model: str, setting: str) -> Conditions:
    """Return the conditions of the neutral-context ablation."""
    run = _conditions(study, model, setting)
    settings, reasons = dict(run.settings), list(run.deviations)
    if writer := study.settings.variants.model:
        sent, _ = study.as_sent(writer, tasks.generation(study))
        settings |= {"writer": writer, "generation": sent}
        reasons.append("neutral contexts by our prompt, the paper's is not printed")
        entry = study.project.language_model(writer)
        if entry.published_as != WRITER:
            reasons.append(f"neutral contexts by {entry.label}, the paper's by {WRITER}")
    return study.mark_data(
        Conditions(settings=settings, weights=run.weights, deviations=tuple(reasons))
    )


def attention_conditions(study: Jam, model: str) -> Conditions:
    """Return the conditions of the attention analysis."""
    return study.mark_data(
        Conditions(
            settings={"bootstrap_resamples": study.settings.bootstrap_resamples},
            weights=json.loads(tasks.weights_spec(study, model)),
            deviations=study.project.changed_entry(model),
        )
    )


def conditions(study: Jam, model: str, setting: str) -> Conditions:
    """Return the conditions of a run."""
    return study.mark_data(_conditions(study, model, setting))


def _conditions(study: Jam, model: str, setting: str) -> Conditions:
    """Return the conditions of a run, without those of the data."""
    settings = study.settings
    used = settings.model_dump(include={"scoring", "bootstrap_resamples"})
    used["setting"] = setting
    if study.prediction_files(model):
        return study.external_conditions(**used)
    used["form"] = settings.form
    reasons = list(study.project.changed_entry(model))
    if settings.scoring != "paper":
        reasons.append("scored as in the released analysis, unlike the paper's text")
    is_trained = setting in (FINE_TUNED, *ADDED)
    if is_trained:
        used |= settings.fine_tuning.model_dump(exclude={"seeds"})
        reasons += _training_deviations(study, setting)
    else:
        prompts = study.prompt_digests(*paths.prompt_files(study, setting).values())
        # The paper does not state whether reasoning models were sent the temperature.
        withheld = {"temperature"} if study.project.language_model(model).reasoning else set()
        parameters = tasks.parameters(study, model, setting)
        sent, changed = study.as_sent(model, parameters, withheld=withheld)
        used |= {"prompts": prompts, **sent}
        reasons += _prompt_deviations(study, setting, prompts)
        reasons += changed
        if setting == FEW_SHOT and settings.form == "released":
            reasons.append(_STRICT_MAJORITY)
    if is_trained or setting == FEW_SHOT:
        used["train_split"] = settings.train_split
        if settings.train_split != "train":
            use = "trained on" if is_trained else "examples from"
            reasons.append(f"{use} ID10M's {settings.train_split} split, the paper's train")
    return Conditions(
        settings=used,
        weights=json.loads(study.project.entry(model).execution_spec()),
        deviations=tuple(reasons),
    )


def _training_deviations(study: Jam, setting: str) -> list[str]:
    """Return how the training of an encoder differs from the paper's."""
    reasons = list(deviations(study.settings.fine_tuning))
    if study.settings.form == "released":
        reasons += RELEASED_DEVIATIONS
    if setting in ADDED:
        reasons.append(f"also trained with texts of other PIEs ({ADDED[setting]})")
    return reasons


def _prompt_deviations(study: Jam, setting: str, digests: Mapping[str, str]) -> list[str]:
    """Return how a setting's prompt files, with these digests, differ from the paper's."""
    if setting in study.settings.prompts:
        return [OWN_PROMPT.format(setting)]
    if study.settings.form != "released":
        return study.reworded(digests)
    reasons = list(RELEASED_FORM)
    if setting == FEW_SHOT:
        reasons += RELEASED_EXAMPLES
    return reasons


def conditions_by_pattern(study: Jam) -> dict[str, Callable[..., Conditions]]:
    """Return functions from wildcards to conditions, by path pattern of metric files."""
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
    """Return the evaluated and analyzed models, and the model that writes variants, if any."""
    settings = study.settings
    names = list(settings.models)
    if settings.attention:
        names.append(settings.attention)
    if settings.variants.model and (files.written_languages(study) or settings.neutral):
        names.append(settings.variants.model)
    return list(dict.fromkeys(names))


def archived_models(study: Jam) -> set[str]:
    """Return the models whose runs all come from archives, so that no weights are needed.

    The models used for the attention analysis and for writing variants are excluded.
    """
    others = {study.settings.variants.model, study.settings.attention}
    return study.plan.archived_models() - others
