"""Hyperparameters of contrastive fine-tuning (IdioLink, Table 3); imports no heavy libraries."""

from typing import Literal

from pieline.core.records import Frozen
from pieline.studies.idiolink.records import HARD_NEGATIVES, SOFT_NEGATIVES, QueryMode

Loss = Literal["paper", "released"]


def evaluated_modes(train_mode: str) -> list[str]:
    """Return the query modes of Table 5 for a model trained in `train_mode`.

    A model trained in a sentence mode is also evaluated in the corresponding span mode.
    """
    if train_mode.endswith("span"):
        return [train_mode]
    return [train_mode, train_mode.replace("sentence", "span")]


class Hyperparameters(Frozen):
    """Hyperparameters of training; the defaults are those of Table 3.

    Attributes:
        soft_negatives: α_N of equation 1: documents with other PIEs per training tuple.
        hard_negatives: α_H of equation 1: documents with the query's PIE in the opposite meaning.
        learning_rate: Learning rate of AdamW after warm-up; decays linearly to zero.
        weight_decay: Weight decay of AdamW.
        batch_size: Tuples per step.
        drop_last: Whether the last, incomplete batch of each epoch is dropped, as in the released
            code.
        max_epochs: Maximum number of epochs.
        warmup_steps: Steps of linear warm-up.
        patience: Epochs without improvement after which training stops.
        min_delta: Minimum improvement of validation nDCG@10 (fraction) for early stopping. The
            best epoch is kept even if its improvement is smaller. The authors' code uses 0.
        max_norm: Maximum norm of the gradient, which is clipped.
    """

    soft_negatives: int = SOFT_NEGATIVES
    hard_negatives: int = HARD_NEGATIVES
    learning_rate: float = 2e-5
    weight_decay: float = 0.01
    batch_size: int = 32
    drop_last: bool = False
    max_epochs: int = 10
    warmup_steps: int = 100
    patience: int = 3
    min_delta: float = 0.001
    max_norm: float = 1.0


TABLE_3 = Hyperparameters()
BATCH_SIZES = {"drama-1b": 8}
"""Batch sizes of single models in Table 3."""


class TrainingSettings(Hyperparameters):
    """Settings of one training run, except for its model and data.

    Attributes:
        loss: `paper`: equation 2; `released`: loss of the authors' code.
        train_mode: Query mode of the training queries.
        seed: Seed for the order of tuples and for dropout.
    """

    loss: Loss
    train_mode: QueryMode
    seed: int
