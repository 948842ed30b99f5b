"""Extend IdioTS: compare custom prompts by measures of signal detection theory."""

from collections.abc import Callable, Mapping

from pieline.beyond import paths
from pieline.beyond.extended import Extended, check_reference
from pieline.beyond.idiots import figure, table
from pieline.beyond.settings import BeyondIdiots
from pieline.core.conditions import Conditions, digest_of
from pieline.plan import Plan, Run
from pieline.studies.idiots.settings import IdiotsSettings
from pieline.studies.idiots.study import IdiotsStudy

Idiots = Extended[IdiotsSettings, BeyondIdiots]


def compared(study: Idiots, plan: Plan, model: str) -> list[Run]:
    """Return the compared runs of a model: those with a custom prompt or in the reference setting.

    `plan` is a parameter because `Study.plan` is not complete when other metric files are planned.
    """
    against = study.beyond.prompts_against or ""  # no setting has an empty name
    return plan.made(model=model, setting=[*study.settings.prompts, against])


def compared_metrics(study: Idiots, model: str) -> list[str]:
    """Return the paths of the metric files of a model's compared runs."""
    return [run.metrics for run in compared(study, study.plan, model)]


def compared_predictions(study: Idiots, model: str) -> list[str]:
    """Return the paths of the prediction files of a model's compared runs."""
    return [run.predictions for run in compared(study, study.plan, model)]


def comparisons(study: Idiots, plan: Plan) -> dict[str, Conditions]:
    """Return the conditions of each metric file that compares settings of a model, by file path."""
    if not study.beyond.prompts_against:
        return {}
    conditions_by_path = {}
    for model in study.settings.models:
        if compared(study, plan, model):
            conditions_by_path[paths.BIAS.format(model=model)] = conditions(study, plan, model)
    return conditions_by_path


def conditions(study: Idiots, plan: Plan, model: str) -> Conditions:
    """Return the conditions of the comparison of a model's settings."""
    settings = study.settings
    return study.mark_data(
        Conditions(
            settings={
                "against": study.beyond.prompts_against,
                "permutations": settings.permutations,
                "bootstrap_resamples": settings.bootstrap_resamples,
                "runs": {
                    run.metrics: digest_of(run.conditions.canonical())
                    for run in compared(study, plan, model)
                },
            }
        )
    )


class ExtendedIdiots(Extended[IdiotsSettings, BeyondIdiots], IdiotsStudy):
    """The IdioTS study, with comparisons of custom prompts by signal detection."""

    displays = (*IdiotsStudy.displays, table.BIAS_TABLE, figure.BIAS_FIGURE)

    def check(self, where: str) -> None:
        """Validate the settings of the study.

        Raises:
            UserError: A setting is invalid.
        """
        super().check(where)
        check_reference(self.beyond.prompts_against, self.settings, "beyond.idiots.prompts_against")

    def other_metrics(self, plan: Plan) -> Mapping[str, Conditions]:
        """Map the path of each metric file that belongs to no single run to its conditions."""
        return {**super().other_metrics(plan), **comparisons(self, plan)}

    def conditions_by_pattern(self) -> dict[str, Callable[..., Conditions]]:
        """Map each path pattern of metric files to the function that computes their conditions."""
        return {
            **super().conditions_by_pattern(),
            paths.BIAS: lambda model: conditions(self, self.plan, model),
        }
