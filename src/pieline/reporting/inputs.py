"""Inputs of tables and figures: files, and the plan's rows of the frame of numbers."""

from collections.abc import Mapping
from typing import Any, Literal

from pieline.core.records import Frozen
from pieline.reporting.models import ModelDescription
from pieline.reporting.printed import read_published

RowChoice = Literal["paper", "run"]
"""Rows of a result table: the paper's models and this run's, or only this run's."""


class PlannedRun(Frozen):
    """A configured run.

    Attributes:
        keys: Keys that identify its numbers (`pieline.reporting.ours.KEYS`), with its model.
        metrics: Metric file.
        digest: Digest of its conditions.
        not_run: Why it cannot be made; empty if it can.
        origin: Where its predictions come from if this run does not compute them.
    """

    keys: Mapping[str, str]
    metrics: str
    digest: str = ""
    not_run: str = ""
    origin: str = ""


class DisplayInputs(Frozen):
    """Inputs of a table, figure or export, which is stale if their canonical JSON changes.

    Attributes:
        study: Name of the study.
        display: Name of the table or figure.
        metrics: Metric files in display order.
        digests: Digests of the expected conditions of metric files that have any, by path.
        runs: Runs behind `metrics`, and those of the same kind that cannot be made.
        models: Descriptions of this run's models, then of the paper's other models.
        files: Other inputs by name, such as printed numbers.
        options: Additional JSON values.
        data: Source of the data. If the data is the user's own, no printed numbers are shown.
        notes: Sentences about the data, shown with every table and figure.
        mark: Notice above the display that the data is limited or the user's own; else empty.
        rows: Rows to show (`tables.rows` of the configuration).
        otherwise: Why a printed number is missing, if the plan states no other reason.
    """

    study: str = ""
    display: str = ""
    metrics: tuple[str, ...] = ()
    digests: Mapping[str, str] = {}
    runs: tuple[PlannedRun, ...] = ()
    models: tuple[ModelDescription, ...] = ()
    files: Mapping[str, str] = {}
    options: Mapping[str, Any] = {}
    data: Literal["sample", "released", "own"] = "sample"
    notes: tuple[str, ...] = ()
    mark: str = ""
    rows: RowChoice = "paper"
    otherwise: str = ""

    def with_files(self, **files: str) -> "DisplayInputs":
        """Return a copy with these `files`."""
        return self.model_copy(update={"files": files})

    def printed(self, file: str, *keys: str) -> dict[tuple[str, ...], dict[str, float]]:
        """Return the printed rows of a file in published/, by the values of `keys`.

        The result is empty for the user's own data, and if the display has no such file.
        """
        if self.data == "own" or file not in self.files:
            return {}
        return read_published(self.files[file], keys)

    def input_files(self) -> list[str]:
        """Return the paths of all input files."""
        return [*self.metrics, *self.files.values()]

    def left_out(self) -> list[PlannedRun]:
        """Return the configured runs that cannot be made."""
        return [run for run in self.runs if run.not_run]

    def why_missing(self, keys: Mapping[str, Any]) -> str:
        """Return why a number is missing, given its keys."""
        for run in self.left_out():
            if all(keys[key] == value for key, value in run.keys.items() if key != "seed"):
                return run.not_run
        reasons = {model.name: model.not_run for model in self.models}
        return reasons.get(keys["model"]) or self.otherwise

    def origins(self) -> list[str]:
        """Return a note per origin of predictions that this run did not compute."""
        labels, models = self.labels(), dict[str, dict[str, None]]()
        for run in self.runs:
            if run.origin and not run.not_run:
                name = run.keys["model"]
                models.setdefault(run.origin, {})[labels.get(name, name)] = None
        return [f"From {origin}: {', '.join(models[origin])}." for origin in sorted(models)]

    def names(self) -> dict[str, list[str]]:
        """Return the names of models by printed name."""
        names: dict[str, list[str]] = {}
        for model in self.models:
            if model.published_as:
                names.setdefault(model.published_as, []).append(model.name)
        return names

    @property
    def shows_models(self) -> bool:
        """Whether the rows or marks of the display are models."""
        return bool(self.models)

    def own_models(self) -> list[ModelDescription]:
        """Return the configured models."""
        return [model for model in self.models if model.is_configured]

    def row_models(self) -> list[ModelDescription]:
        """Return the models that have rows."""
        return self.own_models() if self.rows == "run" else list(self.models)

    def labels(self) -> dict[str, str]:
        """Return the labels of all models by name."""
        return {model.name: model.label for model in self.models}
