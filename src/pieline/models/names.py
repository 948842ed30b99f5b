"""Types of settings that name models of models.yaml; a study checks these names (`Study`)."""

from collections.abc import Collection, Iterator
from typing import Annotated, Any, NamedTuple, get_args

from pydantic import BaseModel


class ModelKinds(NamedTuple):
    """Marker in the type of a setting that names models.

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
    """Yield the location of each setting that names models, the names and the accepted kinds."""
    for field, info in type(settings).model_fields.items():
        value = getattr(settings, field)
        if isinstance(value, BaseModel):
            for place, names, accepted in named_models(value):
                yield f"{field}.{place}", names, accepted
        for accepted in _markers([info.annotation, *info.metadata]):
            yield field, [value] if isinstance(value, str) else value or [], accepted


def _markers(parts: Collection[Any]) -> Iterator[ModelKinds]:
    for part in parts:
        if isinstance(part, ModelKinds):
            yield part
        else:
            yield from _markers(get_args(part))
