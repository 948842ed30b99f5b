"""What every part of config.yaml is."""

from collections.abc import Collection, Iterable
from typing import Annotated

from pydantic import Field

from pieline.core.errors import nearest
from pieline.core.records import Frozen

SettingName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]
"""The name of a way of running a model: it is part of paths."""


class Settings(Frozen):
    """A part of config.yaml: unknown keys are errors, everything has a default."""


def check_settings(named: Iterable[str], own: Collection[str], known: Collection[str]) -> None:
    """Raise a `ValueError` for a setting that nothing defines, or one defined under a known name.

    Args:
        named: settings that models are run in.
        own: those that the user defines.
        known: those that the study has.
    """
    for name in own:
        if name in known:
            raise ValueError(f"the study has a setting {name!r} already; give yours another name")
    for name in named:
        if name not in {*own, *known}:
            raise ValueError(f"unknown setting {name!r}; {nearest(name, {*own, *known})}")
