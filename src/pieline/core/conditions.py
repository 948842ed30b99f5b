"""Under which conditions a number was computed, and how they differ from the paper's."""

import hashlib
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Protocol

from pydantic import BaseModel

from pieline.core.records import Frozen

_DATA = "data"


class Conditions(Frozen):
    """What of a run's settings and weights decided its numbers; part of every metric file.

    Attributes:
        settings: by name.
        weights: the fields of the model's entry that say what computed.
        deviations: how both differ from the paper's, each a reason why the numbers cannot be
            compared ("epochs 4, the paper 20"); none where nothing does.
    """

    settings: Mapping[str, Any] = {}
    weights: Mapping[str, Any] = {}
    deviations: tuple[str, ...] = ()

    def of_own_data(self, label: str, paper: str) -> "Conditions":
        """The same on data of the user's own, which deviate from those of a paper."""
        return self.model_copy(
            update={
                "settings": {**self.settings, _DATA: label},
                "deviations": (f"own data, the paper {paper}", *self.deviations),
            }
        )

    @property
    def are_of_own_data(self) -> bool:
        """Whether the data are the user's own; deviations then say so."""
        return _DATA in self.settings


def digest_of(conditions: str) -> str:
    """A digest of conditions, given as canonical JSON."""
    return hashlib.sha256(conditions.encode()).hexdigest()[:16]


class Measured(Protocol):
    """What tables ask every metric file of data that a paper has."""

    @property
    def dataset_is_released(self) -> bool:
        """Whether the data are the paper's."""

    @property
    def conditions(self) -> Conditions:
        """How settings, weights and data of the user's own differ from the paper's."""

    @property
    def data_note(self) -> str:
        """How the data were verified if not by digest, or how they differ from the paper's."""


def data_is_told(measured: Measured) -> bool:
    """Whether data need no reason of their own: the paper's, or the user's, told as a deviation."""
    return measured.dataset_is_released or measured.conditions.are_of_own_data


NO_CONDITIONS = Conditions()
"""Of numbers that no model's settings decide."""


class MetricRecord(Frozen):
    """What every metric file says besides its numbers.

    Attributes:
        conditions: settings and weights, and how they differ from the paper's.
        data_note: how the data were verified if not by digest, or how they differ from the paper's.
        computed_from: SHA-256 of the files behind the numbers, by path.
    """

    conditions: Conditions = NO_CONDITIONS
    data_note: str = ""
    computed_from: dict[str, str]


def deviations(settings: BaseModel, *, besides: Collection[str] = ()) -> tuple[str, ...]:
    """How settings differ from the paper's, which are the defaults of their class.

    Args:
        settings: of a run.
        besides: fields, also of nested settings, that change no number of the paper's.
    """
    return tuple(_deviations(settings, besides))


def _deviations(settings: BaseModel, besides: Collection[str]) -> Iterator[str]:
    for name, field in type(settings).model_fields.items():
        if name in besides:
            continue
        value, usual = getattr(settings, name), field.get_default(call_default_factory=True)
        if isinstance(value, BaseModel):
            yield from _deviations(value, besides)
        elif value != usual:
            yield f"{name.replace('_', ' ')} {_said(value)}, the paper {_said(usual)}"


def _said(value: object) -> str:
    """A value as people read it."""
    if value is None:
        return "none"
    if isinstance(value, list | tuple):
        return " ".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
