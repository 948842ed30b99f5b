"""Encoders that tag idioms: their input, the model and its training (ID10M-JAM, appendix D)."""

import hashlib
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


@dataclass(frozen=True)
class EncodedSentence:
    """Subtokens of one sentence.

    Attributes:
        input_ids: Token ids, including special tokens.
        firsts: Position of the first subtoken by word index; words that are truncated or have no
            subtoken are missing.
        words: Number of words.
    """

    input_ids: tuple[int, ...]
    firsts: dict[int, int]
    words: int

    def __len__(self) -> int:
        return len(self.input_ids)


def encode(
    tokenizer: Any, sentences: Sequence[Sequence[str]], *, max_length: int
) -> list[EncodedSentence]:
    """Encode sentences, each given as a list of words; surrounding spaces of words are ignored.

    Input beyond `max_length` subtokens is truncated.
    """
    if not sentences:
        return []
    encoding = tokenizer(
        [[word.strip() for word in words] for words in sentences],
        is_split_into_words=True,
        truncation=True,
        max_length=max_length,
    )
    encoded = []
    for number, words in enumerate(sentences):
        firsts: dict[int, int] = {}
        for place, word in enumerate(encoding.word_ids(number)):
            if word is not None:
                firsts.setdefault(word, place)
        encoded.append(EncodedSentence(tuple(encoding["input_ids"][number]), firsts, len(words)))
    return encoded


def collate(
    sentences: Sequence[EncodedSentence],
    tags: Sequence[Sequence[Tag]] | None,
    *,
    pad_id: int,
    device: torch.device | str,
) -> dict[str, torch.Tensor]:
    """Build a batch, padded to its longest sentence; `tags` is None for prediction.

    Returns:
        `input_ids`, `attention_mask` and, unless `tags` is None, `labels`, each of shape (batch,
        longest).
    """
    longest = max(map(len, sentences))
    paddings = [longest - len(sentence) for sentence in sentences]
    # Build lists first, because setting tensor elements one by one is about 1,000 times slower.
    input_ids, attention_mask = [], []
    for sentence, padding in zip(sentences, paddings, strict=True):
        input_ids.append(list(sentence.input_ids) + [pad_id] * padding)
        attention_mask.append([1] * len(sentence) + [0] * padding)
    batch = {"input_ids": input_ids, "attention_mask": attention_mask}
    if tags is not None:
        batch["labels"] = [[IGNORED] * longest for _ in sentences]
        for labels, sentence, row in zip(batch["labels"], sentences, tags, strict=True):
            for word, place in sentence.firsts.items():
                labels[place] = TAG_IDS[row[word]]
    return {name: torch.tensor(rows).to(device) for name, rows in batch.items()}


def decode(
    sentence: EncodedSentence, tag_ids: Sequence[int], *, drop_stray_tags: bool = False
) -> list[Tag]:
    """Return valid BIO tags of a sentence's words, given the tag id of each subtoken.

    Words without subtokens get O. For `drop_stray_tags`, see `valid_tags`.
    """
    tags: list[Tag] = [OUTSIDE] * sentence.words
    for word, place in sentence.firsts.items():
        tags[word] = TAGS[tag_ids[place]]
    return valid_tags(tags, drop_stray_tags=drop_stray_tags)


def random_batches(
    lengths: Sequence[int], batch_size: int, batching: Batching, generator: torch.Generator
) -> list[list[int]]:
    """Return shuffled batches of sentence indices that contain each sentence once.

    `random` shuffles the sentences. `by_length` also sorts the shuffled sentences by length within
    chunks of 50 batches, and then shuffles the batches. These batches need little padding, but
    contain sentences of similar length.
    """
    order = torch.randperm(len(lengths), generator=generator).tolist()
    if batching == "random":
        return _cut(order, batch_size)
    batches: list[list[int]] = []
    for chunk in _cut(order, 50 * batch_size):
        longest_first = sorted(chunk, key=lambda number: -lengths[number])
        batches += _cut(longest_first, batch_size)
    return [batches[number] for number in torch.randperm(len(batches), generator=generator)]


def _cut(numbers: list[int], size: int) -> list[list[int]]:
    return [numbers[start : start + size] for start in range(0, len(numbers), size)]


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
        drop_stray_tags: bool = False,
    ) -> list[list[Tag]]:
        """Return a valid BIO tag for each word of each sentence.

        For `drop_stray_tags`, see `valid_tags`.
        """
        encoded = encode(self.tokenizer, sentences, max_length=self.max_length)
        longest_first = sorted(range(len(encoded)), key=lambda number: -len(encoded[number]))
        tags: list[list[Tag]] = [[] for _ in encoded]
        self.model.eval()
        with torch.inference_mode():
            for start in range(0, len(encoded), _SENTENCES_AT_ONCE):
                selected = longest_first[start : start + _SENTENCES_AT_ONCE]
                batch = collate(
                    [encoded[number] for number in selected],
                    None,
                    pad_id=self.tokenizer.pad_token_id,
                    device=self.device,
                )
                predicted = self.model(**batch).logits.argmax(dim=-1).tolist()
                for number, tag_ids in zip(selected, predicted, strict=True):
                    tags[number] = decode(encoded[number], tag_ids, drop_stray_tags=drop_stray_tags)
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


MAX_NORM = 1.0
"""Maximum norm of the gradient, the default of transformers' Trainer."""


class TaggingEpoch(Frozen):
    """Mean training loss of an epoch, and F1 of complete idioms (fraction) on dev at its end."""

    loss: float
    dev_span_f1: float


class TaggingLog(Frozen):
    """Log of a training run: its epochs, and the number (from 1) of the epoch that is kept."""

    settings: TaggerTraining
    seed: int
    train_sentences: int
    dev_sentences: int
    epochs: list[TaggingEpoch]
    kept_epoch: int


def make_deterministic(threads: int) -> None:
    """Make torch deterministic; must be called before any computation.

    Args:
        threads: Number of CPU threads. Results are identical only with the same number, because it
            affects the order of sums.
    """
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(True)


@dataclass(frozen=True)
class TaggingData:
    """Training sentences, and the dev sentences that are scored after each epoch."""

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
    """Fine-tune a tagger in place for all epochs, and return the log.

    Training resumes from a checkpoint of the same training, and ends with the same weights as
    uninterrupted training. A checkpoint of a different training is ignored and overwritten.

    Args:
        tagger: Tagger to train.
        data: Training sentences, and dev sentences to score each epoch.
        settings: Hyperparameters and form.
        seed: Seed of the sentence order and of dropout.
        identity: Text that identifies the model; it distinguishes trainings with identical data,
            settings and seed.
        checkpoint: File to which the training state is written after each epoch; the caller deletes
            it after saving the weights.
        after_epoch: Function that is called with the epoch number after each checkpoint.
    """
    training = _Training(tagger, data.train, settings, seed)
    key = _fingerprint(data, settings, seed=seed, identity=identity)
    state = ResumableTraining(checkpoint, key, tagger.model, training.optimizer, training.schedule)
    if state.epochs:
        print(f"resuming training after epoch {len(state.epochs)}", file=sys.stderr, flush=True)
    for epoch in range(len(state.epochs) + 1, settings.epochs + 1):
        loss = training.one_epoch(epoch)
        tags = tagger.tag(
            [item.tokens for item in data.dev],
            drop_stray_tags=settings.details.drop_stray_tags,
        )
        score = span_scores([item.tags for item in data.dev], tags).f1
        state.finish_epoch({"loss": loss, "dev_span_f1": score}, keep=True)
        after_epoch(epoch)
    state.load_kept()
    return TaggingLog(
        settings=settings,
        seed=seed,
        train_sentences=len(data.train),
        dev_sentences=len(data.dev),
        epochs=[TaggingEpoch.model_validate(epoch) for epoch in state.epochs],
        kept_epoch=state.kept_epoch,
    )


class _Training:
    """Training data, optimizer and learning-rate schedule of a tagger."""

    def __init__(
        self,
        tagger: Tagger,
        sentences: Sequence[TaggedSentence],
        settings: TaggerTraining,
        seed: int,
    ) -> None:
        self._tagger, self._sentences, self._settings = tagger, sentences, settings
        self._seed = seed
        self._details = settings.details
        if self._details.dropout is not None:
            _set_dropout(tagger.model, self._details.dropout)
        self._float16 = self._details.float16 and tagger.device.type == "cuda"
        if self._details.float16 and not self._float16:
            print("float32 is used: float16 requires a GPU", file=sys.stderr, flush=True)
        self._data = encode(
            tagger.tokenizer, [item.tokens for item in sentences], max_length=tagger.max_length
        )
        self.optimizer = torch.optim.AdamW(
            tagger.model.parameters(),
            lr=settings.learning_rate,
            weight_decay=self._details.weight_decay,
            fused=True,
        )
        steps = settings.epochs * -(-len(self._batches(1)) // self._details.gradient_accumulation)
        self.schedule = torch.optim.lr_scheduler.LambdaLR(
            self.optimizer, lambda step: max(0.0, 1 - step / steps)
        )

    def one_epoch(self, epoch: int) -> float:
        """Train on each sentence once and return the mean batch loss."""
        batches = self._batches(epoch)
        tagger = self._tagger
        torch.manual_seed(_epoch_seed(self._seed, epoch))  # dropout
        tagger.model.train()
        total = torch.zeros((), device=tagger.device, dtype=torch.float64)
        # With a new scaler in each epoch, training can resume without the scaler's state.
        scaler = torch.amp.GradScaler(tagger.device.type, enabled=self._float16)
        per_step = self._details.gradient_accumulation
        title = f"epoch {epoch} of {self._settings.epochs}"
        for number, chosen in enumerate(Progress(batches, desc=title, unit="batches"), start=1):
            batch = collate(
                [self._data[number] for number in chosen],
                [self._sentences[number].tags for number in chosen],
                pad_id=tagger.tokenizer.pad_token_id,
                device=tagger.device,
            )
            with torch.autocast(tagger.device.type, dtype=torch.float16, enabled=self._float16):
                loss = tagger.model(**batch).loss
            scaler.scale(loss / per_step).backward()
            total += loss.detach()
            if number % per_step and number < len(batches):
                continue
            scaler.unscale_(self.optimizer)
            torch.nn.utils.clip_grad_norm_(tagger.model.parameters(), MAX_NORM)
            scaler.step(self.optimizer)
            scaler.update()
            self.schedule.step()
            self.optimizer.zero_grad()
        return float(total) / len(batches)

    def _batches(self, epoch: int) -> list[list[int]]:
        generator = torch.Generator().manual_seed(_epoch_seed(self._seed, epoch))
        lengths = [len(item) for item in self._data]
        settings = self._settings
        return random_batches(lengths, settings.batch_size, settings.batching, generator)


def _set_dropout(model: torch.nn.Module, probability: float) -> None:
    """Set the probability of all dropout modules; attention also uses their probability."""
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = probability


def _epoch_seed(seed: int, epoch: int) -> int:
    # With a seed per epoch, training can resume without the generator's state.
    return int.from_bytes(hashlib.sha256(f"{seed}/{epoch}".encode()).digest()[:6], "big")


def _fingerprint(data: TaggingData, settings: TaggerTraining, *, seed: int, identity: str) -> str:
    """Return a digest of everything that affects a training run."""
    content = {
        "identity": identity,
        "code": code_digest(__name__),
        "seed": seed,
        "settings": settings.model_dump(),
        "train": [[item.tokens, item.tags] for item in data.train],
        "dev": [[item.tokens, item.tags] for item in data.dev],
    }
    return hashlib.sha256(canonical_json(content).encode()).hexdigest()
