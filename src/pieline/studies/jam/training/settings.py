"""Fine-tuning hyperparameters of encoders; no torch import, so configurations load quickly."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

from pydantic import PositiveInt

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
        weight_decay: Weight decay of AdamW.
        input: Units that are tagged: `text` stands for ID10M's tokens (section 3.1), `whitespace`
            for the words between white space, with their punctuation. Training uses tokens in both
            forms.
        drop_unbegun: Whether a predicted I tag without a B tag before it is ignored; otherwise it
            begins an idiom.
    """

    dropout: float | None = None
    gradient_accumulation: int = 1
    float16: bool = False
    cuts_sentences: bool = False
    weight_decay: float = 0.0
    input: EncoderInput = "text"
    drop_unbegun: bool = False


FORMS: Mapping[TrainingForm, FormDetails] = {
    "paper": FormDetails(),
    "released": FormDetails(
        dropout=0.5,
        gradient_accumulation=4,
        float16=True,
        cuts_sentences=True,
        weight_decay=0.01,
        input="whitespace",
        drop_unbegun=True,
    ),
}
RELEASED_DEVIATIONS = (
    "weight decay 0.01, the paper 0",
    "input whitespace, the paper text",
    "dropout 0.5 in hidden and attention layers, the paper's checkpoints 0.1",
    "gradients of 4 batches per step, the paper 1",
    "mixed precision with float16 on a GPU, the paper float32",
    "training sentences end at '.', '!' and '?', the paper's at blank lines",
)
"""Differences of the released form from the paper's text."""


class TaggingSettings(Settings):
    """Hyperparameters of encoders (ID10M-JAM, Table 4)."""

    epochs: PositiveInt = Field(
        default=20,
        affects="predictions",
        description="Number of training passes over the sentences.",
    )
    batch_size: PositiveInt = Field(
        default=32, affects="predictions", description="Number of sentences per batch."
    )
    batching: Batching = Field(
        default="random",
        affects="predictions",
        description="Which sentences form a batch: random ones, as in transformers' Trainer"
        " ('random'), or sentences of similar length, which is faster ('by_length').",
    )
    learning_rate: LearningRate = Field(
        default=2e-5,
        affects="predictions",
        description="Initial learning rate; it decreases linearly to zero.",
    )


class TaggerTraining(TaggingSettings):
    """Settings of a training job: the hyperparameters and the form of the study."""

    form: TrainingForm = "paper"

    @property
    def details(self) -> FormDetails:
        """Training details of the form."""
        return FORMS[self.form]
