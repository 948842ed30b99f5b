"""Contrastive fine-tuning of an embedder (IdioLink, section 4.3 and appendix F)."""

import hashlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from sentence_transformers import SentenceTransformer
from torch.nn import functional
from torch.utils.checkpoint import checkpoint as recomputed
from transformers import get_linear_schedule_with_warmup

from pieline.core.code import code_digest
from pieline.core.errors import UserError
from pieline.core.progress import Progress
from pieline.core.records import Record
from pieline.models.embedder import ConfiguredEmbedder
from pieline.models.resumable import ResumableTraining
from pieline.studies.idiolink.datasets.dataset import IdiolinkDataset
from pieline.studies.idiolink.datasets.tuples import TrainingTuple
from pieline.studies.idiolink.predictions.embedding import (
    TokenizedTexts,
    embed_index,
    embed_queries,
    follow_prompts,
    is_out_of_memory,
)
from pieline.studies.idiolink.predictions.query_texts import QueryText, document_text, query_text
from pieline.studies.idiolink.predictions.rankings import RankedRun, cosine_scores, rank
from pieline.studies.idiolink.records import Query
from pieline.studies.idiolink.training.settings import TrainingSettings

RELEASED_TEMPERATURE = 0.05
_VALIDATION_DEPTH = 100
_TEXTS_AT_ONCE = 64


class Epoch(Record):
    """Mean training loss of an epoch, and validation nDCG@10 (fraction) after the epoch."""

    loss: float
    validation_ndcg_at_10: float


class TrainingLog(Record):
    """The completed epochs, and the number (from 1) of the epoch whose weights were kept."""

    epochs: list[Epoch]
    best_epoch: int


@dataclass(frozen=True)
class TrainingData:
    """Training tuples, their split, and the validation split."""

    tuples: Sequence[TrainingTuple]
    train: IdiolinkDataset
    validation: IdiolinkDataset


def paper_loss(
    queries: torch.Tensor, positives: torch.Tensor, negatives: torch.Tensor
) -> torch.Tensor:
    """Compute equation 2: no temperature, no in-batch negatives, no positive in the denominator.

    The vectors need not be normalized.

    Args:
        queries: Embeddings of the queries, shape (batch, dimensions).
        positives: Embeddings of the positives, shape (batch, dimensions).
        negatives: Embeddings of the negatives, shape (batch, negatives, dimensions).

    Returns:
        The mean loss over the batch.
    """
    positive = functional.cosine_similarity(queries, positives, dim=-1)
    negative = functional.cosine_similarity(queries.unsqueeze(1), negatives, dim=-1)
    return (negative.logsumexp(dim=1) - positive).mean()


def released_loss(
    queries: torch.Tensor, positives: torch.Tensor, negatives: torch.Tensor
) -> torch.Tensor:
    """Compute InfoNCE as in the authors' code: temperature 0.05, with in-batch negatives.

    Arguments and return value are the same as in `paper_loss`.
    """
    queries = functional.normalize(queries, dim=-1)
    in_batch = queries @ functional.normalize(positives, dim=-1).T
    own = torch.einsum("bd,bnd->bn", queries, functional.normalize(negatives, dim=-1))
    logits = torch.cat([in_batch, own], dim=1) / RELEASED_TEMPERATURE
    return functional.cross_entropy(logits, torch.arange(len(queries), device=logits.device))


LOSSES: dict[str, Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "paper": paper_loss,
    "released": released_loss,
}


def fine_tune(
    model: SentenceTransformer,
    entry: ConfiguredEmbedder,
    data: TrainingData,
    settings: TrainingSettings,
    *,
    ndcg_at_10: Callable[[RankedRun], float],
    checkpoint: str | Path | None = None,
    progress: bool = True,
) -> TrainingLog:
    """Fine-tune all weights of a model in place, and keep the weights of the best epoch.

    Queries are embedded in the training mode, and documents always as sentences. With the same
    arguments, number of threads and device, the weights are bit-identical. If the checkpoint
    exists, training resumes after the last completed epoch, with identical results.

    Args:
        model: Model in float32, as loaded by `load_encoder`.
        entry: Entry in models.yaml; with a half-precision dtype and a GPU, forward passes are
            autocast to bfloat16.
        data: Training and validation data.
        settings: Hyperparameters.
        ndcg_at_10: Function that returns the mean nDCG@10 of a validation run.
        checkpoint: Path for saving the state after each epoch; the caller deletes the file.
        progress: Whether to show a progress bar.

    Raises:
        UserError: There are too few tuples for a batch, a span is truncated entirely, the loss is
            not finite, or memory is insufficient for a single text.
    """
    training = _Training(model, entry, data, settings)
    state = ResumableTraining(
        checkpoint, training.key, model, training.optimizer, training.schedule
    )
    if state.memory:
        training.memory = state.memory
    scores = [epoch["validation_ndcg_at_10"] for epoch in state.epochs]
    remaining = range(len(scores), settings.max_epochs)
    steps = training.steps_per_epoch * len(remaining)
    with Progress(total=steps, desc="training", unit="steps", shown=progress) as bar:
        training.report_to(bar)
        if scores:
            training.say(f"resuming after epoch {len(scores)}")
        for epoch in remaining:
            if _stale_epochs(scores, settings.min_delta) >= settings.patience:
                break
            loss = training.run_epoch(epoch)
            scores.append(ndcg_at_10(training.validate()))
            bar.set_postfix(epoch=epoch + 1, loss=f"{loss:.4f}", ndcg=f"{max(scores):.4f}")
            state.memory = training.memory
            state.finish_epoch(
                {"loss": loss, "validation_ndcg_at_10": scores[-1]},
                keep=scores.index(max(scores)) == epoch,
            )
    state.load_kept()
    model.eval()
    epochs_run = [Epoch.model_validate(epoch) for epoch in state.epochs]
    return TrainingLog(epochs=epochs_run, best_epoch=state.kept_epoch)


class _Training:
    """State of a training run: the model, its optimizer and the data."""

    def __init__(
        self,
        model: SentenceTransformer,
        entry: ConfiguredEmbedder,
        data: TrainingData,
        settings: TrainingSettings,
    ) -> None:
        self.model = model
        self.entry = follow_prompts(entry, model)
        self.data = data
        self.settings = settings
        self.instructed = settings.train_mode.startswith("instruction")
        self.by_span = settings.train_mode.endswith("span")
        self.say: Callable[[str], None] = partial(print, file=sys.stderr)
        self.advance: Callable[[], object] = lambda: None
        self.recomputes = False
        self.texts_at_once = _TEXTS_AT_ONCE
        self._queries = {query.id: query for query in data.train.queries}
        self._documents = {document.id: document for document in data.train.documents}
        self._validation_queries = self._texts(data.validation.queries)
        self.steps_per_epoch = len(self._batches(np.arange(len(data.tuples))))
        if not self.steps_per_epoch:
            raise UserError(
                f"{len(data.tuples)} tuples are fewer than the batch size {settings.batch_size}",
                where="idiolink.finetuning",
                hint="reduce batch_size, or set form: paper",
            )
        self.optimizer = torch.optim.AdamW(
            model.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay
        )
        self.schedule = get_linear_schedule_with_warmup(  # type: ignore[no-untyped-call]
            self.optimizer, settings.warmup_steps, self.steps_per_epoch * settings.max_epochs
        )

    def report_to(self, bar: Progress) -> None:
        """Report steps and messages to a progress bar."""
        self.say = partial(bar.write, file=sys.stderr)
        self.advance = bar.update

    @property
    def memory(self) -> tuple[bool, int]:
        """How a pass fits in memory: whether activations are recomputed, and texts at once.

        A resumed training must use the same values, because they affect dropout.
        """
        return self.recomputes, self.texts_at_once

    @memory.setter
    def memory(self, memory: tuple[bool, int]) -> None:
        self.recomputes, self.texts_at_once = memory

    @property
    def key(self) -> str:
        """Digest of everything that determines the training, to identify matching checkpoints."""
        content = [self.settings, self.entry, self.data, code_digest(__name__)]
        return hashlib.sha256(repr(content).encode()).hexdigest()

    def run_epoch(self, epoch: int) -> float:
        """Run an epoch and return the mean loss.

        The generators are reseeded so that an epoch does not depend on previous random draws.
        """
        torch.manual_seed(
            int(np.random.SeedSequence([self.settings.seed, epoch]).generate_state(1)[0])
        )
        generator = np.random.default_rng([self.settings.seed, epoch])
        order = generator.permutation(len(self.data.tuples))
        self.model.train()
        losses, count = 0.0, 0
        for indices in self._batches(order):
            batch = [self.data.tuples[index] for index in indices]
            losses += self._step(batch) * len(batch)
            count += len(batch)
            self.advance()
        return losses / count

    def _batches(self, order: npt.NDArray[np.int_]) -> list[npt.NDArray[np.int_]]:
        size = self.settings.batch_size
        batches = [order[start : start + size] for start in range(0, len(order), size)]
        full = [batch for batch in batches if len(batch) == size]
        return full if self.settings.drop_last else batches

    def validate(self) -> RankedRun:
        """Rank the validation split with the current weights, in the training mode."""
        self.model.eval()
        vectors = embed_queries(
            self.model,
            self._validation_queries,
            batch_size=self.entry.batch_size,
            progress=False,
        )
        documents = self.data.validation.documents
        return rank(
            [query.id for query in self.data.validation.queries],
            cosine_scores(
                vectors.span if self.by_span else vectors.sentence,
                embed_index(self.model, documents, self.entry, progress=False),
            ),
            [document.id for document in documents],
            top_k=_VALIDATION_DEPTH,
        )

    def _step(self, batch: Sequence[TrainingTuple]) -> float:
        """Update the weights once, reducing memory use if memory runs out, and return the loss."""
        while True:
            cpu_state, gpu_states = torch.get_rng_state(), torch.cuda.get_rng_state_all()
            try:
                loss = self._loss(batch)
                self.optimizer.zero_grad(set_to_none=True)
                loss.backward()  # type: ignore[no-untyped-call]
                break
            except RuntimeError as error:
                if not is_out_of_memory(error):
                    raise
            self._spare_memory()
            torch.set_rng_state(cpu_state)
            torch.cuda.set_rng_state_all(gpu_states)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.settings.max_norm)
        self.optimizer.step()
        self.schedule.step()
        return float(loss.item())

    def _spare_memory(self) -> None:
        """Enable recomputation of activations or, if it is enabled, halve the texts per pass.

        Recomputation does not change any number; fewer texts per pass change the random draws of
        dropout.

        Raises:
            UserError: Memory is insufficient for a single text.
        """
        if not self.recomputes:
            self.recomputes, note = True, "recomputing activations instead of storing them"
        elif self.texts_at_once > 1:
            self.texts_at_once //= 2
            note = f"continuing with {self.texts_at_once} texts at once, which changes dropout"
        else:
            raise UserError(
                "out of memory with a single text",
                where=f"{self.entry.checkpoint}, {self.settings.train_mode}",
                hint="use a larger machine or a smaller `max_length`",
            )
        self.optimizer.zero_grad(set_to_none=True)
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        self.say(f"out of memory: {note}")

    def _loss(self, batch: Sequence[TrainingTuple]) -> torch.Tensor:
        """Return the loss of a batch, which must be finite."""
        queries = [self._queries[row.query] for row in batch]
        documents = []
        for row in batch:
            names = (row.positive, *row.hard, *row.soft)
            documents += [document_text(self._documents[name], self.entry) for name in names]
        with torch.autocast(
            self.model.device.type,
            dtype=torch.bfloat16,  # float16 would need a scaled loss
            enabled=self.entry.dtype != "float32" and self.model.device.type == "cuda",
        ):
            query_vectors = self._encode(self._texts(queries), by_span=self.by_span)
            vectors = self._encode(documents, by_span=False)
        grouped = vectors.float().unflatten(0, (len(batch), -1))  # type: ignore[no-untyped-call]
        loss = LOSSES[self.settings.loss](query_vectors.float(), grouped[:, 0], grouped[:, 1:])
        if not torch.isfinite(loss):
            raise UserError(
                f"the loss is {loss.item()}",
                where=f"{self.entry.checkpoint}, {self.settings.train_mode}",
                hint="reduce the learning rate, or train in float32",
            )
        return loss

    def _encode(self, texts: Sequence[QueryText], *, by_span: bool) -> torch.Tensor:
        """Return embeddings with gradients, in input order; texts are batched by length."""
        tokenized = TokenizedTexts(self.model, texts)
        if by_span:
            tokenized.check_spans()
        order = tokenized.by_length
        parts = []
        for start in range(0, len(order), self.texts_at_once):
            indices = order[start : start + self.texts_at_once]
            if self.recomputes:
                parts.append(
                    recomputed(_encode_batch, tokenized, indices, by_span, use_reentrant=False)
                )
            else:
                parts.append(_encode_batch(tokenized, indices, by_span))
        return torch.cat(parts)[torch.tensor(order).argsort()]

    def _texts(self, queries: Sequence[Query]) -> list[QueryText]:
        return [
            query_text(query, self.entry, instructed=self.instructed, by_span=self.by_span)
            for query in queries
        ]


def _encode_batch(tokenized: TokenizedTexts, indices: Sequence[int], by_span: bool) -> torch.Tensor:
    """Return the span embeddings of some texts, or their sentence embeddings."""
    encoded = tokenized.encode(indices, spans=by_span)
    return encoded.sentence if encoded.span is None else encoded.span


def _stale_epochs(scores: Sequence[float], min_delta: float) -> int:
    """Return the number of epochs since the last improvement by more than `min_delta`."""
    reference, last = -1.0, 0
    for number, score in enumerate(scores, start=1):
        if score > reference + min_delta:
            reference, last = score, number
    return len(scores) - last
