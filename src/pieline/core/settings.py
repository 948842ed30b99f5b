"""Base class and common types of the settings in config.yaml."""

from collections.abc import Collection, Iterable
from pathlib import PurePath
from typing import Annotated, ClassVar

from pydantic import Field

from pieline.core.errors import nearest
from pieline.core.records import Frozen

Seed = Annotated[int, Field(ge=0, lt=2**32)]
"""Random seed; numpy accepts only 32-bit seeds."""
LearningRate = Annotated[float, Field(gt=0, le=1)]


class Settings(Frozen):
    """Base class of sections of config.yaml and models.yaml.

    Unknown keys are errors. Lists must not repeat an item. Strings must not contain braces, which
    Snakemake would expand, except in fields listed in `MAY_HAVE_BRACES`.
    """

    MAY_HAVE_BRACES: ClassVar[Collection[str]] = ()

    # A pydantic validator would appear in the error locations of union fields.
    def model_post_init(self, _: object) -> None:
        """Raise a `ValueError` if a list repeats an item or a string contains braces."""
        for name in type(self).model_fields:
            value = getattr(self, name)
            for part in value.values() if isinstance(value, dict) else [value]:
                items = part if isinstance(part, list) else [part]
                if repeated := [item for at, item in enumerate(items) if item in items[:at]]:
                    raise ValueError(f"{name} lists {repeated[0]!r} twice")
                texts = [str(item) for item in items if isinstance(item, str | PurePath)]
                braced = [text for text in texts if "{" in text or "}" in text]
                if braced and name not in self.MAY_HAVE_BRACES:
                    raise ValueError(f"{name} contains braces: {braced[0]!r}")


def check_settings(named: Iterable[str], own: Collection[str], known: Collection[str]) -> None:
    """Raise a `ValueError` if a setting is undefined, or redefines a setting of the study.

    Args:
        named: Names of the settings in which models are run.
        own: Names of the settings that the user defines.
        known: Names of the settings that the study defines.
    """
    for name in own:
        if name in known:
            raise ValueError(f"setting {name!r} is already defined by the study; rename yours")
    for name in named:
        if name not in {*own, *known}:
            raise ValueError(f"unknown setting {name!r}; {nearest(name, {*own, *known})}")
