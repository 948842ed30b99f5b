"""IdioLink with the relation of scores to word overlap."""

from collections.abc import Callable

from pieline.beyond import paths
from pieline.beyond.extended import Extended
from pieline.beyond.idiolink import figure, tables
from pieline.beyond.settings import BeyondIdiolink
from pieline.core.conditions import Conditions
from pieline.core.errors import UserError
from pieline.plan import Plan
from pieline.studies.idiolink import inputs, runs
from pieline.studies.idiolink.settings import IdiolinkSettings
from pieline.studies.idiolink.study import IdiolinkStudy


class ExtendedIdiolink(Extended[IdiolinkSettings, BeyondIdiolink], IdiolinkStudy):
    """IdioLink with the relation of scores to word overlap."""

    displays = (
        *IdiolinkStudy.displays,
        tables.OVERLAP_TABLE,
        tables.SHORTCUTS_TABLE,
        figure.SHORTCUTS_FIGURE,
    )

    def check(self, where: str) -> None:
        """Raise a `UserError` for invalid settings, or if word overlap needs texts and has none."""
        super().check(where)
        if self.beyond.shortcuts and not inputs.has_texts(self):
            raise UserError(
                "word overlap needs texts, but all rankings come from archives",
                where="config.yaml: beyond.idiolink.shortcuts",
                hint="set shortcuts: false, or mirror to a folder with the public files",
            )

    def other_metrics(self, plan: Plan) -> dict[str, Conditions]:
        """Return the conditions of metric files that do not belong to one run, by path."""
        measured = plan.made(index="test") if self.beyond.shortcuts else []
        zero_shot = [run for run in measured if run.model == run.base]
        return {
            **super().other_metrics(plan),
            **{paths.SHORTCUTS.format(**run.where): run.conditions for run in zero_shot},
        }

    def conditions_by_pattern(self) -> dict[str, Callable[..., Conditions]]:
        """Return functions from wildcards to conditions, by path pattern of metric files."""
        return {
            **super().conditions_by_pattern(),
            paths.SHORTCUTS: lambda model, **_: runs.conditions(self, model),
        }
