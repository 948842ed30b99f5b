"""Define the fine-tuning hyperparameters of encoders.

This module does not import torch, so that configurations load quickly.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple

from pydantic import PositiveInt

from pieline.core.settings import Field, LearningRate, Settings

Batching = Literal["random", "by_length"]
EncoderInput = Literal["text", "whitespace"]
TrainingForm = Literal["paper", "released"]


class FormDetails(NamedTuple):
    """Details of training and tagging that depend only on the form (`jam.form`).

    Attributes:
        dropout: Probability of hidden and attention dropout; None for the checkpoint's probability.
        gradient_accumulation: Number of batches per step of the optimizer.
        float16: Whether to use mixed precision with float16 on a GPU. CPUs always use float32.
        cuts_sentences: Whether a training sentence ends at `.`, `!` or `?` instead of a blank line
            in ID10M's files.
        weight_decay: Weight decay of AdamW.
        input: Units to tag: `text` for ID10M's tokens (section 3.1), or `whitespace` for the words
            between white space, including their punctuation. Both forms use tokens in training.
        drop_stray_tags: Whether to ignore a predicted I tag that does not follow a B or I tag.
            Otherwise, this I tag begins an idiom.
    """

    dropout: float | None = None
    gradient_accumulation: int = 1
    float16: bool = False
    cuts_sentences: bool = False
    weight_decay: float = 0.0
    input: EncoderInput = "text"
    drop_stray_tags: bool = False


FORMS: Mapping[TrainingForm, FormDetails] = {
    "paper": FormDetails(),
    "released": FormDetails(
        dropout=0.5,
        gradient_accumulation=4,
        float16=True,
        cuts_sentences=True,
        weight_decay=0.01,
        input="whitespace",
        drop_stray_tags=True,
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
"""Differences of training and tagging in the authors' code (form: released) from the paper."""


class TaggingSettings(Settings):
    """Fine-tuning hyperparameters of encoders (ID10M-JAM, Table 4)."""

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
    """Settings of a training job: the hyperparameters and the form."""

    form: TrainingForm = "paper"

    @property
    def details(self) -> FormDetails:
        """Details of training and tagging that depend on the form."""
        return FORMS[self.form]
