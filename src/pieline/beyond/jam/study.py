"""Extend ID10M-JAM by comparisons of custom prompts and of training data."""

from pieline.beyond.extended import Extended, check_reference
from pieline.beyond.jam import figure, table
from pieline.beyond.settings import BeyondJam
from pieline.studies.jam import files, paths
from pieline.studies.jam.files import Jam
from pieline.studies.jam.settings import JamSettings
from pieline.studies.jam.study import JamStudy


class ExtendedJam(Extended[JamSettings, BeyondJam], JamStudy):
    """The ID10M-JAM study, with comparisons of custom prompts and of training data."""

    displays = (*JamStudy.displays, table.PROMPTS_TABLE, figure.PROMPTS_FIGURE)

    def check(self, where: str) -> None:
        """Validate the settings of the study.

        Raises:
            UserError: A setting is invalid.
        """
        super().check(where)
        check_reference(self.beyond.prompts_against, self.settings, "beyond.jam.prompts_against")

    def added_settings(self) -> list[str]:
        """Return the configured encoder settings whose training data contains additional texts."""
        return self.beyond.added_settings()


def added_texts(study: Jam, language: str, setting: str) -> str:
    """Return the path of the texts that a setting adds to the training data."""
    adds_neutral_contexts = files.uses_neutral_contexts(study, setting)
    pattern = paths.NEUTRAL_CONTEXTS if adds_neutral_contexts else paths.DATASET
    return pattern.format(language=language)
