"""Tag idioms with encoders, and fine-tune the encoders (ID10M-JAM, appendix D)."""

import hashlib
import math
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForTokenClassification
from transformers.utils import logging as transformers_logging

from pieline.core.code import code_digest
from pieline.core.files import atomic_folder, canonical_json
from pieline.core.progress import Progress
from pieline.core.records import Frozen
from pieline.models.entries import EncoderEntry
from pieline.models.loading import load_with_tokenizer
from pieline.models.resumable import ResumableTraining
from pieline.studies.jam.bio import OUTSIDE, TAG_IDS, TAGS, Tag, valid_tags
from pieline.studies.jam.metrics.tokens import span_scores
from pieline.studies.jam.raw.id10m import TaggedSentence
from pieline.studies.jam.training.settings import Batching, TaggerTraining

IGNORED = -100
"""Label that the loss ignores."""
_BATCHES_PER_CHUNK = 50
"""Number of batches whose sentences are sorted by length together."""


@dataclass(frozen=True)
class EncodedSentence:
    """Subtokens of one sentence.

    Attributes:
        input_ids: Token ids, including special tokens.
        first_subtokens: Position of each word's first subtoken, by word index. Truncated words and
            words without a subtoken are missing.
        word_count: Number of words, including truncated words.
    """

    input_ids: tuple[int, ...]
    first_subtokens: dict[int, int]
    word_count: int

    def __len__(self) -> int:
        return len(self.input_ids)


def encode(
    tokenizer: Any, sentences: Sequence[Sequence[str]], *, max_length: int
) -> list[EncodedSentence]:
    """Return the subtokens of sentences, where each sentence is a list of words.

    Spaces around a word are ignored, and subtokens beyond `max_length` are removed.
    """
    if not sentences:
        return []
    encoding = tokenizer(
        [[word.strip() for word in words] for words in sentences],
        is_split_into_words=True,
        truncation=True,
        max_length=max_length,
    )
    encoded_sentences = []
    for index, words in enumerate(sentences):
        first_subtokens: dict[int, int] = {}
        for position, word_index in enumerate(encoding.word_ids(index)):
            is_special_token = word_index is None
            if not is_special_token:
                first_subtokens.setdefault(word_index, position)
        input_ids = tuple(encoding["input_ids"][index])
        encoded_sentences.append(EncodedSentence(input_ids, first_subtokens, len(words)))
    return encoded_sentences


def collate(
    sentences: Sequence[EncodedSentence],
    tags: Sequence[Sequence[Tag]] | None,
    *,
    pad_id: int,
    device: torch.device | str,
) -> dict[str, torch.Tensor]:
    """Return a batch of sentences as tensors, padded to the longest sentence.

    `tags` are the tags of the words of each sentence for training, and None for prediction.

    Returns:
        `input_ids`, `attention_mask` and, for training, `labels`. The shape of each tensor is
        (sentences, subtokens of the longest sentence).
    """
    longest = max(len(sentence) for sentence in sentences)
    # Build lists first, because setting tensor elements one by one is about 1,000 times slower.
    input_ids = []
    attention_mask = []
    for sentence in sentences:
        padding = longest - len(sentence)
        input_ids.append(list(sentence.input_ids) + [pad_id] * padding)
        attention_mask.append([1] * len(sentence) + [0] * padding)
    batch = {"input_ids": input_ids, "attention_mask": attention_mask}
    if tags is not None:
        batch["labels"] = []
        for sentence, word_tags in zip(sentences, tags, strict=True):
            labels = [IGNORED] * longest
            for word_index, position in sentence.first_subtokens.items():
                labels[position] = TAG_IDS[word_tags[word_index]]
            batch["labels"].append(labels)
    return {name: torch.tensor(rows).to(device) for name, rows in batch.items()}


def decode(
    sentence: EncodedSentence, tag_ids: Sequence[int], *, drop_stray_tags: bool = False
) -> list[Tag]:
    """Return the BIO tag of each word of a sentence, given the predicted tag id of each subtoken.

    Words without a subtoken get O, and stray I tags are replaced (see `valid_tags`).
    """
    tags: list[Tag] = [OUTSIDE] * sentence.word_count
    for word_index, position in sentence.first_subtokens.items():
        tags[word_index] = TAGS[tag_ids[position]]
    return valid_tags(tags, drop_stray_tags=drop_stray_tags)


def random_batches(
    lengths: Sequence[int], batch_size: int, batching: Batching, generator: torch.Generator
) -> list[list[int]]:
    """Return shuffled batches of sentence indices; each sentence is in one batch.

    With `random`, a batch has sentences of any length. With `by_length`, a batch has sentences of
    similar length, and therefore little padding: shuffled sentences are sorted by length within
    chunks of `_BATCHES_PER_CHUNK` batches, and then the batches are shuffled.

    Args:
        lengths: Number of subtokens of each sentence.
        batch_size: Number of sentences per batch.
        batching: Which sentences form a batch.
        generator: Source of the random order.
    """
    shuffled = torch.randperm(len(lengths), generator=generator).tolist()
    if batching == "random":
        return _divide(shuffled, batch_size)
    batches: list[list[int]] = []
    for chunk in _divide(shuffled, _BATCHES_PER_CHUNK * batch_size):
        longest_first = sorted(chunk, key=lambda index: -lengths[index])
        batches += _divide(longest_first, batch_size)
    batch_order = torch.randperm(len(batches), generator=generator).tolist()
    return [batches[index] for index in batch_order]


def _divide(indices: list[int], size: int) -> list[list[int]]:
    """Divide indices into lists of `size` indices; the last list may be shorter."""
    return [indices[start : start + size] for start in range(0, len(indices), size)]


_SENTENCES_AT_ONCE = 64
"""Number of sentences that are tagged in one batch."""


@dataclass(frozen=True)
class Tagger:
    """An encoder that assigns a BIO tag to each word of a sentence.

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
        drop_stray_tags: bool = False,
    ) -> list[list[Tag]]:
        """Return a BIO tag for each word of each sentence, where a sentence is a list of words.

        Stray I tags are replaced by B or, with `drop_stray_tags`, by O (see `valid_tags`).
        """
        encoded = encode(self.tokenizer, sentences, max_length=self.max_length)
        longest_first = sorted(range(len(encoded)), key=lambda index: -len(encoded[index]))
        tags_by_sentence: list[list[Tag]] = [[] for _ in encoded]
        self.model.eval()
        with torch.inference_mode():
            for indices in _divide(longest_first, _SENTENCES_AT_ONCE):
                batch = collate(
                    [encoded[index] for index in indices],
                    tags=None,
                    pad_id=self.tokenizer.pad_token_id,
                    device=self.device,
                )
                predicted_ids = self.model(**batch).logits.argmax(dim=-1).tolist()
                for index, tag_ids in zip(indices, predicted_ids, strict=True):
                    tags_by_sentence[index] = decode(
                        encoded[index], tag_ids, drop_stray_tags=drop_stray_tags
                    )
        return tags_by_sentence

    def save(self, folder: str | Path) -> None:
        """Write the weights and the tokenizer to a folder, which is created only when complete."""
        with atomic_folder(folder) as temporary_folder:
            self.model.save_pretrained(temporary_folder)
            self.tokenizer.save_pretrained(temporary_folder)


def load_tagger(
    entry: EncoderEntry,
    *,
    weights: str | Path | None = None,
    seed: int = 0,
    device: str | None = None,
) -> Tagger:
    """Load an encoder with a tagging head.

    Args:
        entry: Entry of the encoder.
        weights: Folder of a fine-tuned tagger; None for the published encoder with a new tagging
            head.
        seed: Seed for initializing a new tagging head.
        device: Device of the model; None for the GPU if there is one, and for the CPU otherwise.

    Raises:
        UserError: The checkpoint is incomplete; the hint states how to fix the checkpoint.
    """
    # Transformers would warn of the missing tagging head, which is expected.
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


MAX_NORM = 1.0
"""Maximum norm of the gradient, the default of transformers' Trainer."""


class TaggingEpoch(Frozen):
    """Results of one training epoch.

    Attributes:
        loss: Mean training loss of the batches.
        dev_span_f1: F1 of complete idioms on the dev sentences at the end of the epoch, as a
            fraction.
    """

    loss: float
    dev_span_f1: float


class TaggingLog(Frozen):
    """Log of the training of a tagger.

    Attributes:
        settings: Hyperparameters and form.
        seed: Seed of the training.
        train_sentences: Number of training sentences.
        dev_sentences: Number of dev sentences.
        epochs: Results of the epochs, in order.
        kept_epoch: Number (from 1) of the epoch whose weights are kept.
    """

    settings: TaggerTraining
    seed: int
    train_sentences: int
    dev_sentences: int
    epochs: list[TaggingEpoch]
    kept_epoch: int


def make_deterministic(threads: int) -> None:
    """Make torch deterministic; call this function before any computation.

    Args:
        threads: Number of CPU threads. This number affects the order of sums, so results are
            identical only with the same number.
    """
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(True)


@dataclass(frozen=True)
class TaggingData:
    """Training sentences, and dev sentences for scoring each epoch."""

    train: Sequence[TaggedSentence]
    dev: Sequence[TaggedSentence]


def fine_tune(
    tagger: Tagger,
    data: TaggingData,
    settings: TaggerTraining,
    *,
    seed: int,
    identity: str,
    checkpoint: str | Path,
    after_epoch: Callable[[int], None] = lambda epoch: None,
) -> TaggingLog:
    """Fine-tune a tagger in place, keep the weights of the last epoch, and return the log.

    Interrupted training resumes from its checkpoint, and ends with the same weights as
    uninterrupted training. A checkpoint of a different training is ignored and overwritten.

    Args:
        tagger: Tagger to train.
        data: Training sentences, and dev sentences for scoring each epoch.
        settings: Hyperparameters and form.
        seed: Seed of the sentence order and of dropout.
        identity: Text that identifies the model. It distinguishes trainings with identical data,
            settings and seed.
        checkpoint: File to which the state of the training is written after each epoch. The caller
            deletes this file after saving the weights.
        after_epoch: Function that is called with the epoch number after each checkpoint.
    """
    training = _Training(tagger, data.train, settings, seed)
    key = _fingerprint(data, settings, seed=seed, identity=identity)
    # This restores the state of an interrupted training.
    state = ResumableTraining(checkpoint, key, tagger.model, training.optimizer, training.schedule)
    finished_epochs = len(state.epochs)
    if finished_epochs:
        print(f"resuming training after epoch {finished_epochs}", file=sys.stderr, flush=True)
    for epoch in range(finished_epochs + 1, settings.epochs + 1):
        loss = training.train_epoch(epoch)
        dev_span_f1 = _score_on_dev(tagger, data.dev, settings)
        state.finish_epoch({"loss": loss, "dev_span_f1": dev_span_f1}, keep=True)
        after_epoch(epoch)
    return TaggingLog(
        settings=settings,
        seed=seed,
        train_sentences=len(data.train),
        dev_sentences=len(data.dev),
        epochs=[TaggingEpoch.model_validate(epoch) for epoch in state.epochs],
        kept_epoch=state.kept_epoch,
    )


def _score_on_dev(tagger: Tagger, dev: Sequence[TaggedSentence], settings: TaggerTraining) -> float:
    """Return a tagger's F1 of complete idioms on the dev sentences, as a fraction."""
    predicted_tags = tagger.tag(
        [sentence.tokens for sentence in dev], drop_stray_tags=settings.details.drop_stray_tags
    )
    return span_scores([sentence.tags for sentence in dev], predicted_tags).f1


class _Training:
    """Training data, optimizer and learning-rate schedule of a tagger."""

    def __init__(
        self,
        tagger: Tagger,
        sentences: Sequence[TaggedSentence],
        settings: TaggerTraining,
        seed: int,
    ) -> None:
        self._tagger = tagger
        self._sentences = sentences
        self._settings = settings
        self._details = settings.details
        self._seed = seed
        if self._details.dropout is not None:
            _set_dropout(tagger.model, self._details.dropout)
        self._uses_float16 = self._details.float16 and tagger.device.type == "cuda"
        if self._details.float16 and not self._uses_float16:
            print("float32 is used: float16 requires a GPU", file=sys.stderr, flush=True)
        self._encoded = encode(
            tagger.tokenizer,
            [sentence.tokens for sentence in sentences],
            max_length=tagger.max_length,
        )
        self.optimizer = torch.optim.AdamW(
            tagger.model.parameters(),
            lr=settings.learning_rate,
            weight_decay=self._details.weight_decay,
            fused=True,
        )
        batches_per_epoch = len(self._batches(epoch=1))
        steps_per_epoch = math.ceil(batches_per_epoch / self._details.gradient_accumulation)
        total_steps = settings.epochs * steps_per_epoch
        # The learning rate decreases linearly to zero.
        self.schedule = torch.optim.lr_scheduler.LambdaLR(
            self.optimizer, lambda step: max(0.0, 1 - step / total_steps)
        )

    def train_epoch(self, epoch: int) -> float:
        """Train on each sentence once, and return the mean loss of the batches."""
        batches = self._batches(epoch)
        tagger = self._tagger
        torch.manual_seed(_epoch_seed(self._seed, epoch))  # dropout
        tagger.model.train()
        total_loss = torch.zeros((), device=tagger.device, dtype=torch.float64)
        # With a new scaler in each epoch, training can resume without the scaler's state.
        scaler = torch.amp.GradScaler(tagger.device.type, enabled=self._uses_float16)
        batches_per_step = self._details.gradient_accumulation
        title = f"epoch {epoch} of {self._settings.epochs}"
        for number, indices in enumerate(Progress(batches, desc=title, unit="batches"), start=1):
            loss = self._batch_loss(indices)
            scaler.scale(loss / batches_per_step).backward()  # type: ignore[no-untyped-call]
            total_loss += loss.detach()
            is_last_batch = number == len(batches)
            if is_last_batch or number % batches_per_step == 0:
                self._step(scaler)
        return float(total_loss) / len(batches)

    def _batch_loss(self, indices: Sequence[int]) -> torch.Tensor:
        """Return the loss of a batch, given the indices of its sentences."""
        tagger = self._tagger
        batch = collate(
            [self._encoded[index] for index in indices],
            [self._sentences[index].tags for index in indices],
            pad_id=tagger.tokenizer.pad_token_id,
            device=tagger.device,
        )
        with torch.autocast(tagger.device.type, dtype=torch.float16, enabled=self._uses_float16):
            loss: torch.Tensor = tagger.model(**batch).loss
        return loss

    def _step(self, scaler: torch.amp.GradScaler) -> None:
        """Update the weights and the learning rate, and reset the gradients."""
        scaler.unscale_(self.optimizer)
        torch.nn.utils.clip_grad_norm_(self._tagger.model.parameters(), MAX_NORM)
        scaler.step(self.optimizer)
        scaler.update()
        self.schedule.step()
        self.optimizer.zero_grad()

    def _batches(self, epoch: int) -> list[list[int]]:
        """Return the batches of an epoch as lists of sentence indices."""
        generator = torch.Generator().manual_seed(_epoch_seed(self._seed, epoch))
        lengths = [len(sentence) for sentence in self._encoded]
        settings = self._settings
        return random_batches(lengths, settings.batch_size, settings.batching, generator)


def _set_dropout(model: torch.nn.Module, probability: float) -> None:
    """Set the probability of all dropout modules of a model.

    Attention layers also read their dropout probability from such a module.
    """
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = probability


def _epoch_seed(seed: int, epoch: int) -> int:
    """Return the seed of an epoch, so that training can resume without the generator's state.

    `seed` is the seed of the training.
    """
    digest = hashlib.sha256(f"{seed}/{epoch}".encode()).digest()
    # A 48-bit number is within the range of torch's seeds.
    return int.from_bytes(digest[:6], "big")


def _fingerprint(data: TaggingData, settings: TaggerTraining, *, seed: int, identity: str) -> str:
    """Return the SHA-256 of the data, settings, seed and code that determine the trained weights.

    `identity` is the text that identifies the model.
    """
    content = {
        "identity": identity,
        "code": code_digest(__name__),
        "seed": seed,
        "settings": settings.model_dump(),
        "train": [[sentence.tokens, sentence.tags] for sentence in data.train],
        "dev": [[sentence.tokens, sentence.tags] for sentence in data.dev],
    }
    return hashlib.sha256(canonical_json(content).encode()).hexdigest()
