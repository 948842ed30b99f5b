"""Sentence embeddings, and span embeddings from late chunking."""

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
_OUT_OF_MEMORY = ("out of memory", "not enough memory", "can't allocate memory", "alloc_failed")


def is_out_of_memory(error: RuntimeError) -> bool:
    """Return whether an error means that torch ran out of memory, on a GPU or CPU."""
    return any(words in str(error).lower() for words in _OUT_OF_MEMORY)


@dataclass(frozen=True)
class QueryVectors:
    """Embeddings of the same queries, each of shape (queries, dimensions)."""

    sentence: Vectors
    span: Vectors


@dataclass(frozen=True)
class Encoded:
    """Embeddings of a batch, each of shape (texts, dimensions); `span` is None if not requested.

    The device and precision are those of the model.
    """

    sentence: torch.Tensor
    span: torch.Tensor | None


class TokenizedTexts:
    """Tokenized texts, which are padded batch by batch."""

    def __init__(self, model: SentenceTransformer, texts: Sequence[QueryText]) -> None:
        self.model = model
        self._texts = texts
        encoded = model.tokenizer(
            [text.text for text in texts],
            truncation=True,
            max_length=model.max_seq_length,
            return_offsets_mapping=True,
        )
        self._truncated = sum(bool(encoding.overflowing) for encoding in encoded.encodings or ())
        self._offsets = [torch.tensor(rows) for rows in encoded.pop("offset_mapping")]
        self._inputs = {name: [torch.tensor(row) for row in rows] for name, rows in encoded.items()}

    @property
    def by_length(self) -> list[int]:
        """Indices of the texts, longest first, to minimize padding and reach peak memory early."""
        lengths = [len(offsets) for offsets in self._offsets]
        return sorted(range(len(lengths)), key=lambda index: (-lengths[index], index))

    def report_truncated(self) -> None:
        """Print the number of texts that exceed the length limit, if there are any."""
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
        """Embed the texts at `indices` in one forward pass, without disabling gradients."""
        backbone, pooling = self.model[0], self.model[1]
        offsets = self._padded([self._offsets[index] for index in indices], 0)
        inputs = {}
        for name, rows in self._inputs.items():
            padded = self._padded([rows[index] for index in indices], self._fill(name))
            inputs[name] = padded.to(self.model.device)
        features = backbone(inputs)
        texts = [self._texts[index] for index in indices]
        pools_prompts = getattr(pooling, "include_prompt", True)
        ends = [text.instruction_end if pools_prompts else text.head_end for text in texts]
        if any(ends):
            before = instruction_mask(offsets, ends)
            mask = features["attention_mask"]
            features["attention_mask"] = mask * ~before.to(mask.device)
        span = None
        if spans:
            in_span = span_mask(offsets, [text.span for text in texts]).to(self.model.device)
            span = self._embedding(pool_span(features["token_embeddings"], in_span))
        return Encoded(self._embedding(pooling(features)["sentence_embedding"]), span)

    def _embedding(self, pooled: torch.Tensor) -> torch.Tensor:
        """Apply the modules after the pooling, which define the space of the documents."""
        features = {"sentence_embedding": pooled.to(self.model.dtype)}
        for number in range(2, len(self.model)):
            features = self.model[number](features)
        return features["sentence_embedding"][..., : self.model.truncate_dim]

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
    """Return the model's sentence embedding of each text, of shape (texts, dimensions).

    Args:
        model: Model returned by `load_encoder`.
        texts: Inputs of the model; all tokens of strings are pooled.
        batch_size: Texts per forward pass; halved when memory runs out.
        progress: Whether to show a progress bar.
        shards: Storage of finished parts, for resuming an interrupted job.
    """
    inputs = [QueryText(text) if isinstance(text, str) else text for text in texts]
    (vectors,) = _in_batches(
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
    """Return sentence and span embeddings of each query from one forward pass.

    The span embedding uses late chunking (section 4.1): the mean of the last-layer vectors of the
    tokens that overlap the span, without special tokens. The mean passes through the modules after
    the pooling (dense layer, normalization), as document embeddings do. The arguments are the same
    as in `embed_documents`.

    Raises:
        UserError: A span is entirely beyond the model's length limit.
    """
    tokenized = TokenizedTexts(model, queries)
    tokenized.check_spans()
    return QueryVectors(
        *_in_batches(tokenized, spans=True, batch_size=batch_size, progress=progress, shards=shards)
    )


def embed_query_modes(
    model: SentenceTransformer,
    queries: Sequence[Query],
    entry: ConfiguredEmbedder,
    *,
    shards: Shards | None = None,
) -> dict[str, Vectors]:
    """Return the embeddings of the queries in the four query modes (section 4.2), by mode.

    A sentence mode and its span mode share one forward pass if their inputs are equal.
    """
    entry = follow_prompts(entry, model)
    size = entry.batch_size
    vectors = {}
    for prefix, instructed in (("", False), ("instruction_", True)):
        texts = [query_text(query, entry, instructed=instructed) for query in queries]
        span_texts = [
            query_text(query, entry, instructed=instructed, by_span=True) for query in queries
        ]
        part = shards.part(f"{prefix}queries") if shards else None
        embedded = embed_queries(model, texts, batch_size=size, shards=part)
        vectors[f"{prefix}sentence"] = embedded.sentence
        if span_texts != texts:
            part = shards.part(f"{prefix}span_queries") if shards else None
            embedded = embed_queries(model, span_texts, batch_size=size, shards=part)
        vectors[f"{prefix}span"] = embedded.span
    return vectors


def embed_index(
    model: SentenceTransformer,
    documents: Sequence[Document],
    entry: ConfiguredEmbedder,
    *,
    progress: bool = True,
    shards: Shards | None = None,
) -> Vectors:
    """Return the embeddings of documents, which have no instructions (section 4.1)."""
    entry = follow_prompts(entry, model)
    return embed_documents(
        model,
        [document_text(document, entry) for document in documents],
        batch_size=entry.batch_size,
        progress=progress,
        shards=shards,
    )


def follow_prompts(entry: ConfiguredEmbedder, model: SentenceTransformer) -> ConfiguredEmbedder:
    """Return the entry with its empty prefixes replaced by the prompts in the checkpoint's files.

    A prompt for queries applies only to queries without an instruction, as an entry's prefix does.
    """
    prompts = {
        "query_prefix": model.prompts.get("query"),
        "passage_prefix": model.prompts.get("document"),
    }
    followed = {name: text for name, text in prompts.items() if text and not getattr(entry, name)}
    return entry.model_copy(update=followed) if followed else entry


def use_deterministic_kernels() -> None:
    """Use deterministic GPU kernels where available; must precede any GPU computation."""
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
    start, end = torch.tensor(spans).T.unsqueeze(-1)
    overlaps = (offsets[..., 0] < end) & (offsets[..., 1] > start)
    mask: torch.Tensor = overlaps & (offsets[..., 1] > offsets[..., 0])
    return mask


def instruction_mask(offsets: torch.Tensor, ends: Sequence[int]) -> torch.Tensor:
    """Return a mask of the tokens before the query: special tokens and the instruction.

    Args:
        offsets: As in `span_mask`.
        ends: End of each text's instruction in characters; 0 if it has none.

    Returns:
        Booleans of shape (texts, tokens); all false for a text without an instruction.

    Raises:
        UserError: The instruction leaves no room for the query.
    """
    end = torch.tensor(ends).unsqueeze(-1)
    real = offsets[..., 1] > offsets[..., 0]
    # A token may start with the space before its word, so only its end is compared.
    proper = real & (offsets[..., 1] > end)
    if not proper.any(dim=1).all():
        raise UserError(
            "the instruction fills the model's input",
            hint="increase `max_length` in the model's entry",
        )
    first = proper.int().argmax(dim=1, keepdim=True)
    before: torch.Tensor = (torch.arange(offsets.shape[1]) < first) & (end > 0)
    return before


def pool_span(token_embeddings: torch.Tensor, in_span: torch.Tensor) -> torch.Tensor:
    """Return the float32 means of the spans' token vectors, of shape (texts, dimensions)."""
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
    """Return sentence embeddings and, if requested, span embeddings, in the order of the texts."""
    embed = partial(_embed_batch, tokenized, spans)
    if progress:
        tokenized.report_truncated()
    order, at_once = tokenized.by_length, _parallel_batches(tokenized.model)
    # Shards contain whole batches, so that sharding does not change any number.
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
                    "the model returns vectors that are not finite",
                    where="embedding",
                    hint="set dtype: bfloat16 or float32 in the model's entry",
                )
            # Fill in place, because a second copy of a million embeddings would not fit.
            ordered = ordered or tuple(
                np.empty((len(order), *vectors.shape[1:]), vectors.dtype) for vectors in part
            )
            for output, vectors in zip(ordered, part, strict=True):
                output[indices] = vectors
    return ordered


def _embed_batch(
    tokenized: TokenizedTexts, spans: bool, indices: Sequence[int]
) -> tuple[Vectors, ...]:
    """Return sentence embeddings and, if requested, span embeddings of some texts."""
    # inference_mode applies to the current thread only.
    with torch.inference_mode():
        encoded = tokenized.encode(indices, spans=spans)
        embeddings = (encoded.sentence, encoded.span)
        return tuple(part.float().cpu().numpy() for part in embeddings if part is not None)


def _parallel_batches(model: SentenceTransformer) -> int:
    """Return the number of parallel batches: the number of threads on a CPU, otherwise 1.

    Parallel single-threaded batches are faster than one multithreaded batch, and the results do not
    depend on the number of threads.
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
    """Embed batches, halving their size if memory runs out; return results and the final size.

    Raises:
        UserError: Memory is insufficient for a batch of one text.
    """
    results: list[tuple[Vectors, ...]] = []
    # Submit several batches per thread, so that threads do not idle after each batch.
    together = 8 * at_once if at_once > 1 else 1
    start = 0
    while start < len(indices):
        used_size = size
        group = indices[start : start + together * size]
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
            continue
        finally:
            # Otherwise, the freed blocks of the larger batch would stay reserved.
            if size < used_size and torch.cuda.is_available():
                torch.cuda.empty_cache()
        start += len(group)
        bar.update(len(group))
    return results, size
