"""Load, apply and save a token-classification model with its tokenizer."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForTokenClassification
from transformers.utils import logging as transformers_logging

from pieline.core.files import atomic_folder
from pieline.models.entries import EncoderEntry
from pieline.models.loading import load_with_tokenizer
from pieline.studies.jam.bio import TAG_IDS, TAGS, Tag
from pieline.studies.jam.training.subwords import collate, decode, encode

_SENTENCES_AT_ONCE = 64


@dataclass(frozen=True)
class Tagger:
    """A model that assigns a BIO tag to each word.

    Attributes:
        model: Token-classification model of transformers.
        tokenizer: Fast tokenizer of the model.
        max_length: Maximum input length in subtokens.
    """

    model: Any
    tokenizer: Any
    max_length: int

    @property
    def device(self) -> torch.device:
        """Return the device of the model."""
        return torch.device(self.model.device)

    def tag(
        self,
        sentences: Sequence[Sequence[str]],
        *,
        drop_unbegun: bool = False,
    ) -> list[list[Tag]]:
        """Return a valid BIO tag for each word of each sentence.

        For `drop_unbegun`, see `valid_tags`.
        """
        encoded = encode(self.tokenizer, sentences, max_length=self.max_length)
        longest_first = sorted(range(len(encoded)), key=lambda number: -len(encoded[number]))
        tags: list[list[Tag]] = [[] for _ in encoded]
        self.model.eval()
        with torch.inference_mode():
            for start in range(0, len(encoded), _SENTENCES_AT_ONCE):
                chosen = longest_first[start : start + _SENTENCES_AT_ONCE]
                batch = collate(
                    [encoded[number] for number in chosen],
                    None,
                    pad_id=self.tokenizer.pad_token_id,
                    device=self.device,
                )
                predicted = self.model(**batch).logits.argmax(dim=-1).tolist()
                for number, numbers in zip(chosen, predicted, strict=True):
                    tags[number] = decode(encoded[number], numbers, drop_unbegun=drop_unbegun)
        return tags

    def save(self, folder: str | Path) -> None:
        """Write weights and tokenizer atomically."""
        with atomic_folder(folder) as complete:
            self.model.save_pretrained(complete)
            self.tokenizer.save_pretrained(complete)


def load_tagger(
    entry: EncoderEntry,
    *,
    weights: str | Path | None = None,
    seed: int = 0,
    device: str | None = None,
) -> Tagger:
    """Load an encoder with a tagging head, by default on the GPU if available.

    `weights` is the folder of a fine-tuned tagger. Without it, the published encoder gets a new
    head initialized with `seed`.

    Raises:
        UserError: The checkpoint is incomplete; the hint states how to fix it.
    """
    # Suppress the expected warning about a missing tagging head.
    transformers_logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    torch.manual_seed(seed)
    model, tokenizer = load_with_tokenizer(
        AutoModelForTokenClassification,
        entry,
        weights=weights,
        device=device,
        new_head=not weights,
        id2label=dict(enumerate(TAGS)),
        label2id=TAG_IDS,
        dtype=torch.float32,
    )
    return Tagger(model, tokenizer, entry.max_length)
