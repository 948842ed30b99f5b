"""Base class and common types of the settings in config.yaml."""

from collections.abc import Collection, Iterable, Iterator
from pathlib import PurePath
from types import UnionType
from typing import Annotated, Any, ClassVar, Literal, Union, get_args, get_origin

import pydantic
from pydantic import BaseModel, GetCoreSchemaHandler, PositiveInt
from pydantic.fields import FieldInfo
from pydantic_core import core_schema

from pieline.core.errors import nearest
from pieline.core.records import Frozen
from pieline.core.yamls import is_ambiguous

Effect = Literal["predictions", "scoring", "display", "nothing"]
"""What a change of a setting affects:

- `predictions`: predictions, or the data that they are made from
- `scoring`: only metric files
- `display`: only which runs and displays there are, what displays compute, or how they look
- `nothing`: no result
"""


def Field(  # noqa: N802
    *args: Any, affects: Effect | None = None, deviates: bool | None = None, **options: Any
) -> Any:
    """Declare a setting: pydantic's `Field`, with what the setting affects.

    Args:
        args: Arguments of pydantic's `Field`.
        affects: What a change of the value affects; None for constraints of a type.
        deviates: Whether any value except the default deviates from the paper (default: whether the
            setting affects predictions or scoring). False if the study states the deviations
            itself, or if the paper leaves the value open.
        options: Arguments of pydantic's `Field`.
    """
    if affects:
        options["json_schema_extra"] = {
            "affects": affects,
            "deviates": affects in ("predictions", "scoring") if deviates is None else deviates,
        }
    return pydantic.Field(*args, **options)


def effect_of(field: FieldInfo) -> Effect | None:
    """Return what a setting affects; None if it is a section, or no setting."""
    effect: Effect | None = _declared(field).get("affects")
    return effect


def may_deviate(field: FieldInfo) -> bool:
    """Return whether any value of a field except its default deviates from the paper.

    This includes fields with a default that are not declared as settings, such as parameters.
    """
    return bool(_declared(field).get("deviates", not field.is_required()))


def _declared(field: FieldInfo) -> Any:
    return field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}


def declared_settings(
    section: type[BaseModel], prefix: str = ""
) -> Iterator[tuple[str, FieldInfo]]:
    """Yield the dotted name and field of all settings of a section and of the sections in it."""
    for name, field in section.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from declared_settings(kind, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", field


Seed = Annotated[int, Field(ge=0, lt=2**32)]
"""Random seed; numpy accepts only 32-bit seeds."""
LearningRate = Annotated[float, Field(gt=0, le=1)]


class Settings(Frozen):
    """Base class of sections of config.yaml and models.yaml.

    Unknown keys are errors. Lists must not repeat an item. Strings must not contain braces, which
    Snakemake would expand, except in fields listed in `MAY_HAVE_BRACES`.
    """

    MAY_HAVE_BRACES: ClassVar[Collection[str]] = ()

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        """Add `_plain_numbers` to the schemas of fields with numbers.

        As a pydantic validator of all fields, it would not be allowed for discriminators.
        """
        schema = handler(source)
        model: Any = handler.resolve_ref_schema(schema)
        while model["type"] != "model-fields":
            model = model["schema"]
        for name, field in model["fields"].items():
            kinds = set(_types(cls.model_fields[name].annotation))
            if kinds & {int, float} and not kinds & {bool, object, Any}:
                inner = field["schema"] if field["schema"]["type"] == "default" else field
                inner["schema"] = core_schema.no_info_before_validator_function(
                    _plain_numbers if str not in kinds else _no_booleans, inner["schema"]
                )
        return schema

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


def _no_booleans(value: Any) -> Any:
    """Raise a `ValueError` for true and false, which pydantic would convert to 1 and 0."""
    for item in _items(value):
        if isinstance(item, bool):
            raise ValueError(f"{str(item).lower()} is not a number")
    return value


def _plain_numbers(value: Any) -> Any:
    """Raise a `ValueError` for booleans, and for texts that are ambiguous numbers."""
    for item in _items(_no_booleans(value)):
        if isinstance(item, str) and is_ambiguous(item.strip()):
            raise ValueError(f"ambiguous number {item}")
    return value


def _items(value: Any) -> list[Any]:
    listed = list(value.values()) if isinstance(value, dict) else value
    return listed if isinstance(listed, list) else [listed]


def _types(annotation: Any) -> list[Any]:
    """Return the types in an annotation."""
    if get_origin(annotation) is Literal:
        return []
    parts = get_args(annotation)
    if get_origin(annotation) is Annotated:
        parts = parts[:1]
    return [kind for part in parts for kind in _types(part)] if parts else [annotation]


def keys_at(model: Any, location: Iterable[int | str]) -> list[str]:
    """Return the valid keys at a location in settings.

    Args:
        model: Class of the settings.
        location: Keys and list positions, as in pydantic's errors.
    """
    for part in location:
        members = get_args(model) if get_origin(model) in (UnionType, Union) else ()
        if named := [kind for kind in members if getattr(kind, "__name__", "") == part]:
            [model] = named  # pydantic adds the class in a union to the location
            continue
        model = _section(model)
        if hasattr(model, "model_fields"):
            model = model.model_fields[str(part)].annotation
        else:  # a list, or a mapping with arbitrary keys and values of one type
            model = get_args(model)[0 if isinstance(part, int) else 1]
    return list(getattr(_section(model), "model_fields", []))


def _section(model: Any) -> Any:
    """Return the class of the settings in an optional section; other types unchanged."""
    kinds = get_args(model) if get_origin(model) in (UnionType, Union) else ()
    return next((kind for kind in kinds if hasattr(kind, "model_fields")), model)


class OfModel(Settings):
    """Settings of one language model, which replace the settings for all models."""

    settings: list[str] | None = Field(
        default=None,
        min_length=1,
        affects="display",
        description="Prompt settings of this model; null: the same as for all models.",
    )
    seeds: list[Seed] | None = Field(
        default=None,
        min_length=1,
        affects="display",
        description="Seeds of this model; null: the same as for all models.",
    )
    max_tokens: dict[str, PositiveInt] = Field(
        default={},
        affects="predictions",
        deviates=False,
        description="Maximum number of tokens per answer, by setting, such as {zero_shot: 20000}.",
    )


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
