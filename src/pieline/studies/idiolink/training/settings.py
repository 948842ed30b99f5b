"""Hyperparameters of contrastive fine-tuning (IdioLink, Table 3); imports no heavy libraries."""

from typing import Literal, Self

from pydantic import NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from pieline.core.settings import Field, LearningRate, Settings
from pieline.studies.idiolink.records import QueryMode

Loss = Literal["paper", "released"]


def evaluated_modes(train_mode: str) -> list[str]:
    """Return the query modes of Table 5 for a model trained in `train_mode`.

    A model trained in a sentence mode is also evaluated in the corresponding span mode.
    """
    if train_mode.endswith("span"):
        return [train_mode]
    return [train_mode, train_mode.replace("sentence", "span")]


class Hyperparameters(Settings):
    """Hyperparameters shared by all training runs of a study; the defaults are those of Table 3."""

    soft_negatives: NonNegativeInt = Field(
        default=3,
        affects="predictions",
        description="α_N of equation 1: documents with other PIEs per training tuple.",
    )
    hard_negatives: NonNegativeInt = Field(
        default=2,
        affects="predictions",
        description="α_H of equation 1: documents with the query's PIE in the opposite meaning.",
    )
    learning_rate: LearningRate = Field(
        default=2e-5,
        affects="predictions",
        description="Learning rate of AdamW after warm-up; decays linearly to zero.",
    )
    weight_decay: float = Field(
        default=0.01, ge=0, affects="predictions", description="Weight decay of AdamW."
    )
    batch_size: PositiveInt = Field(
        default=32, affects="predictions", description="Tuples per step."
    )
    drop_last: bool = Field(
        default=False,
        affects="predictions",
        description="Drop the last, incomplete batch of each epoch, as in the released code.",
    )
    max_epochs: PositiveInt = Field(
        default=10,
        affects="predictions",
        description="Maximum number of epochs; early stopping may end training.",
    )
    warmup_steps: NonNegativeInt = Field(
        default=100, affects="predictions", description="Steps of linear warm-up."
    )
    patience: PositiveInt = Field(
        default=3,
        affects="predictions",
        description="Epochs without improvement after which training stops.",
    )
    min_delta: float = Field(
        default=0.001,
        ge=0,
        affects="predictions",
        description="Minimum improvement of validation nDCG@10 (fraction) for early stopping. The"
        " best epoch is kept even if its improvement is smaller. The released code uses 0.",
    )
    max_norm: PositiveFloat = Field(
        default=1.0,
        affects="predictions",
        description="Maximum norm of the gradient, which is clipped.",
    )

    @model_validator(mode="after")
    def _has_negatives(self) -> Self:
        if not self.soft_negatives + self.hard_negatives:
            raise ValueError("soft_negatives and hard_negatives must not both be 0")
        return self


class TrainingSettings(Hyperparameters):
    """Settings of one training run, except for its model and data.

    Attributes:
        loss: `paper`: equation 2; `released`: loss of the released code.
        train_mode: Query mode of the training queries.
        seed: Seed for the order of tuples and for dropout.
    """

    loss: Loss
    train_mode: QueryMode
    seed: int
