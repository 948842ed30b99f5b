"""Descriptive displays of IdioLink: Figure 1, and Tables 3, 4 and 6."""

from operator import attrgetter
from typing import Any

import pandas as pd

from pieline.core.measures import Measure
from pieline.core.records import load_jsonl
from pieline.reporting import described
from pieline.reporting.described import text_row
from pieline.reporting.displays import ConfiguredStudy, Table
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.printed import read_printed, state
from pieline.reporting.tables import Group, TableContent, headers
from pieline.studies.idiolink import inputs as given
from pieline.studies.idiolink import paths
from pieline.studies.idiolink.records import Document
from pieline.studies.idiolink.training.settings import Hyperparameters

_DRAMA = "drama-1b"
_SHOWN = "shown, not compared"


class ShownHyperparameters(Hyperparameters):
    """The hyperparameters of a run, and the batch size of Drama-1B if it is fine-tuned."""

    drama_batch_size: int | None


def _parameter(name: str, field: str = "") -> Measure[ShownHyperparameters]:
    return Measure(name, attrgetter(field or name))


HYPERPARAMETERS = {
    "“Soft” negatives": _parameter("soft_negatives"),
    "“Hard” negatives": _parameter("hard_negatives"),
    "Max epochs": _parameter("max_epochs"),
    "Batch size": _parameter("batch_size"),
    "Batch size of Drama-1B": Measure(
        "batch_size_drama",
        attrgetter("drama_batch_size"),
        unknown=f"{_DRAMA} is not fine-tuned in this configuration",
    ),
    "Learning rate": _parameter("learning_rate"),
    "Warm-up steps (linear)": _parameter("warm_up_steps", "warmup_steps"),
    "Min-delta (early stopping)": _parameter("early_stopping_min_delta", "min_delta"),
    "Patience epochs (early stopping)": _parameter("early_stopping_patience_epochs", "patience"),
}
"""Measures of Table 3, by label."""


def example(inputs: DisplayInputs) -> TableContent:
    """Build Figure 1 with texts of this run: the documents of each type of the first PIE."""
    documents = load_jsonl(inputs.files["documents"], Document)
    shown: dict[str, Document] = {}
    for document in documents:
        if document.pie == documents[0].pie:
            shown.setdefault(document.usage, document)
    rows = (
        text_row((usage, document.span), state(document.sentence, "", reason=_SHOWN))
        for usage, document in shown.items()
    )
    return TableContent(
        heads=(headers(["Document type", "Marked span", "Document"]),),
        groups=(Group(tuple(rows)),),
        caption=f"The document types of a PIE, “{documents[0].pie}”. It is the first in this run's"
        " test data, not the paper's example.",
        notes=inputs.notes,
        wraps=True,
    )


def _documents(study: ConfiguredStudy) -> DisplayInputs | None:
    if not given.has_texts(study):
        return None
    return study.display_inputs().with_files(documents=paths.dataset("test")["documents"])


EXAMPLE_TABLE = Table(
    "idiolink_example",
    "Figure 1",
    "The document types of a PIE.",
    example,
    _documents,
)


def hyperparameter_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return the hyperparameters of this run; no options if no model is fine-tuned."""
    tuning = ShownHyperparameters.model_validate(inputs.options) if inputs.options else None
    why = "" if tuning else "no model is fine-tuned in this configuration"
    return described.hyperparameter_numbers(
        inputs,
        HYPERPARAMETERS.values(),
        tuning,
        file="idiolink_table3",
        not_run=why,
    )


def hyperparameters(numbers: pd.DataFrame, _: DisplayInputs) -> TableContent:
    """Lay out Table 3."""
    labels = {measure.name: label for label, measure in HYPERPARAMETERS.items()}
    return described.hyperparameters(numbers, labels, "Fine-tuning hyperparameters.")


def _fine_tuning(study: ConfiguredStudy) -> DisplayInputs:
    tuning, bases = study.settings.finetuning, given.tuned_bases(study)
    drama = tuning.hyperparameters(_DRAMA).batch_size if _DRAMA in bases else None
    shown = {**tuning.hyperparameters().model_dump(), "drama_batch_size": drama}
    return study.display_inputs().model_copy(update={"options": shown if bases else {}})


HYPERPARAMETERS_TABLE = Table(
    "idiolink_hyperparameters",
    "Table 3",
    "Hyperparameters of fine-tuning, as set in this run.",
    hyperparameters,
    _fine_tuning,
    hyperparameter_numbers,
    printed=("idiolink_table3",),
)


def artifacts(inputs: DisplayInputs) -> TableContent:
    """Return Table 4."""
    return described.artifacts(inputs, read_printed(inputs.files["idiolink_table4"]))


ARTIFACTS_TABLE = Table(
    "idiolink_artifacts",
    "Table 4",
    "Data and packages, their licenses and pinned versions.",
    artifacts,
    described.artifact_inputs,
    printed=("idiolink_table4",),
)


def checkpoints(inputs: DisplayInputs) -> TableContent:
    """Return Table 6: checkpoints, licenses, sizes and the revisions pinned in models.yaml."""
    printed = read_printed(inputs.files["idiolink_table6"])
    unnamed = "neither models.yaml nor idiolink.construction names it"
    return described.checkpoints(inputs, printed, unnamed=unnamed)


def _checkpoints(study: ConfiguredStudy) -> DisplayInputs:
    roles = study.settings.construction.model_dump(
        include={"index_writer", "query_writer", "validator"}
    )
    names = [*study.project.names("embedder"), *roles.values()]
    return described.checkpoint_options(study, names, _printed_name)


def _printed_name(entry: Any) -> str | None:
    name: str | None = entry.published_as
    return entry.litellm_id.rpartition("/")[2] if entry.kind == "llm" else name


CHECKPOINTS_TABLE = Table(
    "idiolink_checkpoints",
    "Table 6",
    "Checkpoints, their licenses, sizes and pinned revisions.",
    checkpoints,
    _checkpoints,
    printed=("idiolink_table6",),
)
