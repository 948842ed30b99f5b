"""Fine-tuning hyperparameters of encoders; no torch import, so configurations load quickly."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from pydantic import PositiveFloat, PositiveInt, model_validator

from pieline.core.settings import Field, LearningRate, Settings

Batching = Literal["random", "by_length"]
EncoderInput = Literal["text", "whitespace"]
TrainingForm = Literal["paper", "released"]


class FormDetails(NamedTuple):
    """Training details that depend only on the form.

    Attributes:
        dropout: Probability of hidden and attention dropout; None: that of the checkpoint.
        gradient_accumulation: Number of batches per step of the optimizer.
        float16: Whether to use mixed precision with float16 on a GPU; elsewhere, float32 is used.
        cuts_sentences: Whether a training sentence ends at `.`, `!` or `?`, regardless of the blank
            lines in ID10M's files.
        drop_unbegun: Whether a predicted I tag without a B tag before it marks no idiom, instead of
            beginning one.
    """

    dropout: float | None = None
    gradient_accumulation: int = 1
    float16: bool = False
    cuts_sentences: bool = False
    drop_unbegun: bool = False


FORMS: Mapping[TrainingForm, FormDetails] = {
    "paper": FormDetails(),
    "released": FormDetails(
        dropout=0.5,
        gradient_accumulation=4,
        float16=True,
        cuts_sentences=True,
        drop_unbegun=True,
    ),
}
RELEASED_DEFAULTS: Mapping[str, Any] = {"weight_decay": 0.01, "input": "whitespace"}
"""Default values of other settings in the released form."""
RELEASED_DEVIATIONS = (
    "dropout 0.5 in hidden and attention layers, the paper's checkpoints 0.1",
    "gradients of 4 batches per step, the paper 1",
    "mixed precision with float16 on a GPU, the paper float32",
    "training sentences end at '.', '!' and '?', the paper's at blank lines",
)
"""Differences of the released form from the paper's text, other than `RELEASED_DEFAULTS`."""


class TaggingSettings(Settings):
    """Hyperparameters of encoders (ID10M-JAM, Table 4)."""

    form: TrainingForm = Field(
        default="paper",
        affects="predictions",
        deviates=False,
        description="'paper': as in the paper's text, with the defaults of transformers' Trainer;"
        " 'released': as in the released notebook (docs/studies/tagging.md).",
    )
    epochs: PositiveInt = Field(
        default=20, affects="predictions", description="Number of passes over the sentences."
    )
    batch_size: PositiveInt = Field(
        default=32, affects="predictions", description="Number of sentences per batch."
    )
    batching: Batching = Field(
        default="random",
        affects="predictions",
        description="Composition of batches: random, as in transformers' Trainer, or sentences of"
        " similar length, which is faster.",
    )
    learning_rate: LearningRate = Field(
        default=2e-5,
        affects="predictions",
        description="Initial learning rate; it decreases linearly to zero.",
    )
    weight_decay: float = Field(
        default=0.0, ge=0, affects="predictions", description="Weight decay of AdamW; 0: none."
    )
    max_norm: PositiveFloat = Field(
        default=1.0, affects="predictions", description="Maximum gradient norm."
    )
    keep: Literal["last", "best"] = Field(
        default="last",
        affects="predictions",
        description="Epoch whose weights are kept: the last, the default of transformers' Trainer,"
        " or the one with the best F1 of complete idioms on dev.",
    )
    bfloat16: bool = Field(
        default=False,
        affects="predictions",
        description="Compute in bfloat16 on a GPU, unlike the paper.",
    )

    @model_validator(mode="before")
    @classmethod
    def _fill_in_form(cls, fields: Any) -> Any:
        if isinstance(fields, Mapping) and fields.get("form") == "released":
            defaults = {
                name: value for name, value in RELEASED_DEFAULTS.items() if name in cls.model_fields
            }
            return defaults | dict(fields)
        return fields

    @property
    def details(self) -> FormDetails:
        """Training details of the form."""
        return FORMS[self.form]
