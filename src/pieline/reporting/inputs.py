"""What tables and figures are made from."""

from collections.abc import Mapping
from typing import Any

from pieline.core.records import Frozen
from pieline.reporting.models import ModelDescription
from pieline.reporting.printed import read_published


class DisplayInputs(Frozen):
    """What a table or figure is made from; its canonical JSON decides what makes it stale.

    Attributes:
        metrics: metric files, in the order in which they are shown.
        files: other inputs by name (printed numbers and the like).
        models: what to say of the models that were run.
        not_run: why models have no numbers: the reason by model, or by a run of one that the
            configuration names (`model/setting/...`).
        absent: what to say of the paper's models that the configuration does not name.
        options: anything else, as JSON.
        notes: sentences on the data that every table and figure carries.
        asked: digests of the conditions that metric files should have, by path.
        mark: what stands over it and in each line of its CSV: it is no result, or of own data.
        archived: by metric file, the archive that its predictions are from.
        is_own: whether the data are the user's own, so that no printed number is shown.
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
        """The same with other files."""
        return self.model_copy(update={"files": files})

    def printed(self, *keys: str, file: str = "published") -> dict[tuple[str, ...], dict[str, Any]]:
        """The printed rows of a file by their keys; none for own data, or without such a file."""
        if self.is_own or file not in self.files:
            return {}
        return read_published(self.files[file], keys)

    def inputs(self) -> list[str]:
        """All files."""
        return [*self.metrics, *self.files.values()]

    def why_not(self, model: str, *run: str) -> str:
        """Why a run of a model was not made (its setting and so on), empty if nothing says."""
        wanted = "/".join((model, *run, ""))
        reasons = (reason for key, reason in self.not_run.items() if f"{key}/".startswith(wanted))
        return next(reasons, self.not_run.get(model, ""))

    def left_out(self) -> dict[tuple[str, ...], str]:
        """The runs that the configuration names and that were not made, with the reason."""
        keys = {tuple(key.split("/")): reason for key, reason in self.not_run.items()}
        return {key: reason for key, reason in keys.items() if len(key) > 1}

    def labels(self) -> dict[str, str]:
        """Labels of all models by name."""
        return {model.name: model.label for model in (*self.models, *self.absent)}
