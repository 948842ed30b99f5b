"""Fine-tune an encoder to tag idioms (ID10M-JAM, appendix D); resumable after every epoch.

Hyperparameters not in appendix D are the defaults of transformers' Trainer: fused AdamW without
weight decay, a learning rate that decreases linearly to zero without warm-up, gradients clipped to
norm 1, shuffled batches including a smaller last one, and the weights of the last epoch (the
released code keeps the epoch that is best on the test set). `form: released` uses the other details
of the released code (`settings.FORMS`).
"""

import hashlib
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from pieline.core.code import code_digest
from pieline.core.files import canonical_json
from pieline.core.progress import Progress
from pieline.core.records import Frozen
from pieline.models.resumable import ResumableTraining
from pieline.studies.jam.metrics.tokens import span_scores
from pieline.studies.jam.raw.id10m import TaggedSentence
from pieline.studies.jam.training.settings import TaggerTraining
from pieline.studies.jam.training.subwords import collate, encode, random_batches
from pieline.studies.jam.training.tagger import Tagger

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


def fine_tune(
    tagger: Tagger,
    train: Sequence[TaggedSentence],
    dev: Sequence[TaggedSentence],
    settings: TaggerTraining,
    *,
    seed: int,
    identity: str,
    checkpoint: str | Path,
    after_epoch: Callable[[int], None] = lambda epoch: None,
) -> TaggingLog:
    """Fine-tune a tagger in place for all epochs, and return the log.

    After each epoch, the training state is written to `checkpoint`. If there is a checkpoint of the
    same training run, training resumes from it and ends with the same weights as an uninterrupted
    run. A checkpoint of a different training run is ignored and overwritten. The caller deletes the
    file after saving the weights.

    `seed` determines sentence order
    and dropout; `identity` identifies the model, to distinguish training runs with identical data,
    settings and seed. `after_epoch` is called with the epoch number after writing each checkpoint.
    """
    training = _Training(tagger, train, settings, seed)
    key = _fingerprint(train, dev, settings, seed=seed, identity=identity)
    state = ResumableTraining(checkpoint, key, tagger.model, training.optimizer, training.schedule)
    if state.epochs:
        print(f"resuming training after epoch {len(state.epochs)}", file=sys.stderr, flush=True)
    for epoch in range(len(state.epochs) + 1, settings.epochs + 1):
        loss = training.one_epoch(epoch)
        tags = tagger.tag(
            [item.tokens for item in dev],
            drop_unbegun=settings.details.drop_unbegun,
        )
        score = span_scores([item.tags for item in dev], tags).f1
        state.finish_epoch({"loss": loss, "dev_span_f1": score}, keep=True)
        after_epoch(epoch)
    state.load_kept()
    return TaggingLog(
        settings=settings,
        seed=seed,
        train_sentences=len(train),
        dev_sentences=len(dev),
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
        # A new scaler in each epoch, so that resumed training needs no state of it.
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
        lengths, settings = [len(item) for item in self._data], self._settings
        return random_batches(lengths, settings.batch_size, settings.batching, generator)


def _set_dropout(model: torch.nn.Module, probability: float) -> None:
    """Set the probability of all dropout, which attention also reads from these modules."""
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = probability


def _epoch_seed(seed: int, epoch: int) -> int:
    # Derive a seed per epoch so that resuming needs no generator state.
    return int.from_bytes(hashlib.sha256(f"{seed}/{epoch}".encode()).digest()[:6], "big")


def _fingerprint(
    train: Sequence[TaggedSentence],
    dev: Sequence[TaggedSentence],
    settings: TaggerTraining,
    *,
    seed: int,
    identity: str,
) -> str:
    """Return a digest of everything that affects a training run."""
    content = {
        "identity": identity,
        "code": code_digest(__name__),
        "seed": seed,
        "settings": settings.model_dump(),
        "train": [[item.tokens, item.tags] for item in train],
        "dev": [[item.tokens, item.tags] for item in dev],
    }
    return hashlib.sha256(canonical_json(content).encode()).hexdigest()
