"""What every part of config.yaml is."""

from pieline.core.records import Frozen


class Settings(Frozen):
    """A part of config.yaml: unknown keys are errors, everything has a default."""
