"""Conditions under which a metric was computed, and their deviations from the paper."""

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import Any, NamedTuple

from pydantic import BaseModel

from pieline.core.records import Frozen
from pieline.core.settings import may_deviate

_DATA = "data"


class Conditions(Frozen):
    """Settings and model weights that determine the numbers of a run; part of every metric file.

    Attributes:
        settings: Values of the run's settings, by name.
        weights: Fields of the models' entries in models.yaml that determine the results.
        deviations: Differences from the paper ("epochs 4, the paper 20"). Numbers of a run with
            deviations are not compared with the paper's numbers.
    """

    settings: Mapping[str, Any] = {}
    weights: Mapping[str, Any] = {}
    deviations: tuple[str, ...] = ()

    def with_own_data(self, label: str, paper: str) -> "Conditions":
        """Return a copy that states the user's own data as a setting and as a deviation.

        Args:
            label: Label of the user's data.
            paper: Label of the paper's data.
        """
        return self.model_copy(
            update={
                "settings": {**self.settings, _DATA: label},
                "deviations": (f"own data, the paper {paper}", *self.deviations),
            }
        )

    def with_limit(self, limit: int) -> "Conditions":
        """Return a copy that states a limit on the data as a setting and as a deviation.

        Args:
            limit: Number of items used, counted from the start of the data.
        """
        return self.model_copy(
            update={
                "settings": {**self.settings, "limit": limit},
                "deviations": (f"only the first {limit}, the paper all", *self.deviations),
            }
        )

    @property
    def are_of_own_data(self) -> bool:
        """Whether the data is the user's own, as recorded by `with_own_data`."""
        return _DATA in self.settings


def digest_of(conditions: str) -> str:
    """Return a short digest of conditions in canonical JSON: 16 hexadecimal digits of SHA-256."""
    return hashlib.sha256(conditions.encode()).hexdigest()[:16]


NO_CONDITIONS = Conditions()
"""Conditions of numbers that do not depend on model settings."""


class RunIdentity(NamedTuple):
    """Fields that identify a run, for example in metric files.

    Attributes:
        model: Name of the model. For a fine-tuned embedder: base model, training mode and loss,
            joined by plus signs.
        setting: Prompt setting or query mode.
        seed: Random seed of the run.
        language: Name of the language; empty in studies with a single language.
    """

    model: str
    setting: str
    seed: int
    language: str = ""


@dataclass(frozen=True)
class Evidence:
    """Inputs and conditions of a job, as fields of a `MetricRecord` or `Measured` record."""

    computed_from: Mapping[str, str] = dataclass_field(default_factory=dict)
    conditions: Conditions = NO_CONDITIONS
    data_note: str = ""
    is_released: bool = False

    @property
    def of_record(self) -> dict[str, Any]:
        """The fields as keyword arguments of a `MetricRecord`."""
        return {
            "computed_from": dict(self.computed_from),
            "conditions": self.conditions,
            "data_note": self.data_note,
        }

    @property
    def of_measured(self) -> dict[str, Any]:
        """The fields as keyword arguments of a `Measured` record."""
        return {**self.of_record, "dataset_is_released": self.is_released}


class MetricRecord(Frozen):
    """Common fields of all metric files.

    Attributes:
        conditions: Settings and model weights that determine the numbers, and their deviations from
            the paper.
        data_note: Note for tables that states how the data was verified, or how the data differs
            from the paper's data; empty if no note is needed.
        computed_from: SHA-256 of each input file, by path.
    """

    conditions: Conditions = NO_CONDITIONS
    data_note: str = ""
    computed_from: dict[str, str]


class Measured(MetricRecord):
    """Common fields of metric files that are computed from a paper's data or from own data.

    Attributes:
        dataset_is_released: Whether the data is the paper's public data.
    """

    dataset_is_released: bool


def data_is_explained(measured: Measured) -> bool:
    """Return whether the data of a metric file is known: the paper's public data, or own data.

    Own data is the user's data that the conditions state as a deviation from the paper.
    """
    return measured.dataset_is_released or measured.conditions.are_of_own_data


def deviations(settings: BaseModel, *, ignored: Collection[str] = ()) -> tuple[str, ...]:
    """Return a description of each setting that differs from its default, the paper's value.

    Args:
        settings: Settings of a run, possibly nested. Settings that were declared not to deviate
            are ignored (see `pieline.core.settings.Field`).
        ignored: Names of further settings to ignore, including nested settings.
    """
    descriptions: list[str] = []
    for name, field in type(settings).model_fields.items():
        if name in ignored:
            continue
        our_value = getattr(settings, name)
        paper_value = field.get_default(call_default_factory=True)
        if isinstance(our_value, BaseModel):
            descriptions += deviations(our_value, ignored=ignored)
        elif our_value != paper_value and may_deviate(field):
            ours, theirs = _format_value(our_value), _format_value(paper_value)
            descriptions.append(f"{name.replace('_', ' ')} {ours}, the paper {theirs}")
    return tuple(descriptions)


def _format_value(value: object) -> str:
    """Format the value of a setting for the description of a deviation."""
    if value is None:
        return "none"
    if isinstance(value, list | tuple):
        return " ".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
