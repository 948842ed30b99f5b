"""Provide the base class of studies with analyses that their papers do not have."""

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
        chosen: Whether the configuration includes the study; settings are checked only if it does.
    """

    def __init__(self, settings: S, project: Project, beyond: B, *, chosen: bool = True) -> None:
        self.beyond = beyond
        super().__init__(settings, project, chosen=chosen)


def check_reference(
    reference: str | None, settings: JamSettings | IdiotsSettings, where: str
) -> None:
    """Raise a `UserError` if the reference setting of a comparison is not configured.

    Args:
        reference: Prompt setting with which others are compared; None if there is no comparison.
        settings: Settings of the study, which list its prompt settings.
        where: Key in config.yaml, for the error message.
    """
    prompt_settings = list(settings.settings)
    for model in settings.by_model:
        prompt_settings += settings.settings_of(model)
    if reference and reference not in prompt_settings:
        raise UserError(
            f"{reference!r} is not one of the settings",
            where=f"config.yaml: {where}",
            hint=nearest(reference, prompt_settings),
        )
