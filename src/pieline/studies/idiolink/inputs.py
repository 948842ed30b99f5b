"""What the tables and figures of IdioLink read in a configuration."""

from collections.abc import Collection, Iterable

from pieline.reporting.displays import ConfiguredStudy
from pieline.reporting.inputs import DisplayInputs
from pieline.studies.idiolink import paths

OWN_RANKERS = ("reranker", "late_interaction")
"""Kinds of ranking models that the paper does not evaluate."""


def skipped(study: ConfiguredStudy) -> dict[str, str]:
    """Return the reasons for skipping models, by model."""
    lacking = {run.base: run.lacks for run in study.plan if run.lacks}
    return {**study.settings.leave_out, **lacking}


def ranked(study: ConfiguredStudy) -> list[str]:
    """Return the models to evaluate without fine-tuning."""
    without = skipped(study)
    return [name for name in study.settings.models if name not in without]


def tuned_bases(study: ConfiguredStudy) -> list[str]:
    """Return the models to fine-tune."""
    without = skipped(study)
    return [name for name in study.settings.finetuning.models if name not in without]


def models_of_kinds(study: ConfiguredStudy, *kinds: str) -> list[str]:
    """Return the zero-shot models of these kinds."""
    return [name for name in ranked(study) if study.project.registry[name].kind in kinds]


def zero_shot(study: ConfiguredStudy, composition: str, names: Collection[str]) -> list[str]:
    """Return the metric files of zero-shot runs of these models on an index composition."""
    found: list[str] = study.plan.metrics(index=paths.index_of(composition), model=names)
    return found


def of_ranked(study: ConfiguredStudy) -> list[str]:
    """Return the metric files of all zero-shot runs on the whole index."""
    return zero_shot(study, "full", ranked(study))


def of_compositions(study: ConfiguredStudy) -> list[str]:
    """Return the metric files of the zero-shot runs on all configured index compositions."""
    names = ranked(study)
    return [path for each in study.settings.compositions for path in zero_shot(study, each, names)]


def tuned_metrics(study: ConfiguredStudy) -> list[str]:
    """Return the metric files of the fine-tuned models' runs."""
    return [run.metrics for run in study.plan.made() if run.model != run.base]


def others(study: ConfiguredStudy, pattern: str) -> list[str]:
    """Return the other metric files of the runs on the whole index, by their path pattern."""
    made = (pattern.format(**run.where) for run in study.plan.made(index="test"))
    return [path for path in dict.fromkeys(made) if path in study.plan.others]


def shown(
    study: ConfiguredStudy, metrics: Iterable[str], models: Iterable[str] = ()
) -> DisplayInputs | None:
    """Return inputs with these metric files and models; None without metric files."""
    metrics = tuple(metrics)
    if not metrics:
        return None
    return DisplayInputs(metrics=metrics, models=study.describe_models(models))


def with_paper(
    study: ConfiguredStudy,
    metrics: Iterable[str],
    models: Iterable[str],
    configured: Iterable[str],
) -> DisplayInputs:
    """Return inputs with the paper's embedders and the user's skipped models as absent ones."""
    given = study.display_inputs(metrics, models, "embedder", configured=configured)
    registry = study.project.registry
    own = [name for name in skipped(study) if registry[name].published_as is None]
    return given.model_copy(update={"absent": (*given.absent, *study.describe_models(own))})


def released_run(study: ConfiguredStudy) -> dict[str, str]:
    """Return the file of the authors' released run; empty for other data, which it lacks."""
    if study.project.data != "released":
        return {}
    return {"released": study.project.here("published/idiolink_released_run.csv")}


def data_checks(study: ConfiguredStudy) -> DisplayInputs | None:
    """Return inputs with the data checks; None if the dataset has no texts."""
    if study.settings.dataset == "archived":
        return None
    origin = "constructed" if study.settings.construction.enabled else "released_format"
    return DisplayInputs(metrics=(paths.CHECKS.format(origin=origin),))


def construction(study: ConfiguredStudy) -> DisplayInputs | None:
    """Return inputs with the statistics of the construction, if it is enabled."""
    if not study.settings.construction.enabled:
        return None
    return DisplayInputs(
        metrics=(paths.CONSTRUCTION_METRICS,), files={"filter_report": paths.FILTER_REPORT}
    )
