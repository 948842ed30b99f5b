"""Embeddings of sentences, and of spans by late chunking."""

import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from torch.nn.utils.rnn import pad_sequence

from pieline.core.errors import UserError, pluralize
from pieline.core.progress import Progress
from pieline.models.embedder import ConfiguredEmbedder
from pieline.studies.idiolink.predictions.query_texts import QueryText, document_text, query_text
from pieline.studies.idiolink.predictions.vectors import Shards, Vectors
from pieline.studies.idiolink.records import Document, Query

_SHARD_ROWS = 1024
"""Approximate number of texts per shard."""
_OUT_OF_MEMORY = ("out of memory", "not enough memory", "can't allocate memory", "alloc_failed")
"""Words in torch's error messages when memory runs out."""


def is_out_of_memory(error: RuntimeError) -> bool:
    """Return whether an error means that torch ran out of memory, on a GPU or a CPU."""
    return any(words in str(error).lower() for words in _OUT_OF_MEMORY)


@dataclass(frozen=True)
class QueryVectors:
    """Sentence and span embeddings of queries, each of shape (queries, dimensions)."""

    sentence: Vectors
    span: Vectors


@dataclass(frozen=True)
class Encoded:
    """Embeddings of a batch, each of shape (texts, dimensions).

    Both tensors are on the model's device, in the model's precision. `span` is None if span
    embeddings were not requested.
    """

    sentence: torch.Tensor
    span: torch.Tensor | None


class TokenizedTexts:
    """Texts that are tokenized once, and padded and embedded batch by batch."""

    def __init__(self, model: SentenceTransformer, texts: Sequence[QueryText]) -> None:
        self.model = model
        self._texts = texts
        encoded = model.tokenizer(
            [text.text for text in texts],
            truncation=True,
            max_length=model.max_seq_length,
            return_offsets_mapping=True,
        )
        # The tokens after the length limit are in `overflowing`.
        self._truncated = sum(bool(encoding.overflowing) for encoding in encoded.encodings or ())
        self._offsets = [torch.tensor(offsets) for offsets in encoded.pop("offset_mapping")]
        self._inputs = {name: [torch.tensor(row) for row in rows] for name, rows in encoded.items()}

    @property
    def by_length(self) -> list[int]:
        """Indices of the texts, longest first.

        Batches in this order need little padding, and the first batches need the most memory.
        """
        lengths = [len(offsets) for offsets in self._offsets]
        return sorted(range(len(lengths)), key=lambda index: (-lengths[index], index))

    def report_truncated(self) -> None:
        """Print to stderr how many texts are truncated, if any are."""
        if self._truncated:
            print(
                f"{self._truncated} of {pluralize(len(self._texts), 'text')} exceed `max_length`"
                f" ({self.model.max_seq_length} tokens) and are truncated",
                file=sys.stderr,
            )

    def check_spans(self) -> None:
        """Raise a `UserError` if a span is entirely beyond the model's length limit."""
        for text, offsets in zip(self._texts, self._offsets, strict=True):
            if not span_mask(offsets.unsqueeze(0), [text.span]).any():
                raise UserError(
                    f"the span is beyond the model's limit of {self.model.max_seq_length} tokens",
                    where=text.text[:60],
                    hint="increase `max_length` in the model's entry",
                )

    def encode(self, indices: Sequence[int], *, spans: bool) -> Encoded:
        """Embed the texts at `indices` in one forward pass.

        Gradients are computed, unless the caller disables them.

        Args:
            indices: Indices of the texts.
            spans: Whether to compute span embeddings, too.
        """
        backbone, pooling = self.model[0], self.model[1]
        texts = [self._texts[index] for index in indices]
        offsets = self._pad([self._offsets[index] for index in indices], padding_value=0)
        features = backbone(self._padded_inputs(indices))
        features["attention_mask"] = self._pooled_tokens(features["attention_mask"], texts, offsets)
        span_embeddings = None
        if spans:
            in_span = span_mask(offsets, [text.span for text in texts]).to(self.model.device)
            span_means = pool_span(features["token_embeddings"], in_span)
            span_embeddings = self._apply_last_modules(span_means)
        pooled = pooling(features)["sentence_embedding"]
        return Encoded(self._apply_last_modules(pooled), span_embeddings)

    def _padded_inputs(self, indices: Sequence[int]) -> dict[str, torch.Tensor]:
        """Return the model's inputs for a batch, by name, on the model's device."""
        tokenizer = self.model.tokenizer
        padding_values = {
            "input_ids": tokenizer.pad_token_id,
            "token_type_ids": tokenizer.pad_token_type_id,
        }
        inputs = {}
        for name, rows in self._inputs.items():
            batch_rows = [rows[index] for index in indices]
            padded = self._pad(batch_rows, padding_value=int(padding_values.get(name, 0)))
            inputs[name] = padded.to(self.model.device)
        return inputs

    def _pooled_tokens(
        self, attention_mask: torch.Tensor, texts: Sequence[QueryText], offsets: torch.Tensor
    ) -> torch.Tensor:
        """Return the attention mask, with 0 for instruction tokens that the model does not pool."""
        pooling = self.model[1]
        pools_prompts = getattr(pooling, "include_prompt", True)
        unpooled_ends = [text.instruction_end if pools_prompts else text.head_end for text in texts]
        if not any(unpooled_ends):
            return attention_mask
        in_instruction = instruction_mask(offsets, unpooled_ends).to(attention_mask.device)
        return attention_mask * ~in_instruction

    def _apply_last_modules(self, pooled: torch.Tensor) -> torch.Tensor:
        """Return embeddings after the modules that follow the pooling, such as a dense layer."""
        features = {"sentence_embedding": pooled.to(self.model.dtype)}
        # Modules 0 and 1 are the transformer and the pooling.
        for module_index in range(2, len(self.model)):
            features = self.model[module_index](features)
        return features["sentence_embedding"][..., : self.model.truncate_dim]

    def _pad(self, rows: list[torch.Tensor], *, padding_value: int) -> torch.Tensor:
        side = self.model.tokenizer.padding_side
        return pad_sequence(rows, batch_first=True, padding_value=padding_value, padding_side=side)


def embed_documents(
    model: SentenceTransformer,
    texts: Sequence[str | QueryText],
    *,
    batch_size: int,
    progress: bool = True,
    shards: Shards | None = None,
) -> Vectors:
    """Return the sentence embedding of each text, of shape (texts, dimensions).

    Args:
        model: Model returned by `load_encoder`.
        texts: Inputs of the model. For an input given as a string, all tokens are pooled.
        batch_size: Number of texts per forward pass; halved when memory runs out.
        progress: Whether to show a progress bar.
        shards: Storage of finished parts, from which an interrupted job resumes; None stores no
            parts.
    """
    inputs = [QueryText(text) if isinstance(text, str) else text for text in texts]
    (vectors,) = _embed_all(
        TokenizedTexts(model, inputs),
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
    """Return the sentence and span embeddings of queries, from one forward pass per batch.

    A span embedding uses late chunking (section 4.1): the mean of the last-layer vectors of
    the tokens that overlap the span, without special tokens. Like a document embedding, the mean
    passes through the modules after the pooling (dense layer, normalization). For the arguments,
    see `embed_documents`.

    Raises:
        UserError: A span is entirely beyond the model's length limit.
    """
    tokenized = TokenizedTexts(model, queries)
    tokenized.check_spans()
    return QueryVectors(
        *_embed_all(tokenized, spans=True, batch_size=batch_size, progress=progress, shards=shards)
    )


def embed_query_modes(
    model: SentenceTransformer,
    queries: Sequence[Query],
    entry: ConfiguredEmbedder,
    *,
    shards: Shards | None = None,
) -> dict[str, Vectors]:
    """Return the embeddings of the queries in the four query modes (section 4.2), by mode.

    A sentence mode and its span mode share the forward passes if the model's inputs are equal.
    """
    entry = follow_prompts(entry, model)
    size = entry.batch_size
    vectors = {}
    for instructed in (False, True):
        prefix = "instruction_" if instructed else ""
        texts = [query_text(query, entry, instructed=instructed) for query in queries]
        query_shards = shards.part(f"{prefix}queries") if shards else None
        query_vectors = embed_queries(model, texts, batch_size=size, shards=query_shards)
        vectors[f"{prefix}sentence"] = query_vectors.sentence
        # The authors' code of some models uses other texts for spans.
        span_texts = [
            query_text(query, entry, instructed=instructed, by_span=True) for query in queries
        ]
        if span_texts == texts:
            vectors[f"{prefix}span"] = query_vectors.span
            continue
        span_shards = shards.part(f"{prefix}span_queries") if shards else None
        span_vectors = embed_queries(model, span_texts, batch_size=size, shards=span_shards)
        vectors[f"{prefix}span"] = span_vectors.span
    return vectors


def embed_index(
    model: SentenceTransformer,
    documents: Sequence[Document],
    entry: ConfiguredEmbedder,
    *,
    progress: bool = True,
    shards: Shards | None = None,
) -> Vectors:
    """Return the embeddings of documents, of shape (documents, dimensions).

    Documents have no instructions (section 4.1). For the arguments, see `embed_documents`.
    """
    entry = follow_prompts(entry, model)
    return embed_documents(
        model,
        [document_text(document, entry) for document in documents],
        batch_size=entry.batch_size,
        progress=progress,
        shards=shards,
    )


def follow_prompts(entry: ConfiguredEmbedder, model: SentenceTransformer) -> ConfiguredEmbedder:
    """Return an entry whose empty prefixes are replaced by the prompts in the checkpoint's files.

    Like `query_prefix`, a checkpoint's prompt for queries applies only without an instruction.
    """
    prefixes = {}
    if not entry.query_prefix and model.prompts.get("query"):
        prefixes["query_prefix"] = model.prompts["query"]
    if not entry.passage_prefix and model.prompts.get("document"):
        prefixes["passage_prefix"] = model.prompts["document"]
    return entry.model_copy(update=prefixes) if prefixes else entry


def use_deterministic_kernels() -> None:
    """Use deterministic GPU kernels where available; call this before any GPU computation."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True, warn_only=True)


def span_mask(offsets: torch.Tensor, spans: Sequence[tuple[int, int]]) -> torch.Tensor:
    """Return a mask of the tokens that overlap each text's span.

    Args:
        offsets: Start and exclusive end of each token in characters, shape (texts, tokens, 2);
            special and padding tokens have (0, 0).
        spans: Start and exclusive end of each text's span, in characters.

    Returns:
        Booleans of shape (texts, tokens).
    """
    # Both have the shape (texts, 1).
    span_start, span_end = torch.tensor(spans).T.unsqueeze(-1)
    token_start, token_end = offsets[..., 0], offsets[..., 1]
    overlaps = (token_start < span_end) & (token_end > span_start)
    is_text = token_end > token_start
    mask: torch.Tensor = overlaps & is_text
    return mask


def instruction_mask(offsets: torch.Tensor, ends: Sequence[int]) -> torch.Tensor:
    """Return a mask of the tokens before the query: special tokens and the instruction.

    Args:
        offsets: Start and exclusive end of each token in characters (see `span_mask`).
        ends: Exclusive end of each text's instruction in characters; 0 if there is none.

    Returns:
        Booleans of shape (texts, tokens); all false for a text without an instruction.

    Raises:
        UserError: An instruction leaves no room for the query.
    """
    instruction_end = torch.tensor(ends).unsqueeze(-1)
    token_start, token_end = offsets[..., 0], offsets[..., 1]
    is_text = token_end > token_start
    # A token may start with the space before its word, so only its end is compared.
    in_query = is_text & (token_end > instruction_end)
    if not in_query.any(dim=1).all():
        raise UserError(
            "the instruction fills the model's input",
            hint="increase `max_length` in the model's entry",
        )
    first_query_token = in_query.int().argmax(dim=1, keepdim=True)
    is_before_query = torch.arange(offsets.shape[1]) < first_query_token
    mask: torch.Tensor = is_before_query & (instruction_end > 0)
    return mask


def pool_span(token_embeddings: torch.Tensor, in_span: torch.Tensor) -> torch.Tensor:
    """Return the mean vector of each span's tokens, of shape (texts, dimensions), in float32.

    Args:
        token_embeddings: Vectors of all tokens, of shape (texts, tokens, dimensions).
        in_span: Mask returned by `span_mask`.
    """
    weights = in_span.float().unsqueeze(-1)
    pooled: torch.Tensor = (token_embeddings * weights).sum(dim=1) / weights.sum(dim=1)
    return pooled


def _embed_all(
    tokenized: TokenizedTexts,
    *,
    spans: bool,
    batch_size: int,
    progress: bool,
    shards: Shards | None,
) -> tuple[Vectors, ...]:
    """Embed all texts, in batches of texts of similar length.

    Finished shards are reused, and new shards are saved.

    Returns:
        The sentence embeddings and, if `spans`, the span embeddings, in the order of the texts.
    """
    embed = partial(_embed_batch, tokenized, spans)
    if progress:
        tokenized.report_truncated()
    order = tokenized.by_length
    threads = _parallel_batches(tokenized.model)
    # Shards contain whole batches, so that sharding does not change any number.
    batches_per_shard = max(1, _SHARD_ROWS // batch_size)
    shard_rows = batches_per_shard * batch_size
    outputs: tuple[Vectors, ...] = ()
    with (
        ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool,
        Progress(total=len(order), desc="embedding", unit="texts", shown=progress) as bar,
    ):
        for shard_number, start in enumerate(range(0, len(order), shard_rows)):
            indices = order[start : start + shard_rows]
            shard = shards.load(shard_number) if shards else None
            if shard is None:
                # If memory ran out, the following shards use the reduced batch size, too.
                batches, batch_size = _embed_batches(
                    indices, embed, batch_size, bar, pool=pool, threads=threads
                )
                # Each batch has an array of sentence vectors and, if `spans`, one of span vectors.
                shard = tuple(np.concatenate(vectors) for vectors in zip(*batches, strict=True))
                if shards:
                    shards.save(shard_number, shard)
            else:
                bar.update(len(indices))
            _check_finite(shard)
            # Fill in place, because a second copy of a million embeddings would not fit.
            if not outputs:
                outputs = tuple(
                    np.empty((len(order), *vectors.shape[1:]), vectors.dtype) for vectors in shard
                )
            for output, vectors in zip(outputs, shard, strict=True):
                output[indices] = vectors
    return outputs


def _check_finite(shard: Sequence[Vectors]) -> None:
    """Raise a `UserError` if a vector has infinite or undefined numbers."""
    if not all(np.isfinite(vectors).all() for vectors in shard):
        raise UserError(
            "the model returns vectors that are not finite",
            where="embedding",
            hint="set dtype: bfloat16 or float32 in the model's entry",
        )


def _embed_batch(
    tokenized: TokenizedTexts, spans: bool, indices: Sequence[int]
) -> tuple[Vectors, ...]:
    """Return the sentence embeddings and, if `spans`, the span embeddings of a batch."""
    # inference_mode applies to the current thread only.
    with torch.inference_mode():
        encoded = tokenized.encode(indices, spans=spans)
        embeddings = [encoded.sentence]
        if encoded.span is not None:
            embeddings.append(encoded.span)
        return tuple(vectors.float().cpu().numpy() for vectors in embeddings)


def _parallel_batches(model: SentenceTransformer) -> int:
    """Return the number of batches to embed in parallel.

    On a CPU, the result is the number of threads, because single-threaded batches in parallel are
    faster than one multithreaded batch, and give vectors that do not depend on the number of
    threads. On a GPU, the result is 1.
    """
    return torch.get_num_threads() if model.device.type == "cpu" else 1


def _embed_batches(
    indices: Sequence[int],
    embed: Callable[[Sequence[int]], tuple[Vectors, ...]],
    size: int,
    bar: Progress,
    *,
    pool: Executor,
    threads: int,
) -> tuple[list[tuple[Vectors, ...]], int]:
    """Embed texts in batches of `size` texts; halve the size whenever memory runs out.

    Args:
        indices: Indices of the texts.
        embed: Function that embeds the batch of texts with the given indices.
        size: Number of texts per batch.
        bar: Progress bar, which counts texts.
        pool: Threads for the batches.
        threads: Number of threads in `pool`.

    Returns:
        The result of `embed` for each batch, and the final batch size.

    Raises:
        UserError: Memory is insufficient for a batch of one text.
    """
    results: list[tuple[Vectors, ...]] = []
    # Submit several batches per thread, so that threads do not idle after each batch.
    batches_per_group = 8 * threads if threads > 1 else 1
    start = 0
    while start < len(indices):
        group = indices[start : start + batches_per_group * size]
        batches = [group[first : first + size] for first in range(0, len(group), size)]
        try:
            results += list(pool.map(embed, batches))
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            if size == 1:
                raise UserError(
                    "out of memory with a single text",
                    where="embedding",
                    hint="use a larger machine, a smaller dtype or a smaller `max_length`",
                ) from None
            size //= 2
            bar.write(f"out of memory: continuing with batches of {size}")
        else:
            start += len(group)
            bar.update(len(group))
            continue
        # Otherwise, the freed blocks of the larger batch would stay reserved.
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
    return results, size
