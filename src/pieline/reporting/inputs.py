"""Inputs of tables and figures."""

from collections.abc import Mapping
from typing import Any

from pieline.core.records import Frozen
from pieline.reporting.models import ModelDescription
from pieline.reporting.printed import read_published


class DisplayInputs(Frozen):
    """Inputs of a table or figure, which is stale if their canonical JSON changes.

    Attributes:
        metrics: Metric files in display order.
        files: Other inputs by name, such as printed numbers.
        models: Descriptions of the models that were run.
        not_run: Reasons for missing numbers, by model or by configured run
            (`model/setting/...`).
        absent: Descriptions of the paper's models that are not in the configuration.
        options: Additional JSON values.
        notes: Sentences about the data, shown with every table and figure.
        asked: Digests of the expected conditions by metric file.
        mark: Note above the display and in each line of its CSV: that it is not a result, or that
            it uses the user's own data.
        archived: Archive that the predictions come from, by metric file.
        is_own: Whether the data are the user's own, in which case no printed number is shown.
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

    def with_files(self, **files: str) -> "DisplayInputs":
        """Return a copy with other files."""
        return self.model_copy(update={"files": files})

    def printed(self, *keys: str, file: str = "published") -> dict[tuple[str, ...], dict[str, Any]]:
        """Return the printed rows of a file by key; empty for own data or without that file."""
        if self.is_own or file not in self.files:
            return {}
        return read_published(self.files[file], keys)

    def input_files(self) -> list[str]:
        """Return all input files."""
        return [*self.metrics, *self.files.values()]

    def why_not(self, model: str, *run: str) -> str:
        """Return why a run of a model (`run`: setting and so on) is missing; empty if unknown."""
        wanted = "/".join((model, *run, ""))
        reasons = (reason for key, reason in self.not_run.items() if f"{key}/".startswith(wanted))
        return next(reasons, self.not_run.get(model, ""))

    def left_out(self) -> dict[tuple[str, ...], str]:
        """Return why configured runs are missing, by the parts of `model/setting/...`."""
        keys = {tuple(key.split("/")): reason for key, reason in self.not_run.items()}
        return {key: reason for key, reason in keys.items() if len(key) > 1}

    def labels(self) -> dict[str, str]:
        """Return the labels of all models by name."""
        return {model.name: model.label for model in (*self.models, *self.absent)}
