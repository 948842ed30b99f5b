"""What the tables and figures of ID10M-JAM read in a configuration."""

from pieline.reporting.displays import ConfiguredStudy
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.models import ModelDescription
from pieline.studies.jam import paths
from pieline.studies.jam.predictions.baselines import BASELINES


def has_results(study: ConfiguredStudy) -> bool:
    """Return whether the configuration names models and has hard variants for them."""
    return bool(study.settings.models) and study.settings.variants.source != "none"


def runs_of(study: ConfiguredStudy, *besides: str) -> DisplayInputs:
    """Return inputs with all runs, and the reasons for missing runs.

    The runs are those of language models, encoders and the kinds of models in `besides`.
    """
    metrics = study.plan.metrics(kind=("llm", "encoder", *besides), experiment="")
    given = study.display_inputs(metrics, study.settings.models, "llm", "encoder")
    return given.model_copy(update={"notes": study.notes()})


def with_panel(study: ConfiguredStudy) -> DisplayInputs | None:
    """Return inputs with the runs of this project, the languages and the models of Figure 3."""
    if not has_results(study):
        return None
    settings = study.settings
    options = {"languages": list(settings.languages), "figure3": settings.figure3.model_dump()}
    return runs_of(study).model_copy(update={"options": options})


def with_baselines(study: ConfiguredStudy) -> DisplayInputs | None:
    """Return inputs with all runs, including external ones, and baselines."""
    if not has_results(study):
        return None
    given = runs_of(study, "predictions")
    scored = (path for name in study.settings.languages for path in paths.baselines(name))
    described = (
        ModelDescription(name=name, kind="baseline", label=label)
        for name, label in BASELINES.items()
    )
    return given.model_copy(
        update={"metrics": (*given.metrics, *scored), "models": (*given.models, *described)}
    )


def statistics(study: ConfiguredStudy) -> DisplayInputs:
    """Return inputs with the counts of sentences and variants by language."""
    languages = study.settings.languages
    metrics = tuple(paths.STATISTICS.format(language=name) for name in languages)
    return DisplayInputs(metrics=metrics, notes=study.notes())


def attention(study: ConfiguredStudy) -> DisplayInputs | None:
    """Return inputs with the attention analysis, if one is configured."""
    analysis = study.settings.attention
    if not (has_results(study) and analysis):
        return None
    place = analysis.model_dump(include={"language", "model"})
    made = study.plan.metrics(kind=("llm", "encoder"), experiment="", language=analysis.language)
    return DisplayInputs(
        metrics=(paths.ATTENTION.format(**place),) if made else (),
        models=study.describe_models([analysis.model]),
        not_run={} if made else {analysis.model: "no run shows which variants mislead"},
        options=place,
        notes=study.notes(),
    )
