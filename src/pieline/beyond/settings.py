"""Define the settings in the `beyond` section of config.yaml."""

from typing import Any, Protocol

from pieline.core.settings import Field, Settings
from pieline.reporting.displays import ConfiguredStudy
from pieline.studies.jam.settings import ADDED, AddedTexts


class ExtendedStudy(ConfiguredStudy, Protocol):
    """Interface through which displays read a study with analyses beyond the paper."""

    beyond: Any


class BeyondJam(Settings):
    """Analyses beyond ID10M-JAM."""

    prompts_against: str | None = Field(
        default=None,
        affects="display",
        description="Setting with which each of `jam.prompts` is compared, on the same originals"
        " (docs/beyond.md); null: no comparison.",
    )
    training_contexts: list[AddedTexts] = Field(
        default=[],
        affects="display",
        description="Additional training texts of encoders, made from the originals of other PIEs;"
        " each value is a setting. 'originals': without context; 'neutral': also with neutral"
        " contexts; 'hard': also their hard variants (docs/beyond.md).",
    )

    def added_settings(self) -> list[str]:
        """Return the encoder settings whose training data contains additional texts."""
        return [name for name, texts in ADDED.items() if texts in self.training_contexts]


class BeyondIdiots(Settings):
    """Analyses beyond IdioTS."""

    prompts_against: str | None = Field(
        default=None,
        affects="display",
        description="Setting with which each of `idiots.prompts` is compared by sensitivity and"
        " criterion (docs/beyond.md); null: no comparison.",
    )


class BeyondIdiolink(Settings):
    """Analyses beyond IdioLink."""

    shortcuts: bool = Field(
        default=False,
        affects="display",
        description="Measure whether queries score higher if they share more words with their"
        " relevant documents. This makes the tables idiolink_overlap and idiolink_shortcuts, and a"
        " figure.",
    )


class BeyondSettings(Settings):
    """Analyses that the papers do not have, by study."""

    jam: BeyondJam = BeyondJam()
    idiots: BeyondIdiots = BeyondIdiots()
    idiolink: BeyondIdiolink = BeyondIdiolink()


MOVED = {
    f"{study}.{name}" for study, section in BeyondSettings() for name in type(section).model_fields
}
"""Settings that earlier versions had in the sections of the studies, such as `jam.prompts_against`.
"""
