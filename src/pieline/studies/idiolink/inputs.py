"""Select the runs and files that IdioLink's tables and figures read."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from pieline.reporting.displays import ConfiguredStudy
from pieline.reporting.inputs import DisplayInputs, PlannedRun
from pieline.reporting.published import RELEASED_RUN
from pieline.studies.idiolink import paths

Run = Any
"""A `pieline.plan.Run`; typed as `Any`, because jobs must not depend on `pieline.plan`."""
OWN_RANKERS = ("reranker", "late_interaction")
"""Kinds of ranking models that the paper does not evaluate."""
NO_SPAN_VECTOR = "token vectors are not available"
"""Reason for skipping the span modes of an API embedder."""
PAIRS_OF_TEXTS = "a reranker scores pairs of whole texts"
"""Reason for skipping the span modes of a reranker."""

NO_RUN = "no such run"
"""Reason for skipping a query mode for which there are no external predictions."""


def has_texts(study: ConfiguredStudy) -> bool:
    """Return whether this configuration uses the texts of the dataset.

    Without the texts, only the files for scoring (`paths.scoring_files`) are available.
    """
    for run in study.plan:
        dataset_files = paths.dataset(run.where["index"]).values()
        if not set(dataset_files).issubset(run.behind):
            return False
    return True


def skip_reasons(study: ConfiguredStudy) -> dict[str, str]:
    """Map each skipped model to the reason for skipping it."""
    reasons = dict(study.settings.leave_out)
    for run in study.plan:
        if run.impossible_because:
            reasons[run.base] = run.impossible_because
    return reasons


def mode_skip_reasons(study: ConfiguredStudy, model: str) -> dict[str, str]:
    """Map each query mode in which a model cannot be evaluated to the reason.

    The instruction modes of BM25 are not included, because the paper does not print them.
    """
    entry, modes = study.project.entry(model), study.settings.query_modes
    if entry.kind == "predictions":
        modes_with_run = {run.where["query_mode"] for run in study.plan.select(model=model)}
        return {mode: NO_RUN for mode in modes if mode not in modes_with_run}
    span_modes = [mode for mode in modes if mode.endswith("span")]
    if entry.kind == "reranker":
        return dict.fromkeys(span_modes, PAIRS_OF_TEXTS)
    if entry.kind == "embedder" and entry.source == "api":
        return dict.fromkeys(span_modes, NO_SPAN_VECTOR)
    return {}


def models_to_rank(study: ConfiguredStudy) -> list[str]:
    """Return the models to evaluate without fine-tuning."""
    skipped_models = skip_reasons(study)
    return [model for model in study.settings.models if model not in skipped_models]


def models_to_fine_tune(study: ConfiguredStudy) -> list[str]:
    """Return the models to fine-tune."""
    skipped_models = skip_reasons(study)
    return [model for model in study.settings.finetuning.models if model not in skipped_models]


def models_of_kinds(study: ConfiguredStudy, models: Iterable[str], *kinds: str) -> list[str]:
    """Return those of `models` whose kind in models.yaml is one of `kinds`."""
    return [model for model in models if study.project.registry[model].kind in kinds]


def zero_shot_runs(
    study: ConfiguredStudy,
    models: Collection[str],
    *compositions: str,
    include_impossible: bool = False,
) -> list[Run]:
    """Return the zero-shot runs of models on index compositions.

    Args:
        study: The study.
        models: Names of models.
        compositions: Index compositions; the default is the whole index.
        include_impossible: Whether to include runs that cannot be made.
    """
    select = study.plan.select if include_impossible else study.plan.made
    runs: list[Run] = []
    for composition in compositions or ["full"]:
        runs += select(index=paths.index_of(composition), model=models)
    return runs


def fine_tuned_runs(study: ConfiguredStudy, *, include_impossible: bool = False) -> list[Run]:
    """Return the runs of the fine-tuned models.

    `include_impossible` adds the runs that cannot be made.
    """
    runs = study.plan.select() if include_impossible else study.plan.made()
    # The name of a fine-tuned model differs from the name of its base model.
    return [run for run in runs if run.model != run.base]


def inputs_with_metrics(
    study: ConfiguredStudy, runs: Iterable[Run], models: Iterable[str] = ()
) -> DisplayInputs | None:
    """Return a display's inputs with runs and models; None if no run has a metric file."""
    inputs = study.display_inputs(runs, models=models)
    return inputs if inputs.metrics else None


def runs_with_other_metrics(study: ConfiguredStudy, pattern: str) -> list[Run]:
    """Return the runs on the whole index that have an additional metric file.

    In the result, `metrics` of a run is the path of this file. If several runs share the file, only
    the last of these runs is returned.

    Args:
        study: The study.
        pattern: Path pattern of the additional metric files.
    """
    runs_by_path = {pattern.format(**run.where): run for run in study.plan.made(index="test")}
    return [
        replace(run, metrics=path)
        for path, run in runs_by_path.items()
        if path in study.plan.others
    ]


def with_skipped_modes(
    study: ConfiguredStudy, inputs: DisplayInputs, models: Iterable[str]
) -> DisplayInputs:
    """Return `inputs` with one more run, without metrics, for each skipped mode of each model."""
    reason_by_model = skip_reasons(study)
    runs = list(inputs.runs)
    for model in models:
        for mode, mode_reason in mode_skip_reasons(study, model).items():
            keys = paths.keys_of("test", model, mode, seed=0)
            # If the whole model is skipped, its reason explains all modes.
            reason = reason_by_model.get(model, mode_reason)
            runs.append(PlannedRun(keys=keys, metrics="", not_run=reason))
    return inputs.model_copy(update={"runs": tuple(runs)})


def authors_run_file(study: ConfiguredStudy) -> Mapping[str, str]:
    """Return the path of the authors' scores, by file name; empty unless the data is public."""
    if study.project.data != "released":
        return {}
    return {RELEASED_RUN: study.project.here(f"published/{RELEASED_RUN}.csv")}


def data_check_inputs(study: ConfiguredStudy) -> DisplayInputs | None:
    """Return inputs with the checks of the dataset; None if the configuration uses no texts."""
    if not has_texts(study):
        return None
    origin = "constructed" if study.settings.construction.enabled else "released_format"
    return study.display_inputs(others=[paths.CHECKS.format(origin=origin)])


def construction_inputs(study: ConfiguredStudy) -> DisplayInputs | None:
    """Return inputs with statistics of the construction; None if no dataset is constructed."""
    if not study.settings.construction.enabled:
        return None
    inputs = study.display_inputs(others=[paths.CONSTRUCTION_METRICS])
    return inputs.with_files(filter_report=paths.FILTER_REPORT)
