"""IdioLink's Tables 3, 4 and 6, which describe: hyperparameters, artifacts and checkpoints."""

from pieline.reporting import described
from pieline.reporting.described import artifacts
from pieline.reporting.given import Given
from pieline.reporting.tables import TableContent
from pieline.studies.idiolink.settings import FineTuning

__all__ = ["artifacts", "checkpoints", "hyperparameters"]

_DRAMA = "drama-1b"


def hyperparameters(given: Given) -> TableContent:
    """Table 3: what this run's trainings are set to.

    `options` are the settings of fine-tuning, as JSON.
    """
    tuning = FineTuning.model_validate(given.options)
    batch_size = tuning.batch_size
    values: dict[str, tuple[str, float | None]] = {
        "soft_negatives": ("“Soft” negatives", tuning.soft_negatives),
        "hard_negatives": ("“Hard” negatives", tuning.hard_negatives),
        "max_epochs": ("Max epochs", tuning.max_epochs),
        "batch_size": ("Batch size", batch_size),
        "batch_size_drama": (
            "Batch size of Drama-1B",
            tuning.batch_sizes.get(_DRAMA, batch_size) if _DRAMA in tuning.models else None,
        ),
        "learning_rate": ("Learning rate", tuning.learning_rate),
        "warm_up_steps": ("Warm-up steps (linear)", tuning.warmup_steps),
        "early_stopping_min_delta": ("Min-delta (early stopping)", tuning.min_delta),
        "early_stopping_patience_epochs": ("Patience epochs (early stopping)", tuning.patience),
    }
    what = f"{_DRAMA} is not" if tuning.models else "no model is"
    found = {
        name: (label, value if tuning.models else None, f"{what} fine-tuned in this configuration")
        for name, (label, value) in values.items()
    }
    return described.hyperparameters(given, found, "Fine-tuning hyperparameters.")


def checkpoints(given: Given) -> TableContent:
    """Table 6: checkpoints, licences and sizes, and the revisions that models.yaml pins."""
    unnamed = "neither models.yaml nor idiolink.construction names it"
    return described.checkpoints(given, unnamed=unnamed)
