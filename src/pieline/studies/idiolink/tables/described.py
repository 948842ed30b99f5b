"""Descriptive displays of IdioLink: Figure 1, and Tables 3, 4 and 6."""

from operator import attrgetter
from typing import Any

from pieline.core.records import load_jsonl
from pieline.reporting import described
from pieline.reporting.columns import Column, headers
from pieline.reporting.described import artifacts
from pieline.reporting.displays import ConfiguredStudy, Table
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.printed import state
from pieline.reporting.tables import Cell, Group, Number, Row, TableContent
from pieline.studies.idiolink import inputs as given
from pieline.studies.idiolink import paths
from pieline.studies.idiolink.records import Document
from pieline.studies.idiolink.settings import FineTuning

__all__ = ["artifacts", "checkpoints", "example", "hyperparameters"]

_DRAMA = "drama-1b"
_SHOWN = "shown, not compared"


def _drama_batch_size(tuning: FineTuning) -> int | None:
    return tuning.batch_sizes.get(_DRAMA, tuning.batch_size) if _DRAMA in tuning.models else None


HYPERPARAMETERS = [
    Column[FineTuning]("soft_negatives", "“Soft” negatives", attrgetter("soft_negatives")),
    Column("hard_negatives", "“Hard” negatives", attrgetter("hard_negatives")),
    Column("max_epochs", "Max epochs", attrgetter("max_epochs")),
    Column("batch_size", "Batch size", attrgetter("batch_size")),
    Column(
        "batch_size_drama",
        "Batch size of Drama-1B",
        _drama_batch_size,
        unknown=f"{_DRAMA} is not fine-tuned in this configuration",
    ),
    Column("learning_rate", "Learning rate", attrgetter("learning_rate")),
    Column("warm_up_steps", "Warm-up steps (linear)", attrgetter("warmup_steps")),
    Column("early_stopping_min_delta", "Min-delta (early stopping)", attrgetter("min_delta")),
    Column(
        "early_stopping_patience_epochs",
        "Patience epochs (early stopping)",
        attrgetter("patience"),
    ),
]


def example(inputs: DisplayInputs) -> TableContent:
    """Build Figure 1 with texts of this run: the documents of each type of the first PIE."""
    documents = load_jsonl(inputs.files["documents"], Document)
    shown: dict[str, Document] = {}
    for document in documents:
        if document.pie == documents[0].pie:
            shown.setdefault(document.usage, document)
    rows = []
    for usage, document in shown.items():
        key = {"pie": document.pie, "usage": usage, "metric": "document", "id": document.id}
        cell = Cell(Number(key, state(document.sentence, "", reason=_SHOWN)))
        rows.append(Row((usage, document.span), (cell,)))
    return TableContent(
        heads=(headers(["Document type", "Marked span", "Document"]),),
        groups=(Group(tuple(rows)),),
        caption=f"The document types of a PIE, “{documents[0].pie}”. It is the first in this run's"
        " test data, not the paper's example.",
        notes=inputs.notes,
        wraps=True,
    )


def _documents(study: ConfiguredStudy) -> DisplayInputs | None:
    if study.settings.dataset == "archived":
        return None
    return DisplayInputs(
        files={"documents": paths.dataset("test")["documents"]}, notes=study.notes()
    )


EXAMPLE_TABLE = Table(
    "idiolink_example",
    "Figure 1",
    "The document types of a PIE.",
    example,
    _documents,
)


def hyperparameters(inputs: DisplayInputs) -> TableContent:
    """Build Table 3: hyperparameters of this run; the options are the fine-tuning settings."""
    tuning = FineTuning.model_validate(inputs.options)
    absent = "" if tuning.models else "no model is fine-tuned in this configuration"
    values = {
        column.name: (
            column.header,
            None if absent else column.value(tuning),
            absent or column.unknown,
        )
        for column in HYPERPARAMETERS
    }
    return described.hyperparameters(inputs, values, "Fine-tuning hyperparameters.")


def _fine_tuning(study: ConfiguredStudy) -> DisplayInputs:
    tuned = study.settings.finetuning.model_copy(update={"models": given.tuned_bases(study)})
    return DisplayInputs(options=tuned.model_dump(mode="json"))


HYPERPARAMETERS_TABLE = Table(
    "idiolink_hyperparameters",
    "Table 3",
    "Hyperparameters of fine-tuning, as set in this run.",
    hyperparameters,
    _fine_tuning,
    printed="idiolink_table3",
)
ARTIFACTS_TABLE = Table(
    "idiolink_artifacts",
    "Table 4",
    "Data and packages, their licenses and pinned versions.",
    artifacts,
    described.artifact_inputs,
    printed="idiolink_table4",
)


def checkpoints(inputs: DisplayInputs) -> TableContent:
    """Build Table 6: checkpoints, licenses, sizes and the revisions pinned in models.yaml."""
    unnamed = "neither models.yaml nor idiolink.construction names it"
    return described.checkpoints(inputs, unnamed=unnamed)


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
    printed="idiolink_table6",
)
