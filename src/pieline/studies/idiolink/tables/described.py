"""Descriptive tables of IdioLink (3, 4 and 6): hyperparameters, artifacts and checkpoints."""

from operator import attrgetter

from pieline.reporting import described
from pieline.reporting.columns import Column
from pieline.reporting.described import artifacts
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.tables import TableContent
from pieline.studies.idiolink.settings import FineTuning

__all__ = ["artifacts", "checkpoints", "hyperparameters"]

_DRAMA = "drama-1b"


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


def checkpoints(inputs: DisplayInputs) -> TableContent:
    """Build Table 6: checkpoints, licenses, sizes and the revisions pinned in models.yaml."""
    unnamed = "neither models.yaml nor idiolink.construction names it"
    return described.checkpoints(inputs, unnamed=unnamed)
