"""What every part of config.yaml is."""

from collections.abc import Collection, Iterable
from pathlib import PurePath
from typing import Annotated, ClassVar

from pydantic import Field

from pieline.core.errors import nearest
from pieline.core.records import Frozen

Seed = Annotated[int, Field(ge=0, lt=2**32)]
"""numpy takes no larger one."""
LearningRate = Annotated[float, Field(gt=0, le=1)]


class Settings(Frozen):
    """A part of config.yaml or models.yaml: unknown keys are errors, everything has a default.

    What a list names it names once. Texts have no braces, which Snakemake would fill in.
    """

    MAY_HAVE_BRACES: ClassVar[Collection[str]] = ()

    # No validator, which would stand in the errors of a field that takes several kinds of settings.
    def model_post_init(self, _: object) -> None:
        """Raise a `ValueError` for what a list names twice, and for braces."""
        for name in type(self).model_fields:
            value = getattr(self, name)
            for part in value.values() if isinstance(value, dict) else [value]:
                items = part if isinstance(part, list) else [part]
                if repeated := [item for at, item in enumerate(items) if item in items[:at]]:
                    raise ValueError(f"{name} names {repeated[0]!r} twice")
                texts = [str(item) for item in items if isinstance(item, str | PurePath)]
                braced = [text for text in texts if "{" in text or "}" in text]
                if braced and name not in self.MAY_HAVE_BRACES:
                    raise ValueError(f"{name} has braces: {braced[0]!r}")


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
