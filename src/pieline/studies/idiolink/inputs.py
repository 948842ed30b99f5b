"""What the tables and figures of IdioLink read in a configuration."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from pieline.reporting.displays import ConfiguredStudy
from pieline.reporting.inputs import DisplayInputs, PlannedRun
from pieline.reporting.published import RELEASED_RUN
from pieline.studies.idiolink import paths

Run = Any
"""A `pieline.plan.Run`, whose module is not imported because jobs import this one."""
OWN_RANKERS = ("reranker", "late_interaction")
"""Kinds of ranking models that the paper does not evaluate."""
NO_SPAN_VECTOR = "token vectors are not available"
"""Reason for skipping the span modes of an API embedder."""
PAIRS_OF_TEXTS = "a reranker scores pairs of whole texts"
"""Reason for skipping the span modes of a reranker."""

NO_RUN = "no such run"
"""Why external predictions lack a query mode."""


def has_texts(study: ConfiguredStudy) -> bool:
    """Return whether the configuration has the texts, and not only the files for scoring."""
    for run in study.plan:
        files = paths.dataset(run.where["index"]).values()
        if not set(files).issubset(run.behind):
            return False
    return True


def skipped(study: ConfiguredStudy) -> dict[str, str]:
    """Return the reasons for skipping models, by model."""
    reasons = dict(study.settings.leave_out)
    for run in study.plan:
        if run.lacks:
            reasons[run.base] = run.lacks
    return reasons


def skipped_modes(study: ConfiguredStudy, model: str) -> dict[str, str]:
    """Return the reasons for skipping query modes of a model, by mode."""
    entry, modes = study.project.entry(model), study.settings.query_modes
    if entry.kind == "predictions":
        made = {run.where["query_mode"] for run in study.plan.select(model=model)}
        return {mode: NO_RUN for mode in modes if mode not in made}
    if entry.kind == "reranker":
        reason = PAIRS_OF_TEXTS
    elif entry.kind == "embedder" and entry.source == "api":
        reason = NO_SPAN_VECTOR
    else:
        return {}
    return {mode: reason for mode in modes if mode.endswith("span")}


def ranked(study: ConfiguredStudy) -> list[str]:
    """Return the models to evaluate without fine-tuning."""
    left_out = skipped(study)
    return [name for name in study.settings.models if name not in left_out]


def tuned_bases(study: ConfiguredStudy) -> list[str]:
    """Return the models to fine-tune."""
    left_out = skipped(study)
    return [name for name in study.settings.finetuning.models if name not in left_out]


def of_kinds(study: ConfiguredStudy, names: Iterable[str], *kinds: str) -> list[str]:
    """Return the models of these kinds."""
    return [name for name in names if study.project.registry[name].kind in kinds]


def zero_shot(
    study: ConfiguredStudy, names: Collection[str], *compositions: str, made: bool = True
) -> list[Run]:
    """Return the zero-shot runs of models on index compositions; by default, on the whole index.

    Args:
        study: The study.
        names: Names of models.
        compositions: Compositions of the index.
        made: Whether to omit the runs that cannot be made.
    """
    runs: list[Run] = []
    for composition in compositions or ["full"]:
        index = paths.index_of(composition)
        runs += study.plan.select(index=index, model=names)
    if made:
        return [run for run in runs if not run.lacks]
    return runs


def tuned(study: ConfiguredStudy) -> list[Run]:
    """Return the runs of the fine-tuned models, including those that cannot be made."""
    return [run for run in study.plan if run.model != run.base]


def shown(
    study: ConfiguredStudy, runs: Iterable[Run], models: Iterable[str] = ()
) -> DisplayInputs | None:
    """Return inputs with these runs and models; None without metric files."""
    inputs = study.display_inputs(runs, models=models)
    return inputs if inputs.metrics else None


def others(study: ConfiguredStudy, pattern: str) -> list[Run]:
    """Return the runs on the whole index with their files of another path pattern as metric files.

    Runs without such a file are omitted. If several runs share a file, only the last is returned.
    """
    made = {pattern.format(**run.where): run for run in study.plan.made(index="test")}
    return [replace(run, metrics=path) for path, run in made.items() if path in study.plan.others]


def with_skipped_modes(
    study: ConfiguredStudy, inputs: DisplayInputs, names: Iterable[str]
) -> DisplayInputs:
    """Add a run without metrics for each query mode that a model does not support."""
    left_out = skipped(study)
    runs = list(inputs.runs)
    for name in names:
        for mode, reason in skipped_modes(study, name).items():
            keys = paths.keys_of("test", name, mode, 0)
            runs.append(PlannedRun(keys=keys, metrics="", not_run=left_out.get(name, reason)))
    return inputs.model_copy(update={"runs": tuple(runs)})


def released_run(study: ConfiguredStudy) -> Mapping[str, str]:
    """Return the file of the authors' run; empty for data that it does not cover."""
    if study.project.data != "released":
        return {}
    return {RELEASED_RUN: study.project.here(f"published/{RELEASED_RUN}.csv")}


def data_checks(study: ConfiguredStudy) -> DisplayInputs | None:
    """Return inputs with the data checks; None if the dataset has no texts."""
    if not has_texts(study):
        return None
    origin = "constructed" if study.settings.construction.enabled else "released_format"
    return study.display_inputs(others=[paths.CHECKS.format(origin=origin)])


def construction(study: ConfiguredStudy) -> DisplayInputs | None:
    """Return inputs with the statistics of the construction, if it is enabled."""
    if not study.settings.construction.enabled:
        return None
    inputs = study.display_inputs(others=[paths.CONSTRUCTION_METRICS])
    return inputs.with_files(filter_report=paths.FILTER_REPORT)
