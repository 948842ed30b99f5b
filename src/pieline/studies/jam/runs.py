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
    """Return the wildcards of the run that gets neutral contexts: zero-shot or fine-tuned.

    It is in the paper's language, or in the first language of an encoder that does not know it.
    """
    entry = study.project.entry(model)
    tagged = entry.kind == "encoder"
    seeds = study.settings.fine_tuning.seeds if tagged else study.settings.seeds_of(model)
    known = vars(entry)["languages"] if tagged else [ANALYZED]
    return {
        "language": ANALYZED if ANALYZED in known else known[0],
        "model": model,
        "setting": FINE_TUNED if tagged else "zero_shot",
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
            ways = [way for way in settings.settings_of(model) if is_asked(entry, way)]
            seeds = settings.seeds_of(model)
            for language, way, seed in product(settings.languages, ways, seeds):
                yield language, model, way, seed
        elif entry.kind == "encoder":
            tagged = [name for name in settings.languages if name in vars(entry)["languages"]]
            ways = [FINE_TUNED, *study.added_settings()]
            for language, way, seed in product(tagged, ways, settings.fine_tuning.seeds):
                yield language, model, way, seed


# Why runs cannot be made -------------------------------------------------------------------------


def lacks(study: Jam, runs: Sequence[Run]) -> dict[str, str]:
    """Return why runs cannot be made, by metric file."""
    why = {NEUTRAL: _lacks_of_ablation, "": _lacks_of_run}
    archived = {run.metrics for run in runs if run.archive}
    reasons = {run.metrics: why[run.experiment](study, run.where, archived) for run in runs}
    return {path: reason for path, reason in reasons.items() if reason}


def _lacks_of_run(study: Jam, where: Mapping[str, str], archived: set[str]) -> str:
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
    """Return why the ablation is not possible: its run, texts or answers are missing."""
    project, model, writer = study.project, where["model"], study.settings.variants.model
    is_archived = paths.NEUTRAL_METRICS.format(**where) in archived
    contexts = "" if is_archived else _lacks_contexts(study, where["language"])
    if reason := _lacks_of_run(study, where, archived) or contexts:
        return reason
    if writer:
        reason = project.unanswered(writer, tasks.neutral_variants(study, **where).recordings)
        if reason:
            return f"of {project.entry(writer).label}, which writes the texts, {reason}"
    if is_archived or project.entry(model).kind != "llm":
        return ""
    return project.unanswered(model, tasks.recordings(study, "jam_neutral").format(**where))


def unsupported(study: Jam, language: str, model: str, setting: str) -> str:
    """Return why a run is impossible, whatever answers are obtained; empty if it is possible.

    The released prompts require a model that supports an enforced response format, and some
    settings need neutral contexts, which a model writes or the sample contains.
    """
    settings, entry = study.settings, study.project.entry(model)
    if isinstance(entry, LLMEntry):
        enforced = settings.form == "released" and setting not in settings.prompts
        if reason := unsupported_reason(entry, SCHEMA_SETTING if enforced else setting):
            return reason
    return _lacks_contexts(study, language) if files.shows_neutral(study, setting) else ""


def _lacks_contexts(study: Jam, language: str) -> str:
    """Return why a language has no neutral contexts; empty if it has them."""
    in_sample = Path(study.project.here("data/sample/id10m/neutral", f"{language}.json")).exists()
    if study.settings.variants.model or (study.project.is_sample and in_sample):
        return ""
    return f"no neutral contexts in {language.capitalize()} (jam.variants.model writes them)"


# Conditions --------------------------------------------------------------------------------------


def other_metrics(study: Jam, plan: Plan) -> dict[str, Conditions]:
    """Return the conditions of metric files that do not belong to one run, by path."""
    languages, attention = study.settings.languages, study.settings.attention
    data, baseline = data_conditions(study), baseline_conditions(study)
    others = {paths.STATISTICS.format(language=language): data for language in languages}
    others |= {path: baseline for language in languages for path in paths.baselines(language)}
    others[paths.HUMANS] = data
    if attention:
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
    run, writer = _conditions(study, model, setting), study.settings.variants.model
    written, reasons = {}, []
    if writer:
        sent, _ = study.as_sent(writer, tasks.generation(study))
        written = {"writer": writer, "generation": sent}
        reasons.append("neutral contexts by our prompt, the paper's is not printed")
        entry = study.project.language_model(writer)
        if entry.published_as != WRITER:
            reasons.append(f"neutral contexts by {entry.label}, the paper's by {WRITER}")
    return study.mark_data(
        Conditions(
            settings={**run.settings, **written},
            weights=run.weights,
            deviations=(*run.deviations, *reasons),
        )
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
    settings = study.settings
    used = settings.model_dump(include={"scoring", "bootstrap_resamples"})
    used |= {"setting": setting}
    if study.prediction_files(model):
        return study.external_conditions(**used)
    used |= {"form": settings.form}
    reasons = [*study.project.changed_entry(model)]
    if settings.scoring != "paper":
        reasons.append("scored as in the released analysis, unlike the paper's text")
    tagged = setting in (FINE_TUNED, *ADDED)
    if tagged:
        tuning = settings.fine_tuning
        used |= tuning.model_dump(exclude={"seeds"})
        reasons += deviations(tuning)
        reasons += RELEASED_DEVIATIONS if settings.form == "released" else ()
        if setting in ADDED:
            reasons.append(f"also trained with texts of other PIEs ({ADDED[setting]})")
    else:
        prompts = study.prompt_digests(*paths.prompt_files(study, setting).values())
        used |= {"prompts": prompts}
        # The paper does not state whether reasoning models were sent the temperature.
        withheld = {"temperature"} if study.project.language_model(model).reasoning else set()
        sent, changed = study.as_sent(
            model, tasks.parameters(study, model, setting), withheld=withheld
        )
        used |= sent
        if setting in settings.prompts:
            reasons.append(OWN_PROMPT.format(setting))
        elif settings.form == "released":
            reasons += RELEASED_FORM
            reasons += RELEASED_EXAMPLES if setting == FEW_SHOT else ()
        else:
            reasons += study.reworded(prompts)
        reasons += changed
        if setting == FEW_SHOT and settings.form == "released":
            reasons.append(_STRICT_MAJORITY)
    if tagged or setting == FEW_SHOT:
        used["train_split"] = settings.train_split
        if settings.train_split != "train":
            kind = "trained on" if tagged else "examples from"
            reasons.append(f"{kind} ID10M's {settings.train_split} split, the paper's train")
    return Conditions(
        settings=used,
        weights=json.loads(study.project.entry(model).execution_spec()),
        deviations=tuple(reasons),
    )


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
    names = [*settings.models]
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
