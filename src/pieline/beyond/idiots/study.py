"""IdioTS with comparisons of custom prompts by signal detection."""

from collections.abc import Callable, Mapping

from pieline.beyond import paths
from pieline.beyond.extended import Extended, check_reference
from pieline.beyond.idiots import figure, runs, table
from pieline.beyond.settings import BeyondIdiots
from pieline.core.conditions import Conditions
from pieline.plan import Plan
from pieline.studies.idiots.settings import IdiotsSettings
from pieline.studies.idiots.study import IdiotsStudy


class ExtendedIdiots(Extended[IdiotsSettings, BeyondIdiots], IdiotsStudy):
    """IdioTS with comparisons of custom prompts by signal detection."""

    displays = (*IdiotsStudy.displays, table.BIAS_TABLE, figure.BIAS_FIGURE)

    def check(self, where: str) -> None:
        """Raise a `UserError` for invalid settings."""
        super().check(where)
        check_reference(self.beyond.prompts_against, self.settings, "beyond.idiots.prompts_against")

    def other_metrics(self, plan: Plan) -> Mapping[str, Conditions]:
        """Return the conditions of metric files that do not belong to one run, by path."""
        return {**super().other_metrics(plan), **runs.comparisons(self, plan)}

    def conditions_by_pattern(self) -> dict[str, Callable[..., Conditions]]:
        """Return functions from wildcards to conditions, by path pattern of metric files."""
        return {
            **super().conditions_by_pattern(),
            paths.BIAS: lambda model: runs.conditions(self, self.plan, model),
        }
