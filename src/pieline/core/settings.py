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

- `predictions`: predictions, or the data from which predictions are made
- `scoring`: only metric files
- `display`: only which runs, tables and figures there are, and what is in tables and figures
- `nothing`: no result
"""


def Field(  # noqa: N802
    *args: Any, affects: Effect | None = None, deviates: bool | None = None, **options: Any
) -> Any:
    """Declare a setting: like pydantic's `Field`, but the setting also states what it affects.

    Args:
        args: Positional arguments of pydantic's `Field`.
        affects: What a change of the value affects; None for constraints of a type.
        deviates: Whether every value except the default deviates from the paper. If None, the
            values of settings that affect predictions or scoring do. Use False if the study states
            the deviations itself, or if the paper leaves the value open.
        options: Keyword arguments of pydantic's `Field`.
    """
    if affects:
        if deviates is None:
            deviates = affects in ("predictions", "scoring")
        options["json_schema_extra"] = {"affects": affects, "deviates": deviates}
    return pydantic.Field(*args, **options)


def effect_of(field: FieldInfo) -> Effect | None:
    """Return what a change of a field affects; None if the field is a section or not a setting."""
    effect: Effect | None = _declaration(field).get("affects")
    return effect


def may_deviate(field: FieldInfo) -> bool:
    """Return whether every value of a field except the default deviates from the paper.

    A field that is not declared as a setting, such as a parameter of a model, may deviate if the
    field has a default.
    """
    return bool(_declaration(field).get("deviates", not field.is_required()))


def _declaration(field: FieldInfo) -> Any:
    """Return the values of `affects` and `deviates` from `Field`; empty if the field has none."""
    return field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}


def declared_settings(
    section: type[BaseModel], prefix: str = ""
) -> Iterator[tuple[str, FieldInfo]]:
    """Yield the dotted name and the field of each setting in a section and in nested sections.

    Args:
        section: Class of the section.
        prefix: Start of the names: empty, or the name of the section and a dot.
    """
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

    Unknown keys are errors. Lists must not repeat an item. Strings must not contain braces, because
    Snakemake would expand them, except in fields listed in `MAY_HAVE_BRACES`.
    """

    MAY_HAVE_BRACES: ClassVar[Collection[str]] = ()

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        """Add a check of the numbers to the schema of each field that accepts numbers.

        A pydantic validator cannot do this: it would apply to all fields, and pydantic does not
        allow validators for the fields that discriminate a union.
        """
        schema = handler(source)
        model_schema: Any = handler.resolve_ref_schema(schema)
        while model_schema["type"] != "model-fields":
            model_schema = model_schema["schema"]
        for name, field_schema in model_schema["fields"].items():
            accepted_types = set(_types_in(cls.model_fields[name].annotation))
            accepts_numbers = bool(accepted_types & {int, float})
            accepts_booleans = bool(accepted_types & {bool, object, Any})
            if accepts_numbers and not accepts_booleans:
                check = _reject_booleans if str in accepted_types else _reject_ambiguous_numbers
                # The schema of a field with a default contains the schema of the given values.
                has_default = field_schema["schema"]["type"] == "default"
                parent = field_schema["schema"] if has_default else field_schema
                parent["schema"] = core_schema.no_info_before_validator_function(
                    check, parent["schema"]
                )
        return schema

    # A pydantic validator would appear in the error locations of union fields.
    def model_post_init(self, _: object) -> None:
        """Raise a `ValueError` if a list repeats an item or a string contains braces."""
        for name in type(self).model_fields:
            value = getattr(self, name)
            values = value.values() if isinstance(value, dict) else [value]
            for list_or_item in values:
                items = list_or_item if isinstance(list_or_item, list) else [list_or_item]
                for position, item in enumerate(items):
                    if item in items[:position]:
                        raise ValueError(f"{name} lists {item!r} twice")
                    if name not in self.MAY_HAVE_BRACES and _has_braces(item):
                        raise ValueError(f"{name} contains braces: {str(item)!r}")


def _has_braces(item: object) -> bool:
    """Return whether a value is a text or path that contains a brace."""
    return isinstance(item, str | PurePath) and ("{" in str(item) or "}" in str(item))


def _reject_booleans(value: Any) -> Any:
    """Return a value; raise a `ValueError` if it contains a boolean, which pydantic accepts."""
    for item in _items(value):
        if isinstance(item, bool):
            raise ValueError(f"{str(item).lower()} is not a number")
    return value


def _reject_ambiguous_numbers(value: Any) -> Any:
    """Return a value; raise a `ValueError` if it contains a boolean or an ambiguous number.

    An ambiguous number is a text that YAML versions read differently (see `is_ambiguous`).
    """
    _reject_booleans(value)
    for item in _items(value):
        if isinstance(item, str) and is_ambiguous(item.strip()):
            raise ValueError(f"ambiguous number {item}")
    return value


def _items(value: Any) -> list[Any]:
    """Return the values in a dictionary or list; return any other value in a list of one item."""
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else [value]


def _types_in(annotation: Any) -> list[Any]:
    """Return the types of the values in an annotation: `[str, int]` for `dict[str, list[int]]`."""
    if get_origin(annotation) is Literal:
        return []
    arguments = get_args(annotation)
    if not arguments:
        return [annotation]
    if get_origin(annotation) is Annotated:
        arguments = arguments[:1]  # the others are metadata
    return [inner for argument in arguments for inner in _types_in(argument)]


def keys_at(model: Any, location: Iterable[int | str]) -> list[str]:
    """Return the valid keys at a location in settings.

    Args:
        model: Class of the settings.
        location: Keys and list positions, as in pydantic's errors.
    """
    expected_type = model
    for key in location:
        member_by_name = {
            getattr(member, "__name__", ""): member for member in _union_members(expected_type)
        }
        section = _section_in(expected_type)
        if key in member_by_name:  # pydantic adds the class in a union to the location
            expected_type = member_by_name[key]
        elif hasattr(section, "model_fields"):
            expected_type = section.model_fields[str(key)].annotation
        elif isinstance(key, int):
            expected_type = get_args(section)[0]  # items of a list
        else:
            expected_type = get_args(section)[1]  # values of a mapping with arbitrary keys
    return list(getattr(_section_in(expected_type), "model_fields", []))


def _union_members(annotation: Any) -> tuple[Any, ...]:
    """Return the types in a union; empty for other annotations."""
    return get_args(annotation) if get_origin(annotation) in (UnionType, Union) else ()


def _section_in(annotation: Any) -> Any:
    """Return the first class of settings in a union, or the annotation itself if there is none."""
    for member in _union_members(annotation):
        if hasattr(member, "model_fields"):
            return member
    return annotation


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
    """Raise a `ValueError` if a prompt setting is undefined, or redefines a setting of the study.

    Args:
        named: Names of the prompt settings in which models are run.
        own: Names of the prompt settings that the user defines.
        known: Names of the prompt settings that the study defines.
    """
    for setting in own:
        if setting in known:
            raise ValueError(f"setting {setting!r} is already defined by the study; rename yours")
    defined = {*own, *known}
    for setting in named:
        if setting not in defined:
            raise ValueError(f"unknown setting {setting!r}; {nearest(setting, defined)}")
