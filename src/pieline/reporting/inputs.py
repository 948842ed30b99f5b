"""Inputs of tables, figures and exports: runs, models, files and notes."""

from collections.abc import Mapping
from typing import Any, Literal

from pieline.core.records import Frozen
from pieline.reporting.models import ModelDescription
from pieline.reporting.printed import read_published

RowChoice = Literal["paper", "run"]
"""Models with rows in a table: "paper" for the paper's and this run's, "run" for this run's."""


class PlannedRun(Frozen):
    """A run that the configuration selects: one model with one setting, language and seed.

    Attributes:
        keys: Values of the keys that identify the run's numbers (`pieline.reporting.ours.KEYS`).
        metrics: Path of the metric file.
        digest: Digest of the conditions under which the metrics are computed.
        not_run: Why the run is impossible; empty if it is possible.
        origin: Where the predictions come from; empty if they are computed here.
    """

    keys: Mapping[str, str]
    metrics: str
    digest: str = ""
    not_run: str = ""
    origin: str = ""


class DisplayInputs(Frozen):
    """Inputs of a table, figure or export; if their canonical JSON changes, the output is remade.

    Attributes:
        study: Name of the study.
        display: Name of the table or figure.
        metrics: Paths of the metric files, in the order in which the display shows them.
        digests: Digest of the conditions that each metric file must state, by path.
        runs: Runs that compute `metrics`, and impossible runs of the same kind.
        models: Descriptions of this run's models, then of the paper's other models.
        files: Paths of the other input files by name, such as printed numbers.
        options: Additional JSON values.
        data: Whether the data is our sample, the papers' public data ("released") or the user's
            own. Displays of the user's own data show no printed numbers.
        notes: Sentences about the data to show with the display.
        mark: Notice that the data is limited or the user's own; otherwise empty.
        rows: Models whose rows the table shows (`tables.rows` of the configuration).
        otherwise: Why a run does not compute a printed number, if the plan states no other reason.
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
        """Return a copy of the inputs whose `files` are only these paths, given by name."""
        return self.model_copy(update={"files": files})

    def printed(self, file: str, *keys: str) -> dict[tuple[str, ...], dict[str, float]]:
        """Read the printed numbers in a file of published/, by row and by column.

        The result is empty for the user's own data, and if `file` is not an input of the display.

        Args:
            file: Name of the file, without extension.
            keys: Columns whose values identify a row.

        Returns:
            The numbers of each row by column, by the values of the row's `keys`.
        """
        if self.data == "own" or file not in self.files:
            return {}
        return read_published(self.files[file], keys)

    def input_files(self) -> list[str]:
        """Return the paths of all input files."""
        return [*self.metrics, *self.files.values()]

    def left_out(self) -> list[PlannedRun]:
        """Return the runs that the configuration selects although they are impossible."""
        return [run for run in self.runs if run.not_run]

    def why_missing(self, keys: Mapping[str, Any]) -> str:
        """Return why this run does not compute a number, given the values of all its keys."""
        for planned_run in self.left_out():
            # A number over several seeds has no seed among its keys.
            keys_of_run = {key: value for key, value in planned_run.keys.items() if key != "seed"}
            if all(keys[key] == value for key, value in keys_of_run.items()):
                return planned_run.not_run
        for model in self.models:
            if model.name == keys["model"] and model.not_run:
                return model.not_run
        return self.otherwise

    def origins(self) -> list[str]:
        """Return one sentence per origin from which this run takes predictions, such as an archive.

        The sentence lists the labels of the models whose predictions come from the origin.
        """
        labels = self.labels()
        labels_by_origin: dict[str, list[str]] = {}
        for run in self.runs:
            if run.origin and not run.not_run:
                name = run.keys["model"]
                label = labels.get(name, name)
                labels_of_origin = labels_by_origin.setdefault(run.origin, [])
                if label not in labels_of_origin:
                    labels_of_origin.append(label)
        return [
            f"From {origin}: {', '.join(labels_by_origin[origin])}."
            for origin in sorted(labels_by_origin)
        ]

    def names(self) -> dict[str, list[str]]:
        """Map each model name that the papers print to the models' names in models.yaml."""
        names_by_printed_name: dict[str, list[str]] = {}
        for model in self.models:
            if model.published_as:
                names_by_printed_name.setdefault(model.published_as, []).append(model.name)
        return names_by_printed_name

    @property
    def shows_models(self) -> bool:
        """Whether the table or figure shows scores of models."""
        return bool(self.models)

    def own_models(self) -> list[ModelDescription]:
        """Return the models that the configuration selects."""
        return [model for model in self.models if model.is_configured]

    def row_models(self) -> list[ModelDescription]:
        """Return the models that have rows in the table."""
        return self.own_models() if self.rows == "run" else list(self.models)

    def labels(self) -> dict[str, str]:
        """Return the label of each model by its name in models.yaml."""
        return {model.name: model.label for model in self.models}
