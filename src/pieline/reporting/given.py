"""What tables and figures are made from."""

from collections.abc import Mapping
from typing import Any

from pieline.core.records import Frozen
from pieline.reporting.models import ModelDescription


class Given(Frozen):
    """What a table or figure is made from; its canonical JSON decides what makes it stale.

    Attributes:
        metrics: metric files, in the order in which they are shown.
        files: other inputs by name (printed numbers and the like).
        models: what to say of the models that were run.
        not_run: the paper's models that were not, each with its reason.
        absent: what to say of those.
        options: anything else, as JSON.
    """

    metrics: tuple[str, ...] = ()
    files: Mapping[str, str] = {}
    models: tuple[ModelDescription, ...] = ()
    not_run: Mapping[str, str] = {}
    absent: tuple[ModelDescription, ...] = ()
    options: Mapping[str, Any] = {}

    def of(self, **files: str) -> "Given":
        """The same with other files."""
        return self.model_copy(update={"files": files})

    def inputs(self) -> list[str]:
        """All files."""
        return [*self.metrics, *self.files.values()]

    def labels(self) -> dict[str, str]:
        """Labels of all models by name."""
        return {model.name: model.label for model in (*self.models, *self.absent)}
