"""Base class of a study with the analyses that its paper does not have."""

from itertools import chain
from typing import Generic, TypeVar

from pieline.core.errors import UserError, nearest
from pieline.core.settings import Settings
from pieline.project import Project
from pieline.studies.idiots.settings import IdiotsSettings
from pieline.studies.jam.settings import JamSettings
from pieline.study import Study

S = TypeVar("S", bound=Settings)
B = TypeVar("B", bound=Settings)


class Extended(Study[S], Generic[S, B]):
    """A study with further analyses; subclasses also inherit from the class of the study.

    Args:
        settings: The study's section of config.yaml.
        project: Models, data and folders.
        beyond: The study's part of the section `beyond`.
        chosen: Whether the configuration names the study; only then are its settings checked.
    """

    def __init__(self, settings: S, project: Project, beyond: B, *, chosen: bool = True) -> None:
        self.beyond = beyond
        super().__init__(settings, project, chosen=chosen)


def check_reference(
    against: str | None, settings: JamSettings | IdiotsSettings, where: str
) -> None:
    """Raise a `UserError` if the setting to compare with is not one of the study's settings.

    Args:
        against: Name of the setting; None if there is no comparison.
        settings: Settings of the study.
        where: Key in config.yaml.
    """
    own = (settings.settings_of(model) for model in settings.by_model)
    known = [*chain(settings.settings, *own)]
    if against and against not in known:
        raise UserError(
            f"{against!r} is not one of the settings",
            where=f"config.yaml: {where}",
            hint=nearest(against, known),
        )
