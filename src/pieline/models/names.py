"""Define types of settings that contain names of models. `Study` checks that the models exist."""

from collections.abc import Collection, Iterator
from typing import Annotated, Any, NamedTuple, get_args

from pydantic import BaseModel


class ModelKinds(NamedTuple):
    """Annotation in the type of a setting that contains names of models.

    Attributes:
        kinds: Accepted kinds of models.
        have_weights: Whether models behind an API are rejected.
    """

    kinds: tuple[str, ...]
    have_weights: bool = False


LanguageModelName = Annotated[str, ModelKinds(("llm",))]
EmbedderName = Annotated[str, ModelKinds(("embedder",))]
TrainedEmbedderName = Annotated[str, ModelKinds(("embedder",), have_weights=True)]


def named_models(settings: BaseModel) -> Iterator[tuple[str, Collection[str], ModelKinds]]:
    """Yield the settings that contain names of models.

    Yields:
        Name of the setting (after the names of the sections that contain it), the names of models
        in the setting, and the kinds of models that the setting accepts.
    """
    for field, info in type(settings).model_fields.items():
        value = getattr(settings, field)
        if isinstance(value, BaseModel):
            for location, names, accepted in named_models(value):
                yield f"{field}.{location}", names, accepted
        if isinstance(value, str):
            value = [value]
        for accepted in _find_model_kinds([info.annotation, *info.metadata]):
            yield field, value or [], accepted


def _find_model_kinds(annotations: Collection[Any]) -> Iterator[ModelKinds]:
    """Yield each `ModelKinds` in annotations and, recursively, in the arguments of their types."""
    for annotation in annotations:
        if isinstance(annotation, ModelKinds):
            yield annotation
        else:
            yield from _find_model_kinds(get_args(annotation))
