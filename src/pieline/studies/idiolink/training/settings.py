"""Define the hyperparameters of contrastive fine-tuning (IdioLink, Table 3).

The module imports no heavy libraries, because every run imports this module when planning.
"""

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
    """Hyperparameters of training, with the values of Table 3 as defaults.

    Attributes:
        soft_negatives: Documents with other PIEs per training tuple (α_N of equation 1).
        hard_negatives: Documents with the query's PIE in the opposite meaning per training tuple
            (α_H of equation 1).
        learning_rate: Learning rate of AdamW after warm-up, which then decreases linearly to zero.
        weight_decay: Weight decay of AdamW.
        batch_size: Tuples per step.
        drop_last: Whether the last, incomplete batch of each epoch is dropped, as in the authors'
            code.
        max_epochs: Maximum number of epochs.
        warmup_steps: Steps of linear warm-up.
        patience: Number of epochs without improvement after which training stops.
        min_delta: Improvement of validation nDCG@10 (fraction) that early stopping requires. The
            weights of the best epoch are kept even if the improvement is smaller. The authors' code
            uses 0.
        max_norm: Norm to which larger gradients are clipped.
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
"""Batch size of each model for which Table 3 prints a separate batch size."""


class TrainingSettings(Hyperparameters):
    """Settings of one training run, except for its model and data.

    Attributes:
        loss: `paper` for equation 2, or `released` for the loss of the authors' code.
        train_mode: Query mode of the training queries.
        seed: Seed for the order of tuples and for dropout.
    """

    loss: Loss
    train_mode: QueryMode
    seed: int
