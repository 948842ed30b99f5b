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
        settings: Settings by name.
        weights: Fields of the model entries that determine the results.
        deviations: Differences from the paper ("epochs 4, the paper 20"). If there are any, the
            numbers are not compared with the paper's.
    """

    settings: Mapping[str, Any] = {}
    weights: Mapping[str, Any] = {}
    deviations: tuple[str, ...] = ()

    def with_own_data(self, label: str, paper: str) -> "Conditions":
        """Return a copy that lists the user's own data as a setting and as a deviation.

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
        """Return a copy that lists the number of items used as a setting and as a deviation."""
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
    """Return the first 16 hexadecimal digits of the SHA-256 of conditions in canonical JSON."""
    return hashlib.sha256(conditions.encode()).hexdigest()[:16]


NO_CONDITIONS = Conditions()
"""Conditions of numbers that do not depend on model settings."""


class RunIdentity(NamedTuple):
    """What identifies a run in its metric file.

    Attributes:
        model: Name of the model; for a fine-tuned embedder, base+training mode+loss.
        setting: Prompt setting or query mode.
        seed: Seed.
        language: Name of the language; empty in studies of one language.
    """

    model: str
    setting: str
    seed: int
    language: str = ""


@dataclass(frozen=True)
class Evidence:
    """What a metric file states about its inputs (see `Measured`)."""

    computed_from: Mapping[str, str] = dataclass_field(default_factory=dict)
    conditions: Conditions = NO_CONDITIONS
    data_note: str = ""
    is_released: bool = False

    @property
    def of_record(self) -> dict[str, Any]:
        """Fields of a `MetricRecord`."""
        return {
            "computed_from": dict(self.computed_from),
            "conditions": self.conditions,
            "data_note": self.data_note,
        }

    @property
    def of_measured(self) -> dict[str, Any]:
        """Fields of a `Measured` record."""
        return {**self.of_record, "dataset_is_released": self.is_released}


class MetricRecord(Frozen):
    """Common fields of all metric files.

    Attributes:
        conditions: Settings and weights, with their deviations from the paper.
        data_note: Note for tables on how the data was verified or differs from the paper's; empty
            if none is needed.
        computed_from: SHA-256 of each input file, by path.
    """

    conditions: Conditions = NO_CONDITIONS
    data_note: str = ""
    computed_from: dict[str, str]


class Measured(MetricRecord):
    """Common fields of metric files on a paper's data.

    Attributes:
        dataset_is_released: Whether the data is the paper's.
    """

    dataset_is_released: bool


def data_is_explained(measured: Measured) -> bool:
    """Return whether the data is the paper's, or is the user's own and listed as a deviation."""
    return measured.dataset_is_released or measured.conditions.are_of_own_data


def deviations(settings: BaseModel, *, ignored: Collection[str] = ()) -> tuple[str, ...]:
    """Return a description of each setting that differs from its default, the paper's value.

    Args:
        settings: Settings of a run. Those that affect no number, or whose other values are no
            deviations, are ignored (see `pieline.core.settings.Field`).
        ignored: Names of further fields to ignore, including fields of nested settings.
    """
    differences: list[str] = []
    for name, field in type(settings).model_fields.items():
        if name in ignored:
            continue
        value, default = getattr(settings, name), field.get_default(call_default_factory=True)
        if isinstance(value, BaseModel):
            differences += deviations(value, ignored=ignored)
        elif value != default and may_deviate(field):
            ours, theirs = _format_value(value), _format_value(default)
            differences.append(f"{name.replace('_', ' ')} {ours}, the paper {theirs}")
    return tuple(differences)


def _format_value(value: object) -> str:
    """Format a value as readable text."""
    if value is None:
        return "none"
    if isinstance(value, list | tuple):
        return " ".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
