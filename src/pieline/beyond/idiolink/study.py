"""Extend IdioLink by the relation between scores and word overlap."""

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
    """The IdioLink study, with displays that relate scores to word overlap."""

    displays = (
        *IdiolinkStudy.displays,
        tables.OVERLAP_TABLE,
        tables.SHORTCUTS_TABLE,
        figure.SHORTCUTS_FIGURE,
    )

    def check(self, where: str) -> None:
        """Validate the settings of the study.

        Raises:
            UserError: A setting is invalid, or word overlap is enabled but there are no texts.
        """
        super().check(where)
        if self.beyond.shortcuts and not inputs.has_texts(self):
            raise UserError(
                "word overlap needs texts, but all rankings come from archives",
                where="config.yaml: beyond.idiolink.shortcuts",
                hint="set shortcuts: false, or mirror to a folder with the public files",
            )

    def other_metrics(self, plan: Plan) -> dict[str, Conditions]:
        """Map the path of each metric file that belongs to no single run to its conditions."""
        conditions_by_path = super().other_metrics(plan)
        if self.beyond.shortcuts:
            for run in plan.made(index="test"):
                is_zero_shot = run.model == run.base
                if is_zero_shot:
                    conditions_by_path[paths.SHORTCUTS.format(**run.where)] = run.conditions
        return conditions_by_path

    def conditions_by_pattern(self) -> dict[str, Callable[..., Conditions]]:
        """Map each path pattern of metric files to the function that computes their conditions."""
        return {
            **super().conditions_by_pattern(),
            paths.SHORTCUTS: lambda model, **_: runs.conditions(self, model),
        }
