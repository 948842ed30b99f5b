"""Inputs of tables and figures."""

from collections.abc import Mapping
from typing import Any, Literal

from pieline.core.records import Frozen
from pieline.reporting.models import ModelDescription
from pieline.reporting.printed import read_published

Rows = Literal["paper", "run"]
"""Rows of a result table: the paper's models and this run's, or only this run's."""


class DisplayInputs(Frozen):
    """Inputs of a table, figure or export, which is stale if their canonical JSON changes.

    Attributes:
        metrics: Metric files in display order.
        files: Other inputs by name, such as printed numbers.
        models: Descriptions of the models to show.
        not_run: Reasons for missing numbers, by model or by configured run
            (`model/setting/...`).
        absent: Descriptions of the paper's models that are not in the configuration.
        options: Additional JSON values.
        notes: Sentences about the data, shown with every table and figure.
        asked: Digests of the expected conditions by metric file.
        mark: Notice above the display and in each line of its CSV, stating that the display is not
            a result or uses the user's own data; empty otherwise.
        archived: Name of the archive from which the predictions were taken, by metric file.
        is_own: Whether the data is the user's own, so that no printed numbers are shown.
        rows: Rows to show (`tables.rows` of the configuration).
        configured: Names of the configured models in order, including those that cannot be run; if
            empty, these are `models`.
    """

    metrics: tuple[str, ...] = ()
    files: Mapping[str, str] = {}
    models: tuple[ModelDescription, ...] = ()
    not_run: Mapping[str, str] = {}
    absent: tuple[ModelDescription, ...] = ()
    options: Mapping[str, Any] = {}
    notes: tuple[str, ...] = ()
    mark: str = ""
    is_own: bool = False
    asked: Mapping[str, str] = {}
    archived: Mapping[str, str] = {}
    rows: Rows = "paper"
    configured: tuple[str, ...] = ()

    def with_files(self, **files: str) -> "DisplayInputs":
        """Return a copy with these `files`."""
        return self.model_copy(update={"files": files})

    def printed(self, *keys: str, file: str = "published") -> dict[tuple[str, ...], dict[str, Any]]:
        """Return the printed rows of a file, by the values of `keys`.

        The result is empty for the user's own data, and if there is no file with this name.
        """
        if self.is_own or file not in self.files:
            return {}
        return read_published(self.files[file], keys)

    def input_files(self) -> list[str]:
        """Return the paths of all input files."""
        return [*self.metrics, *self.files.values()]

    def why_not(self, model: str, *run: str) -> str:
        """Return why a run of a model is missing; empty if unknown.

        Args:
            model: Model name.
            run: Parts of the run after the model, such as its setting; later parts may be omitted.
        """
        wanted = "/".join((model, *run, ""))
        reasons = (reason for key, reason in self.not_run.items() if f"{key}/".startswith(wanted))
        return next(reasons, self.not_run.get(model, ""))

    def left_out(self) -> dict[tuple[str, ...], str]:
        """Return why configured runs are missing, by the parts of `model/setting/...`.

        Reasons that apply to a model as a whole are omitted.
        """
        keys = {tuple(key.split("/")): reason for key, reason in self.not_run.items()}
        return {key: reason for key, reason in keys.items() if len(key) > 1}

    @property
    def shows_models(self) -> bool:
        """Whether the rows or marks of the display are models."""
        return bool(self.models or self.absent)

    def row_models(self) -> tuple[ModelDescription, ...]:
        """Return the models that have rows; if only this run's have, in configuration order."""
        described = (*self.models, *self.absent)
        if self.rows == "paper":
            return described
        by_name = {model.name: model for model in described}
        names = self.configured or [model.name for model in self.models]
        return tuple(by_name[name] for name in names if name in by_name)

    def place(self, model: str) -> int:
        """Return the position of a model among those that have rows."""
        return [described.name for described in self.row_models()].index(model)

    def labels(self) -> dict[str, str]:
        """Return the labels of all models by name."""
        return {model.name: model.label for model in (*self.models, *self.absent)}
