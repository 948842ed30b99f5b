"""Fine-tuning hyperparameters of encoders; no torch import, so configurations load quickly."""

from typing import Literal

from pydantic import Field, PositiveFloat, PositiveInt

from pieline.core.settings import LearningRate, Settings

Batching = Literal["random", "by_length"]
EncoderInput = Literal["text", "whitespace"]


class TaggingSettings(Settings):
    """Hyperparameters of encoders (ID10M-JAM, Table 4)."""

    epochs: PositiveInt = 20
    batch_size: PositiveInt = 32
    batching: Batching = Field(
        default="random",
        description="Composition of batches: random, as in transformers' Trainer, or sentences of"
        " similar length, which is faster.",
    )
    learning_rate: LearningRate = Field(
        default=2e-5, description="Initial learning rate; it decreases linearly to zero."
    )
    weight_decay: float = Field(default=0.0, ge=0)
    max_norm: PositiveFloat = Field(default=1.0, description="Maximum gradient norm.")
    keep: Literal["last", "best"] = Field(
        default="last",
        description="Epoch whose weights are kept: the last, the default of transformers' Trainer,"
        " or the one with the best F1 of complete idioms on dev.",
    )
    bfloat16: bool = Field(
        default=False,
        description="Compute in bfloat16 on a GPU, unlike the paper.",
    )
