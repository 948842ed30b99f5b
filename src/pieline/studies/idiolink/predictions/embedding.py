"""Embedding texts: the model's own sentence embedding and, by late chunking, that of a span."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from torch.nn.utils.rnn import pad_sequence

from pieline.core.errors import UserError
from pieline.core.progress import Progress
from pieline.models.embedder import EmbedderEntry
from pieline.studies.idiolink.predictions.query_texts import QueryText, document_text, query_text
from pieline.studies.idiolink.predictions.vectors import Shards, Vectors
from pieline.studies.idiolink.records import Document, Query

_SHARD_ROWS = 1024
_OUT_OF_MEMORY = ("out of memory", "not enough memory", "can't allocate memory", "alloc_failed")


def is_out_of_memory(error: RuntimeError) -> bool:
    """Whether torch failed for want of memory, on a GPU or a CPU."""
    return any(words in str(error).lower() for words in _OUT_OF_MEMORY)


@dataclass(frozen=True)
class QueryVectors:
    """Embeddings of the same inputs, each of shape (inputs, dimensions)."""

    sentence: Vectors
    span: Vectors


@dataclass(frozen=True)
class Encoded:
    """A batch on the model's device, each of shape (texts, dimensions), in the model's precision.

    `span` is None where none was asked for.
    """

    sentence: torch.Tensor
    span: torch.Tensor | None


class TokenizedTexts:
    """Texts as a model's tokenizer splits them, each once, to be padded batch by batch."""

    def __init__(self, model: SentenceTransformer, texts: Sequence[QueryText]) -> None:
        self.model = model
        self._texts = texts
        encoded = model.tokenizer(
            [text.text for text in texts],
            truncation=True,
            max_length=model.max_seq_length,
            return_offsets_mapping=True,
        )
        self._offsets = [torch.tensor(rows) for rows in encoded.pop("offset_mapping")]
        self._inputs = {name: [torch.tensor(row) for row in rows] for name, rows in encoded.items()}

    @property
    def by_length(self) -> list[int]:
        """All indices, the longest text first: little padding, and memory known early."""
        lengths = [len(offsets) for offsets in self._offsets]
        return sorted(range(len(lengths)), key=lambda index: (-lengths[index], index))

    def check_spans(self) -> None:
        """Raise a `UserError` for a span of which no token is left within the model's limit."""
        for text, offsets in zip(self._texts, self._offsets, strict=True):
            if not span_mask(offsets.unsqueeze(0), [text.span]).any():
                raise UserError(
                    f"the span lies beyond the model's {self.model.max_seq_length} tokens",
                    where=text.text[:60],
                    hint="raise max_length in the model's entry",
                )

    def encode(self, indices: Sequence[int], *, spans: bool) -> Encoded:
        """One forward pass over some texts; gradients flow unless the caller turns them off."""
        backbone, pooling, *heads = self.model
        offsets = self._padded([self._offsets[index] for index in indices], 0)
        features = backbone(
            {
                name: self._padded([rows[index] for index in indices], self._fill(name)).to(
                    self.model.device
                )
                for name, rows in self._inputs.items()
            }
        )
        texts = [self._texts[index] for index in indices]
        if any(text.instruction_end for text in texts):
            before = instruction_mask(offsets, [text.instruction_end for text in texts])
            mask = features["attention_mask"]
            features["attention_mask"] = mask * ~before.to(mask.device)
        tokens, dtype = features["token_embeddings"], self.model.dtype

        def embedding(pooled: torch.Tensor) -> torch.Tensor:
            # What stands behind the pooling makes the space that documents are compared in.
            behind = {"sentence_embedding": pooled.to(dtype)}
            for head in heads:
                behind = head(behind)
            return behind["sentence_embedding"]

        span = None
        if spans:
            in_span = span_mask(offsets, [text.span for text in texts]).to(self.model.device)
            span = embedding(pool_span(tokens, in_span))
        return Encoded(embedding(pooling(features)["sentence_embedding"]), span)

    def _padded(self, rows: list[torch.Tensor], fill: int) -> torch.Tensor:
        side = self.model.tokenizer.padding_side
        return pad_sequence(rows, batch_first=True, padding_value=fill, padding_side=side)

    def _fill(self, name: str) -> int:
        tokenizer = self.model.tokenizer
        fills = {"input_ids": tokenizer.pad_token_id, "token_type_ids": tokenizer.pad_token_type_id}
        return int(fills.get(name, 0))


def embed_documents(
    model: SentenceTransformer,
    texts: Sequence[str | QueryText],
    *,
    batch_size: int,
    progress: bool = True,
    shards: Shards | None = None,
) -> Vectors:
    """The model's sentence embedding of each text in order, shape (texts, dimensions).

    Args:
        model: as `load_encoder` gives it.
        texts: what the model reads; a plain text counts wholly in its pooling.
        batch_size: texts a forward pass; halved where memory runs out.
        progress: whether to show a progress bar.
        shards: keep finished parts, so that a killed job goes on where it stopped.
    """
    if not texts:
        return np.empty((0, 0), dtype=np.float32)
    whole = [QueryText(text) if isinstance(text, str) else text for text in texts]
    (vectors,) = _in_batches(
        TokenizedTexts(model, whole),
        spans=False,
        batch_size=batch_size,
        progress=progress,
        shards=shards,
    )
    return vectors


def embed_queries(
    model: SentenceTransformer,
    queries: Sequence[QueryText],
    *,
    batch_size: int,
    progress: bool = True,
    shards: Shards | None = None,
) -> QueryVectors:
    """Sentence and span embedding of each query from one forward pass.

    The span embedding is late chunking (section 4.1): the mean of the last-layer vectors of the
    tokens that overlap the span, special tokens excluded. It passes the modules behind the model's
    pooling (a dense layer, normalisation), as the documents that it is compared with do. The
    arguments are those of `embed_documents`.

    Raises:
        UserError: no token of a span is left, because the text is longer than the model's limit.
    """
    if not queries:
        raise UserError("no queries to embed", hint="check the dataset")
    tokenized = TokenizedTexts(model, queries)
    tokenized.check_spans()
    return QueryVectors(
        *_in_batches(tokenized, spans=True, batch_size=batch_size, progress=progress, shards=shards)
    )


def embed_query_modes(
    model: SentenceTransformer,
    queries: Sequence[Query],
    entry: EmbedderEntry,
    *,
    shards: Shards | None = None,
) -> dict[str, Vectors]:
    """Embeddings of the queries in the four query modes (section 4.2), by the mode's name.

    A sentence mode and its span mode share one forward pass where they read the same texts.
    """

    def embed(name: str, texts: Sequence[QueryText]) -> QueryVectors:
        part = shards.part(f"{name}queries") if shards else None
        return embed_queries(model, texts, batch_size=entry.batch_size, shards=part)

    vectors = {}
    for prefix, instructed in (("", False), ("instruction_", True)):
        whole, of_span = (
            [query_text(query, entry, instructed=instructed, by_span=by_span) for query in queries]
            for by_span in (False, True)
        )
        found = embed(prefix, whole)
        vectors[f"{prefix}sentence"] = found.sentence
        other = found if of_span == whole else embed(f"{prefix}span_", of_span)
        vectors[f"{prefix}span"] = other.span
    return vectors


def embed_index(
    model: SentenceTransformer,
    documents: Sequence[Document],
    entry: EmbedderEntry,
    *,
    progress: bool = True,
    shards: Shards | None = None,
) -> Vectors:
    """Embeddings of an index's documents: whole sentences without instruction (section 4.1)."""
    return embed_documents(
        model,
        [document_text(document, entry) for document in documents],
        batch_size=entry.batch_size,
        progress=progress,
        shards=shards,
    )


def use_threads(threads: int) -> None:
    """Have torch use exactly so many threads; more than the job was given slow everything down."""
    torch.set_num_threads(threads)


def use_deterministic_kernels() -> None:
    """Have a GPU add in a fixed order; to be called before anything runs on it."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True, warn_only=True)


def span_mask(offsets: torch.Tensor, spans: Sequence[tuple[int, int]]) -> torch.Tensor:
    """Which tokens overlap the span.

    Args:
        offsets: first and past-the-last character of each token, shape (texts, tokens, 2); special
            and padding tokens have (0, 0).
        spans: first and past-the-last character of the span in each text.

    Returns:
        Booleans of shape (texts, tokens).
    """
    start, end = torch.tensor(spans).T.unsqueeze(-1)
    overlaps = (offsets[..., 0] < end) & (offsets[..., 1] > start)
    mask: torch.Tensor = overlaps & (offsets[..., 1] > offsets[..., 0])
    return mask


def instruction_mask(offsets: torch.Tensor, ends: Sequence[int]) -> torch.Tensor:
    """Which tokens stand before the text proper: the instruction and the special tokens around it.

    Args:
        offsets: as for `span_mask`.
        ends: characters before this one are the instruction, per text; 0 for none.

    Returns:
        Booleans of shape (texts, tokens); all false for a text without instruction.

    Raises:
        UserError: nothing but the instruction is left within the model's limit.
    """
    end = torch.tensor(ends).unsqueeze(-1)
    real = offsets[..., 1] > offsets[..., 0]
    # A token may begin with the space before its word: what reaches into the text is of the text.
    proper = real & (offsets[..., 1] > end)
    if not proper.any(dim=1).all():
        raise UserError(
            "the instruction alone fills the model's input",
            hint="raise max_length in the model's entry",
        )
    first = proper.int().argmax(dim=1, keepdim=True)
    before: torch.Tensor = (torch.arange(offsets.shape[1]) < first) & (end > 0)
    return before


def pool_span(token_embeddings: torch.Tensor, in_span: torch.Tensor) -> torch.Tensor:
    """Mean of the token vectors in the span, in float32: shape (texts, dimensions)."""
    weights = in_span.float().unsqueeze(-1)
    pooled: torch.Tensor = (token_embeddings * weights).sum(dim=1) / weights.sum(dim=1)
    return pooled


def _in_batches(
    tokenized: TokenizedTexts,
    *,
    spans: bool,
    batch_size: int,
    progress: bool,
    shards: Shards | None,
) -> tuple[Vectors, ...]:
    """Sentence and, if wanted, span embeddings, in the order of the texts."""

    def embed(indices: Sequence[int]) -> tuple[Vectors, ...]:
        # Gradients are switched off for each thread by itself.
        with torch.inference_mode():
            encoded = tokenized.encode(indices, spans=spans)
            found = (encoded.sentence, encoded.span)
            return tuple(part.float().cpu().numpy() for part in found if part is not None)

    order, at_once = tokenized.by_length, _batches_at_once(tokenized.model)
    # Shards hold whole batches, so that they change no batch and thereby no number.
    rows = max(1, _SHARD_ROWS // batch_size) * batch_size
    ordered: tuple[Vectors, ...] = ()
    size = batch_size
    with (
        ThreadPoolExecutor(at_once, initializer=torch.set_num_threads, initargs=(1,)) as pool,
        Progress(total=len(order), desc="embedding", unit="texts", shown=progress) as bar,
    ):
        for number, start in enumerate(range(0, len(order), rows)):
            indices = order[start : start + rows]
            part = shards.load(number) if shards else None
            if part is None:
                batches, size = _halving_batches(
                    indices, embed, size, bar, pool=pool, at_once=at_once
                )
                part = tuple(np.concatenate(vectors) for vectors in zip(*batches, strict=True))
                if shards:
                    shards.save(number, part)
            else:
                bar.update(len(indices))
            if not all(np.isfinite(vectors).all() for vectors in part):
                raise UserError(
                    "the model gives vectors that are not numbers",
                    where="embedding",
                    hint="give its entry dtype: bfloat16 or float32",
                )
            # Filled as they come: of a million texts no second copy fits.
            ordered = ordered or tuple(
                np.empty((len(order), *vectors.shape[1:]), vectors.dtype) for vectors in part
            )
            for whole, vectors in zip(ordered, part, strict=True):
                whole[indices] = vectors
    return ordered


def _batches_at_once(model: SentenceTransformer) -> int:
    """On a CPU as many as threads, each batch on one.

    That is faster than all threads on one batch, and no number depends on how many there are.
    """
    return torch.get_num_threads() if model.device.type == "cpu" else 1


def _halving_batches(
    indices: Sequence[int],
    embed: Callable[[Sequence[int]], tuple[Vectors, ...]],
    size: int,
    bar: Progress,
    *,
    pool: Executor,
    at_once: int,
) -> tuple[list[tuple[Vectors, ...]], int]:
    """Results of consecutive batches, and the batch size that memory allowed in the end.

    Raises:
        UserError: memory does not even hold a batch of one text.
    """
    results: list[tuple[Vectors, ...]] = []
    # Threads that wait for each other after every batch idle; one alone does not wait.
    together = 8 * at_once if at_once > 1 else 1
    start = 0
    while start < len(indices):
        used = size
        group = indices[start : start + together * size]
        batches = [group[first : first + size] for first in range(0, len(group), size)]
        try:
            results += list(pool.map(embed, batches))
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            if size == 1:
                raise UserError(
                    "memory does not hold a single text",
                    where="embedding",
                    hint="use a larger machine, a smaller dtype or a smaller max_length",
                ) from None
            size //= 2
            bar.write(f"out of memory: going on with batches of {size}")
            continue
        finally:
            # Freed blocks of the larger batch would else stay reserved.
            if size < used and torch.cuda.is_available():
                torch.cuda.empty_cache()
        start += len(group)
        bar.update(len(group))
    return results, size
