"""Fine-tune an embedder contrastively (IdioLink, section 4.3 and appendix F)."""

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
"""Temperature of InfoNCE in the authors' code."""
_VALIDATION_DEPTH = 100
"""Number of documents ranked per validation query; nDCG@10 needs only ten."""
_TEXTS_AT_ONCE = 64
"""Maximum number of texts per forward pass, until memory runs out."""


class Epoch(Record):
    """Mean training loss of an epoch, and validation nDCG@10 (fraction) after the epoch."""

    loss: float
    validation_ndcg_at_10: float


class TrainingLog(Record):
    """The completed epochs of a training run, and the number of the best epoch.

    Attributes:
        best_epoch: Number (from 1) of the epoch whose weights were kept.
    """

    epochs: list[Epoch]
    best_epoch: int


@dataclass(frozen=True)
class TrainingData:
    """Data for one training run.

    Attributes:
        tuples: Training tuples, with ids of texts in `train`.
        train: The training split.
        validation: The validation split.
    """

    tuples: Sequence[TrainingTuple]
    train: IdiolinkDataset
    validation: IdiolinkDataset


def paper_loss(
    queries: torch.Tensor, positives: torch.Tensor, negatives: torch.Tensor
) -> torch.Tensor:
    """Return the mean loss of equation 2 over a batch.

    Equation 2 has no temperature and no in-batch negatives, and its denominator does not contain
    the positive document. The vectors need not be normalized.

    Args:
        queries: Embeddings of the queries, shape (batch, dimensions).
        positives: Embeddings of the positives, shape (batch, dimensions).
        negatives: Embeddings of the negatives, shape (batch, negatives, dimensions).
    """
    positive_scores = functional.cosine_similarity(queries, positives, dim=-1)
    negative_scores = functional.cosine_similarity(queries.unsqueeze(1), negatives, dim=-1)
    return (negative_scores.logsumexp(dim=1) - positive_scores).mean()


def released_loss(
    queries: torch.Tensor, positives: torch.Tensor, negatives: torch.Tensor
) -> torch.Tensor:
    """Return the mean InfoNCE loss over a batch, as in the authors' code.

    This loss has a temperature of 0.05. The positives of the batch's other queries serve as further
    negatives. The arguments are the same as in `paper_loss`.
    """
    queries = functional.normalize(queries, dim=-1)
    scores_in_batch = queries @ functional.normalize(positives, dim=-1).T
    # For each query in the batch (b), the dot products over dimensions (d) with its negatives (n).
    negative_scores = torch.einsum("bd,bnd->bn", queries, functional.normalize(negatives, dim=-1))
    logits = torch.cat([scores_in_batch, negative_scores], dim=1) / RELEASED_TEMPERATURE
    # The positive of each query has the query's own place in the batch.
    own_places = torch.arange(len(queries), device=logits.device)
    return functional.cross_entropy(logits, own_places)


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
    arguments, number of threads and device, training yields bit-identical weights. If the
    checkpoint exists, training resumes after the last completed epoch, with identical results.

    Args:
        model: Model in float32, as loaded by `load_encoder`.
        entry: Entry of the model in models.yaml. On a GPU, forward passes use bfloat16 if the entry
            has a half-precision dtype.
        data: Training and validation data.
        settings: Hyperparameters.
        ndcg_at_10: Function that returns the mean nDCG@10 of a validation run.
        checkpoint: Path for saving the state after each epoch. The caller deletes the file.
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
    remaining_epochs = range(len(scores), settings.max_epochs)
    steps = training.steps_per_epoch * len(remaining_epochs)
    with Progress(total=steps, desc="training", unit="steps", shown=progress) as bar:
        training.report_to(bar)
        if scores:
            training.print_message(f"resuming after epoch {len(scores)}")
        for epoch in remaining_epochs:
            if _epochs_since_improvement(scores, settings.min_delta) >= settings.patience:
                break
            loss = training.run_epoch(epoch)
            scores.append(ndcg_at_10(training.rank_validation_split()))
            bar.set_postfix(epoch=epoch + 1, loss=f"{loss:.4f}", ndcg=f"{max(scores):.4f}")
            state.memory = training.memory
            # Of epochs with the same score, the earliest is kept.
            is_first_best = scores.index(max(scores)) == epoch
            state.finish_epoch(
                {"loss": loss, "validation_ndcg_at_10": scores[-1]}, keep=is_first_best
            )
    state.load_kept()
    model.eval()
    completed_epochs = [Epoch.model_validate(epoch) for epoch in state.epochs]
    return TrainingLog(epochs=completed_epochs, best_epoch=state.kept_epoch)


class _Training:
    """A training run: the model, the optimizer and the data.

    Attributes:
        instructed: Whether queries contain the instruction.
        by_span: Whether queries are embedded by span.
        print_message: Function that prints a message for the user.
        advance: Function that reports a completed step.
        recomputes_activations: Whether the backward pass recomputes activations, to save memory.
        texts_at_once: Maximum number of texts per forward pass.
    """

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
        self.print_message: Callable[[str], None] = partial(print, file=sys.stderr)
        self.advance: Callable[[], object] = lambda: None
        self.recomputes_activations = False
        self.texts_at_once = _TEXTS_AT_ONCE
        self._queries = {query.id: query for query in data.train.queries}
        self._documents = {document.id: document for document in data.train.documents}
        self._validation_queries = self._query_texts(data.validation.queries)
        self.steps_per_epoch = len(self._batches(np.arange(len(data.tuples))))
        if self.steps_per_epoch == 0:
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
        self.print_message = partial(bar.write, file=sys.stderr)
        self.advance = bar.update

    @property
    def memory(self) -> tuple[bool, int]:
        """The values of `recomputes_activations` and `texts_at_once`.

        A resumed training run must use the same values as before, because they affect dropout.
        """
        return self.recomputes_activations, self.texts_at_once

    @memory.setter
    def memory(self, memory: tuple[bool, int]) -> None:
        self.recomputes_activations, self.texts_at_once = memory

    @property
    def key(self) -> str:
        """Digest of everything that determines the training, to identify matching checkpoints."""
        content = [self.settings, self.entry, self.data, code_digest(__name__)]
        return hashlib.sha256(repr(content).encode()).hexdigest()

    def run_epoch(self, epoch: int) -> float:
        """Train for an epoch and return the mean loss over tuples.

        The generators are reseeded so that an epoch does not depend on previous random draws.
        """
        seed_sequence = np.random.SeedSequence([self.settings.seed, epoch])
        torch.manual_seed(int(seed_sequence.generate_state(1)[0]))
        generator = np.random.default_rng([self.settings.seed, epoch])
        order = generator.permutation(len(self.data.tuples))
        self.model.train()
        total_loss, tuple_count = 0.0, 0
        for indices in self._batches(order):
            batch = [self.data.tuples[index] for index in indices]
            total_loss += self._step(batch) * len(batch)
            tuple_count += len(batch)
            self.advance()
        return total_loss / tuple_count

    def _batches(self, order: npt.NDArray[np.int_]) -> list[npt.NDArray[np.int_]]:
        """Divide tuple indices into batches; `drop_last` drops an incomplete last batch."""
        size = self.settings.batch_size
        batches = [order[start : start + size] for start in range(0, len(order), size)]
        if self.settings.drop_last:
            return [batch for batch in batches if len(batch) == size]
        return batches

    def rank_validation_split(self) -> RankedRun:
        """Rank the validation documents for each validation query, with the current weights."""
        self.model.eval()
        query_vectors = embed_queries(
            self.model,
            self._validation_queries,
            batch_size=self.entry.batch_size,
            progress=False,
        )
        documents = self.data.validation.documents
        document_vectors = embed_index(self.model, documents, self.entry, progress=False)
        vectors_in_mode = query_vectors.span if self.by_span else query_vectors.sentence
        return rank(
            [query.id for query in self.data.validation.queries],
            cosine_scores(vectors_in_mode, document_vectors),
            [document.id for document in documents],
            top_k=_VALIDATION_DEPTH,
        )

    def _step(self, batch: Sequence[TrainingTuple]) -> float:
        """Update the weights once and return the loss.

        If memory runs out, the step is repeated with the same random draws and less memory.

        Raises:
            UserError: Memory is insufficient for a single text, the loss is not finite, or a span
                is truncated entirely.
        """
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
            self._reduce_memory_use()
            torch.set_rng_state(cpu_state)
            torch.cuda.set_rng_state_all(gpu_states)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.settings.max_norm)
        self.optimizer.step()
        self.schedule.step()
        return float(loss.item())

    def _reduce_memory_use(self) -> None:
        """Reduce the memory use of the following steps.

        The first call enables the recomputation of activations, which does not change any number.
        Each further call halves the texts per pass, which changes the random draws of dropout.

        Raises:
            UserError: Memory is insufficient for a single text.
        """
        if not self.recomputes_activations:
            self.recomputes_activations = True
            note = "recomputing activations instead of storing them"
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
        self.print_message(f"out of memory: {note}")

    def _loss(self, batch: Sequence[TrainingTuple]) -> torch.Tensor:
        """Return the loss of a batch.

        Raises:
            UserError: The loss is not finite, or a span is truncated entirely.
        """
        queries = [self._queries[example.query] for example in batch]
        documents = []
        for example in batch:
            documents += [
                document_text(self._documents[document_id], self.entry)
                for document_id in (example.positive, *example.hard, *example.soft)
            ]
        has_half_precision = self.entry.dtype != "float32"
        with torch.autocast(
            self.model.device.type,
            dtype=torch.bfloat16,  # float16 would need a scaled loss
            enabled=has_half_precision and self.model.device.type == "cuda",
        ):
            query_vectors = self._encode(self._query_texts(queries), by_span=self.by_span)
            document_vectors = self._encode(documents, by_span=False)
        # Shape (batch, documents per tuple, dimensions); the positive is the first document.
        vectors_by_tuple = document_vectors.float().unflatten(0, (len(batch), -1))  # type: ignore[no-untyped-call]
        positives, negatives = vectors_by_tuple[:, 0], vectors_by_tuple[:, 1:]
        loss = LOSSES[self.settings.loss](query_vectors.float(), positives, negatives)
        if not torch.isfinite(loss):
            raise UserError(
                f"the loss is {loss.item()}",
                where=f"{self.entry.checkpoint}, {self.settings.train_mode}",
                hint="reduce the learning rate, or train in float32",
            )
        return loss

    def _encode(self, texts: Sequence[QueryText], *, by_span: bool) -> torch.Tensor:
        """Return embeddings with gradients, in the order of `texts`.

        Texts of similar length share a forward pass.
        """
        tokenized = TokenizedTexts(self.model, texts)
        if by_span:
            tokenized.check_spans()
        order = tokenized.by_length
        vectors = []
        for start in range(0, len(order), self.texts_at_once):
            indices = order[start : start + self.texts_at_once]
            if self.recomputes_activations:
                vectors.append(
                    recomputed(_encode_batch, tokenized, indices, by_span, use_reentrant=False)
                )
            else:
                vectors.append(_encode_batch(tokenized, indices, by_span))
        input_order = torch.tensor(order).argsort()
        return torch.cat(vectors)[input_order]

    def _query_texts(self, queries: Sequence[Query]) -> list[QueryText]:
        """Return the text of each query in the training mode, as the model reads it."""
        return [
            query_text(query, self.entry, instructed=self.instructed, by_span=self.by_span)
            for query in queries
        ]


def _encode_batch(tokenized: TokenizedTexts, indices: Sequence[int], by_span: bool) -> torch.Tensor:
    """Return the embeddings of the texts at `indices`, by span or by sentence."""
    encoded = tokenized.encode(indices, spans=by_span)
    return encoded.sentence if encoded.span is None else encoded.span


def _epochs_since_improvement(scores: Sequence[float], min_delta: float) -> int:
    """Return the number of epochs since the score last improved by more than `min_delta`."""
    reference_score = -1.0  # below any nDCG@10
    improved_epoch = 0
    for epoch, score in enumerate(scores, start=1):
        if score > reference_score + min_delta:
            reference_score = score
            improved_epoch = epoch
    return len(scores) - improved_epoch
