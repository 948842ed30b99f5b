"""List the runs of the IdioLink study, and describe the conditions of its metric files."""

import json
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import product
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
    """Yield all configured runs: the zero-shot runs of each index, then the fine-tuned runs."""
    # All runs of a model have the same conditions.
    conditions_of = cache(lambda model: conditions(study, model))
    needs_texts = _needs_texts(study)
    for ranking_job in _ranking_jobs(study):
        index, model, query_modes, seed = ranking_job
        archive = _archive_of(study, ranking_job)
        dataset_files = paths.dataset(index) if needs_texts else paths.scoring_files(index)
        for query_mode in query_modes:
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
                conditions=conditions_of(model),
                behind=(predictions, *dataset_files.values()),
                archive=archive,
            )


class _RankingJob(NamedTuple):
    """A job that ranks an index with a model, once per query mode."""

    index_name: str
    model: str
    query_modes: list[str]
    seed: int


def _ranking_jobs(study: Idiolink) -> Iterator[_RankingJob]:
    """Yield the zero-shot jobs for each index composition, then the jobs of fine-tuned models.

    External predictions exist only for the whole index.
    """
    settings = study.settings
    for composition in dict.fromkeys(["full", *settings.compositions]):
        index = paths.index_of(composition)
        for model in settings.models:
            is_external = bool(study.prediction_files(model))
            if composition == "full" or not is_external:
                yield _RankingJob(index, model, modes_of(study, model), seed=0)
    for model in tuned_models(study):
        for seed in settings.finetuning.seeds:
            yield _RankingJob("test", model, modes_of(study, model), seed)


def _archive_of(study: Idiolink, ranking_job: _RankingJob) -> Archive | None:
    """Return the archive that contains all rankings of a job; None if there is no such archive.

    A BM25 ranking must be archived together with its tuned parameters. An archive with only some of
    the rankings is not used, because the job would then have to make all of them again.
    """
    index, model, query_modes, seed = ranking_job
    metric_files = [
        paths.METRICS.format(index=index, model=model, query_mode=mode, seed=seed)
        for mode in query_modes
    ]
    archive = study.project.archive_with(*metric_files)
    if archive is None:
        return None
    archived_files: set[str] = set()
    for metric_file in metric_files:
        archived_files.update(archive.runs[metric_file].members_to_extract)
    for mode in query_modes:
        tuning_file = files.tuning(study, model, index, mode)
        if tuning_file is not None and tuning_file not in archived_files:
            return None
    return archive


def _needs_texts(study: Idiolink) -> bool:
    """Return whether this configuration needs the texts, and not only the files for scoring.

    A configuration whose rankings all come from archives does not download the texts.
    """
    project = study.project
    if project.data != "released" or project.mirror or study.settings.dataset == "constructed":
        return True
    # Only public data that is not on this machine remains.
    needed_jobs = [job for job in _ranking_jobs(study) if job.model not in study.settings.leave_out]
    for job in needed_jobs:
        if not _archive_of(study, job):
            return True
        if not files.archive_of_dataset(study, job.index_name):
            return True
    # Without any ranking job, there are no archived rankings that would replace the texts.
    return not needed_jobs


def tuned_models(study: Idiolink) -> list[str]:
    """Return the names of the fine-tuned models, such as `sbert+span+paper`."""
    tuning = study.settings.finetuning
    trainings = product(tuning.models, tuning.train_modes, tuning.losses)
    return [str(paths.Training(model, mode, loss)) for model, mode, loss in trainings]


def modes_of(study: Idiolink, model: str) -> list[str]:
    """Return the query modes in which a model is evaluated.

    Fine-tuned models are evaluated in the modes of Table 5. Models with external predictions are
    evaluated in the modes of their prediction files. BM25 skips the instruction modes. Rerankers,
    which score pairs of texts, and API embedders, which return one vector per text, skip the span
    modes.
    """
    if training := paths.training_of(model):
        return evaluated_modes(training.train_mode)
    configured_modes: list[str] = list(study.settings.query_modes)
    if prediction_files := study.prediction_files(model):
        external_modes = {file.setting for file in prediction_files}
        return [mode for mode in configured_modes if mode in external_modes]
    if isinstance(study.project.entry(model), Bm25Entry):
        return [mode for mode in configured_modes if not mode.startswith("instruction")]
    skipped_modes = inputs.mode_skip_reasons(study, model)
    return [mode for mode in configured_modes if mode not in skipped_modes]


def impossible_runs(study: Idiolink, runs: Sequence[Run]) -> dict[str, str]:
    """Map the metric file of each impossible run to the reason why the run cannot be made.

    A run is impossible if the user left out its model, or if its model is an API embedder whose
    vectors are not recorded and whose API is unavailable. A reranker is also impossible if its
    first-stage model is impossible.
    """
    project, settings = study.project, study.settings
    computed_models = {run.model for run in runs if not run.archive}
    reason_by_model = dict(settings.leave_out)
    for model in models.models_to_run(study, computed_models, settings.models):
        if isinstance(project.registry[model], ApiEmbedderEntry):
            recordings = tasks.vector_recordings(study, model, "documents")
            if reason := project.unanswered(model, recordings):
                reason_by_model[model] = reason
    for reranker, first_stage in models.first_stages(study, settings.models).items():
        if reranker in computed_models and first_stage in reason_by_model:
            reason_by_model[reranker] = f"{first_stage}: {reason_by_model[first_stage]}"
    return {run.metrics: reason_by_model[run.base] for run in runs if run.base in reason_by_model}


# Conditions --------------------------------------------------------------------------------------


def other_metrics(study: Idiolink, plan: Plan) -> dict[str, Conditions]:
    """Map the path of each metric file that does not belong to a single run to its conditions.

    These files contain the checks of the data, the tests between the query modes of a model, and
    the statistics of the construction.
    """
    conditions_by_path = {
        paths.CHECKS.format(origin="released_format"): data_conditions(study, "released_format")
    }
    test_settings = study.settings.model_dump(include={"permutations"})
    for run in plan.made(index="test"):
        has_modes_to_compare = len(modes_of(study, run.model)) > 1
        if has_modes_to_compare:
            path = paths.SIGNIFICANCE.format(model=run.model, seed=run.where["seed"])
            settings = {**run.conditions.settings, **test_settings}
            conditions_by_path[path] = run.conditions.model_copy(update={"settings": settings})
    if models.constructs(study):
        construction_conditions = data_conditions(study, "constructed")
        conditions_by_path[paths.CHECKS.format(origin="constructed")] = construction_conditions
        conditions_by_path[paths.CONSTRUCTION_METRICS] = construction_conditions
    return conditions_by_path


def conditions(study: Idiolink, model: str, *extra_settings: str) -> Conditions:
    """Return the conditions of a model's runs.

    Loss, tuples and inputs are recorded but never count as deviations: the paper and its
    authors' code disagree on them, and it is unknown which of the two produced the numbers.

    Args:
        study: The study.
        model: Name of the model, which may be fine-tuned.
        extra_settings: Names of further settings to record.
    """
    return study.mark_data(_conditions_without_data(study, model, *extra_settings))


def _conditions_without_data(study: Idiolink, model: str, *extra_settings: str) -> Conditions:
    """Return the conditions of a model's runs, without the conditions of the data.

    `extra_settings` are the names of further settings to record.
    """
    settings = study.settings
    recorded = settings.model_dump(include={"top_k", "bootstrap_resamples", *extra_settings})
    base, training = paths.base_of(model), paths.training_of(model)
    if study.prediction_files(base):
        return study.external_conditions(**recorded)
    reasons = list(study.project.changed_entry(base))
    reasons += deviations(settings, ignored={"bm25", "construction", "finetuning"})
    entry = models.entry(study, model)
    if isinstance(entry, EmbedderEntry):
        entry = models.embedder(study, model)
        recorded["inputs"] = settings.inputs
    if isinstance(entry, Bm25Entry):
        # The metric file of each composition records the values that were chosen from the grid.
        grid = models.bm25_points(study)
        recorded.update(grid.model_dump())
        reasons += deviations(grid)
    if training:
        training_settings = models.training(study, *training, seed="0")
        recorded.update(training_settings.model_dump(exclude={"seed"}))
        recorded["tuples"] = files.tuples_source(study)
        reasons += _training_deviations(base, training_settings)
    weights = json.loads(entry.execution_spec())
    if isinstance(entry, RerankerEntry):
        first_stage = _conditions_without_data(study, entry.first_stage)
        recorded["first_stage"] = first_stage.settings
        weights["first_stage_weights"] = first_stage.weights
        reasons += [reason for reason in first_stage.deviations if reason not in reasons]
    return Conditions(settings=recorded, weights=weights, deviations=tuple(reasons))


def data_conditions(study: Idiolink, origin: str) -> Conditions:
    """Return the conditions of the texts of an origin, `constructed` or `released_format`."""
    if origin != "constructed":
        return study.mark_own_data(Conditions())
    construction = study.settings.construction
    # Paths of files, and settings that do not affect how texts are made.
    not_recorded = {"enabled", "exclusions", "corrections", "unreviewed", "prompts"}
    spec_by_role = {
        role: json.loads(study.project.language_model(model).execution_spec())
        for role, model in models.model_by_role(study).items()
    }
    reasons = deviations(construction)
    if construction.semantics == "released":
        reasons = ("PIEs filtered as in the released code, unlike the paper's text", *reasons)
    return study.mark_own_data(
        Conditions(
            settings=construction.model_dump(mode="json", exclude=not_recorded),
            weights=spec_by_role,
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
    """Return the paths of a model's rankings in all query modes, which a test compares in pairs."""
    return [
        paths.RUN.format(index="test", model=model, query_mode=mode, seed=seed)
        for mode in modes_of(study, model)
    ]


def conditions_by_pattern(study: Idiolink) -> dict[str, Callable[..., Conditions]]:
    """Map each path pattern of metric files to the function that computes their conditions."""
    return {
        paths.METRICS: lambda model, **_: conditions(study, model),
        paths.SIGNIFICANCE: lambda model, **_: conditions(study, model, "permutations"),
        paths.CHECKS: lambda origin: data_conditions(study, origin),
        paths.CONSTRUCTION_METRICS: lambda: data_conditions(study, "constructed"),
    }
