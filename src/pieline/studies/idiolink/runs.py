"""Runs of the IdioLink study, and the conditions of its metric files."""

import json
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import chain, product
from typing import NamedTuple

from pieline.archives.manifest import Archive
from pieline.core.conditions import Conditions, deviations
from pieline.models.api_embedder import ApiEmbedderEntry
from pieline.models.embedder import EmbedderEntry
from pieline.models.entries import Bm25Entry
from pieline.models.rankers import RerankerEntry
from pieline.plan import Plan, Run
from pieline.studies.idiolink import files, inputs, models, paths, tasks
from pieline.studies.idiolink.models import Idiolink
from pieline.studies.idiolink.training.settings import (
    BATCH_SIZES,
    TABLE_3,
    TrainingSettings,
    evaluated_modes,
)


def configured_runs(study: Idiolink) -> Iterator[Run]:
    """Yield all configured runs: zero-shot by index composition, then fine-tuned."""
    run_conditions = cache(lambda model: conditions(study, model))
    needs_texts = _needs_texts(study)
    for ranked in _grid(study):
        index, model, modes, seed = ranked
        archive = _archive_of(study, ranked)
        data = paths.dataset(index) if needs_texts else paths.scoring_files(index)
        for query_mode in modes:
            where = {"index": index, "model": model, "query_mode": query_mode, "seed": str(seed)}
            predictions = paths.RUN.format(**where)
            yield Run(
                study=study.name,
                model=model,
                keys=paths.keys_of(index, model, query_mode, seed),
                kind=models.entry(study, model).kind,
                where=where,
                predictions=predictions,
                metrics=paths.METRICS.format(**where),
                conditions=run_conditions(model),
                behind=(predictions, *data.values()),
                archive=archive,
            )


class _RankedModel(NamedTuple):
    """A model and the index that one job ranks with it, in all query modes of the model."""

    index_name: str
    model: str
    modes: list[str]
    seed: int


def _grid(study: Idiolink) -> Iterator[_RankedModel]:
    """Yield all configured models by index composition, then the fine-tuned models by seed."""
    settings = study.settings
    for composition in dict.fromkeys(["full", *settings.compositions]):
        for model in settings.models:
            if composition == "full" or not study.prediction_files(model):
                name = paths.index_of(composition)
                yield _RankedModel(name, model, modes_of(study, model), seed=0)
    for model in tuned_models(study):
        for seed in settings.finetuning.seeds:
            yield _RankedModel("test", model, modes_of(study, model), seed)


def _archive_of(study: Idiolink, ranked: _RankedModel) -> Archive | None:
    """Return the archive with the rankings of a model in all its query modes, or None.

    An archive with only some of these rankings is not used, because a job ranks in all query modes.
    """
    index, model, modes, seed = ranked
    metrics = [
        paths.METRICS.format(index=index, model=model, query_mode=mode, seed=seed) for mode in modes
    ]
    archive = study.project.archive_with(*metrics)
    if archive is None:
        return None
    archived = set(chain.from_iterable(archive.runs[path].made for path in metrics))
    tuning_files = [files.tuning(study, model, index, mode) for mode in modes]
    is_complete = all(file in archived for file in tuning_files if file)
    return archive if is_complete else None


def _needs_texts(study: Idiolink) -> bool:
    """Return whether this configuration needs the texts, and not only the files for scoring.

    A configuration whose rankings all come from archives does not download the texts.
    """
    project = study.project
    if project.data != "released" or project.mirror or study.settings.dataset == "constructed":
        return True
    grid = [ranked for ranked in _grid(study) if ranked.model not in study.settings.leave_out]
    for ranked in grid:
        if not _archive_of(study, ranked):
            return True
        if not files.archive_of_dataset(study, ranked.index_name):
            return True
    return not grid


def tuned_models(study: Idiolink) -> list[str]:
    """Return the names of the fine-tuned models."""
    tuning = study.settings.finetuning
    trainings = product(tuning.models, tuning.train_modes, tuning.losses)
    return [str(paths.Training(model, mode, loss)) for model, mode, loss in trainings]


def modes_of(study: Idiolink, model: str) -> list[str]:
    """Return the query modes in which a model is evaluated.

    Fine-tuned models are evaluated in the modes of Table 5, and external models in those of their
    files. BM25 skips the instruction modes. Rerankers, which score pairs of texts, and API
    embedders, which return one vector per text, skip the span modes.
    """
    if training := paths.training_of(model):
        return evaluated_modes(training.train_mode)
    if external_runs := study.prediction_files(model):
        settings = {one.setting for one in external_runs}
        return [mode for mode in study.settings.query_modes if mode in settings]
    skipped = inputs.skipped_modes(study, model)
    modes: list[str] = [mode for mode in study.settings.query_modes if mode not in skipped]
    if isinstance(study.project.entry(model), Bm25Entry):
        return [mode for mode in modes if not mode.startswith("instruction")]
    return modes


def lacks(study: Idiolink, runs: Sequence[Run]) -> dict[str, str]:
    """Return why runs cannot be made, by metric file.

    Either the user left out the model, or the vectors of an API embedder are not recorded and its
    API is unavailable. In the second case, rerankers of this embedder's ranking cannot run, either.
    """
    project, settings = study.project, study.settings
    computed = {run.model for run in runs if not run.archive}
    firsts = models.first_stages(study, settings.models)
    reasons = dict(settings.leave_out)
    for model in models.embedding_models(study, computed, settings.models):
        if isinstance(project.registry[model], ApiEmbedderEntry):
            recordings = tasks.vector_recordings(study, model, "documents")
            if reason := project.unanswered(model, recordings):
                reasons[model] = reason
    for model, first in firsts.items():
        if model in computed and first in reasons:
            reasons[model] = f"{first}: {reasons[first]}"
    return {run.metrics: reasons[run.base] for run in runs if run.base in reasons}


# Conditions --------------------------------------------------------------------------------------


def other_metrics(study: Idiolink, plan: Plan) -> dict[str, Conditions]:
    """Return the conditions of metric files that do not belong to one run, by path."""
    others = {
        paths.CHECKS.format(origin="released_format"): data_conditions(study, "released_format")
    }
    tested = study.settings.model_dump(include={"permutations"})
    for run in plan.made(index="test"):
        if len(modes_of(study, run.model)) > 1:
            path = paths.SIGNIFICANCE.format(model=run.model, seed=run.where["seed"])
            settings = {**run.conditions.settings, **tested}
            others[path] = run.conditions.model_copy(update={"settings": settings})
    if models.constructs(study):
        built = data_conditions(study, "constructed")
        others[paths.CHECKS.format(origin="constructed")] = built
        others[paths.CONSTRUCTION_METRICS] = built
    return others


def conditions(study: Idiolink, model: str, *also: str) -> Conditions:
    """Return the conditions of a model's runs; `also` adds settings by name.

    Loss, tuples and inputs are recorded but never count as deviations: the paper and its
    authors' code disagree on them, and it is unknown which of the two produced the numbers.
    """
    return study.mark_data(_conditions(study, model, *also))


def _conditions(study: Idiolink, model: str, *also: str) -> Conditions:
    """Return the conditions of a model's runs, without those of the data."""
    settings = study.settings
    conditions = settings.model_dump(include={"top_k", "bootstrap_resamples", *also})
    base, training = paths.base_of(model), paths.training_of(model)
    if study.prediction_files(base):
        return study.external_conditions(**conditions)
    reasons = list(study.project.changed_entry(base))
    reasons += deviations(settings, ignored={"bm25", "construction", "finetuning"})
    entry = models.entry(study, model)
    if isinstance(entry, EmbedderEntry):
        entry = models.embedder(study, model)
        conditions |= {"inputs": settings.inputs}
    if isinstance(entry, Bm25Entry):
        # Each metric file records which values the ablation used.
        points = models.bm25_points(study)
        conditions |= points.model_dump()
        reasons += deviations(points)
    if training:
        training_settings = models.training(study, *training, seed="0")
        conditions |= training_settings.model_dump(exclude={"seed"})
        conditions |= {"tuples": files.tuples_source(study)}
        reasons += _training_deviations(base, training_settings)
    weights = json.loads(entry.execution_spec())
    if isinstance(entry, RerankerEntry):
        first = _conditions(study, entry.first_stage)
        conditions |= {"first_stage": first.settings}
        weights |= {"first_stage_weights": first.weights}
        reasons += [reason for reason in first.deviations if reason not in reasons]
    return Conditions(settings=conditions, weights=weights, deviations=tuple(reasons))


def data_conditions(study: Idiolink, origin: str) -> Conditions:
    """Return the conditions of the counts of an origin's texts."""
    if origin != "constructed":
        return study.mark_own_data(Conditions())
    construction = study.settings.construction
    of_this_computer = {"enabled", "exclusions", "corrections", "unreviewed", "prompts"}
    roles = {
        role: json.loads(study.project.language_model(name).execution_spec())
        for role, name in models.roles(study).items()
    }
    reasons = deviations(construction)
    if construction.semantics == "released":
        reasons = ("PIEs filtered as in the released code, unlike the paper's text", *reasons)
    return study.mark_own_data(
        Conditions(
            settings=construction.model_dump(mode="json", exclude=of_this_computer),
            weights=roles,
            deviations=reasons,
        )
    )


def _training_deviations(model: str, training: TrainingSettings) -> list[str]:
    """Return the deviations of a training run's hyperparameters from Table 3."""
    reasons = list(deviations(training, ignored={"batch_size"}))
    batch_size = BATCH_SIZES.get(model, TABLE_3.batch_size)
    if training.batch_size != batch_size:
        reasons.append(f"batch size {training.batch_size}, the paper {batch_size}")
    return reasons


def tested_runs(study: Idiolink, model: str, seed: str) -> list[str]:
    """Return the paths of the runs that a model's test between query modes compares."""
    return [
        paths.RUN.format(index="test", model=model, query_mode=mode, seed=seed)
        for mode in modes_of(study, model)
    ]


def conditions_by_pattern(study: Idiolink) -> dict[str, Callable[..., Conditions]]:
    """Return functions from wildcards to conditions, by path pattern of metric files."""
    return {
        paths.METRICS: lambda model, **_: conditions(study, model),
        paths.SIGNIFICANCE: lambda model, **_: conditions(study, model, "permutations"),
        paths.CHECKS: lambda origin: data_conditions(study, origin),
        paths.CONSTRUCTION_METRICS: lambda: data_conditions(study, "constructed"),
    }
