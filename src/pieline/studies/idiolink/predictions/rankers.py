"""Ranking with cross-encoders and late-interaction models."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import safe_open
from sentence_transformers import CrossEncoder, MultiVectorEncoder
from sentence_transformers.models import Dense

from pieline.core.errors import UserError
from pieline.core.files import files_below
from pieline.core.progress import Progress
from pieline.models.checkpoint_settings import check_ranker_files
from pieline.models.loading import loading, require_all_weights, require_finite, require_tokenizer
from pieline.models.rankers import LateInteractionEntry, RerankerEntry
from pieline.models.weights import weights_location
from pieline.studies.idiolink.predictions.embedding import span_mask
from pieline.studies.idiolink.predictions.query_texts import QueryText, text_in_mode
from pieline.studies.idiolink.predictions.rankings import RankedRun, rank
from pieline.studies.idiolink.records import Document, Query

_QUERIES_AT_ONCE = 64
"""Number of queries that are compared with all documents at once."""
_INCREASING_ACTIVATIONS = (
    torch.nn.Identity,
    torch.nn.Sigmoid,
    torch.nn.LogSigmoid,
    torch.nn.Softplus,
    torch.nn.Tanh,
)
"""Activation functions that do not change the order of scores."""
_PROJECTION = "linear.weight"
"""Name of the weights in a projection's safetensors file."""


def load_reranker(entry: RerankerEntry) -> CrossEncoder:
    """Load a cross-encoder on a CUDA GPU if available, otherwise on the CPU.

    Raises:
        UserError: The weights are unavailable or incomplete, the model has more than one score per
            pair, or the activation function may change the order of the scores.
    """
    model: CrossEncoder = _load(CrossEncoder, entry, max_length=entry.max_length)
    if model.num_labels != 1:
        raise UserError(
            f"the model has {model.num_labels} scores per pair of texts instead of one",
            where=entry.checkpoint,
            hint="use a model trained for ranking",
        )
    if not isinstance(model.activation_fn, _INCREASING_ACTIVATIONS):
        raise UserError(
            f"the model's activation_fn {type(model.activation_fn).__name__} may change the order"
            " of its scores, which are ranked without it",
            where=entry.checkpoint,
            hint="use a model without it",
        )
    return model


def _load(model_class: Any, entry: RerankerEntry | LateInteractionEntry, **options: Any) -> Any:
    """Load a sentence-transformers model and check its weights and tokenizer.

    Args:
        model_class: Class of the model.
        entry: Entry of the model.
        **options: Further arguments of `model_class`.
    """
    where = f"{entry.checkpoint} ({entry.source})"
    location = weights_location(entry)
    with loading(entry):
        check_ranker_files(entry, location, where)
        model = model_class(
            location,
            device="cuda" if torch.cuda.is_available() else "cpu",
            trust_remote_code=entry.trust_remote_code,
            model_kwargs={
                "dtype": getattr(torch, entry.dtype),
                "use_safetensors": True,
                # `require_all_weights` reports mismatches by name.
                "ignore_mismatched_sizes": True,
            },
            **options,
        )
        transformer = model[0].auto_model
        require_all_weights(transformer, location, where)
        require_finite(model, where)
        require_tokenizer(model.tokenizer, transformer, location, where)
    return model


def rerank(
    model: CrossEncoder,
    first_stage: RankedRun,
    queries: Sequence[Query],
    documents: Sequence[Document],
    entry: RerankerEntry,
    *,
    mode: str,
) -> RankedRun:
    """Rerank the documents of a first-stage run with a cross-encoder.

    The scores are logits, because a sigmoid would make the highest scores equal.

    Args:
        model: Model returned by `load_reranker`.
        first_stage: Run with the documents to score for each query.
        queries: The queries.
        documents: Documents of the index.
        entry: Entry of the model.
        mode: Query mode: `sentence` or `instruction_sentence`.

    Raises:
        UserError: A score is not finite.
    """
    document_texts = {
        document.id: entry.passage_prefix + document.sentence for document in documents
    }
    run: RankedRun = {}
    for query in Progress(queries, desc="re-ranking", unit="queries"):
        query_text = text_in_mode(query, entry, mode).text
        candidates = list(first_stage[query.id])
        scores = model.predict(
            [(query_text, document_texts[document_id]) for document_id in candidates],
            batch_size=entry.batch_size,
            activation_fn=torch.nn.Identity(),
            show_progress_bar=False,
        )
        _require_finite(scores, query.id)
        run |= rank([query.id], [scores], candidates, top_k=len(candidates))
    return run


def load_late_interaction(entry: LateInteractionEntry) -> MultiVectorEncoder:
    """Load a late-interaction model on a CUDA GPU if available, otherwise on the CPU.

    Queries and documents are truncated at the entry's `max_length`. If the model expands queries
    to a fixed length, queries below this length are expanded, and longer queries are not shortened.

    Raises:
        UserError: The weights are unavailable or incomplete.
    """
    model: MultiVectorEncoder = _load(MultiVectorEncoder, entry)
    _require_projections(model, Path(weights_location(entry)), entry.checkpoint)
    transformer: Any = model[0]
    transformer.max_seq_length = entry.max_length
    transformer.query_length = transformer.document_length = None
    if transformer.query_expansion:
        # The other strategy, "fixed", shortens longer queries to the fixed length.
        transformer.query_expansion = transformer.query_expansion | {"strategy": "min"}
    return model


def _require_projections(model: MultiVectorEncoder, folder: Path, where: str) -> None:
    """Raise a `UserError` if the weights of a projection are not in the checkpoint's files.

    The library initializes missing projections randomly.
    """
    saved_weights = []
    for path in files_below(folder, ".safetensors"):
        with safe_open(path, framework="pt") as file:
            if _PROJECTION in list(file.keys()):
                saved_weights.append(file.get_tensor(_PROJECTION))
    projections = [module for module in model if isinstance(module, Dense)]
    for projection in projections:
        loaded = projection.linear.weight.detach().cpu()
        is_saved = any(torch.equal(loaded, saved.to(loaded.dtype)) for saved in saved_weights)
        if not is_saved:
            raise UserError(
                "the checkpoint has no projection of token vectors",
                where=where,
                hint="use a checkpoint trained for late interaction",
            )


def search(
    model: MultiVectorEncoder,
    queries: Sequence[Query],
    documents: Sequence[Document],
    entry: LateInteractionEntry,
    *,
    top_k: int,
) -> dict[str, RankedRun]:
    """Rank the documents for each query by MaxSim; return the runs by query mode.

    In a span mode, a query is encoded as in the corresponding sentence mode, but only the tokens of
    the span are compared.
    """
    query_ids = [query.id for query in queries]
    document_ids = [document.id for document in documents]
    document_texts = [entry.passage_prefix + document.sentence for document in documents]
    encoded_documents = model.encode_document(document_texts, batch_size=entry.batch_size)
    document_vectors = [vectors.float() for vectors in encoded_documents]
    runs = {}
    for prefix in ("", "instruction_"):
        query_texts = [text_in_mode(query, entry, f"{prefix}sentence") for query in queries]
        sentence_vectors, span_vectors = query_token_vectors(
            model, query_texts, batch_size=entry.batch_size
        )
        for mode, query_vectors in (
            (f"{prefix}sentence", sentence_vectors),
            (f"{prefix}span", span_vectors),
        ):
            scores = _maxsim_scores(model, query_vectors, document_vectors, desc=mode)
            runs[mode] = rank(query_ids, scores, document_ids, top_k=top_k)
    return runs


def query_token_vectors(
    model: MultiVectorEncoder, texts: Sequence[QueryText], *, batch_size: int
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Return the token vectors of each query, and the token vectors of each query's span.

    Each tensor has the shape (tokens, dimensions). The vectors of a query include special tokens
    and query expansion, as in training.

    Raises:
        UserError: A span is truncated entirely, or the model's input differs from the
            tokenizer's output.
    """
    prompt = model.prompts.get("query") or ""
    outputs: Any = model.encode_query(
        [text.text for text in texts], batch_size=batch_size, output_value=None
    )
    sentence_vectors, span_vectors = [], []
    for text, features in zip(texts, outputs, strict=True):
        in_sentence = features["attention_mask"].bool().cpu()
        in_span = _span_tokens(model, prompt, text, features["input_ids"].cpu()) & in_sentence
        if not in_span.any():
            raise UserError(
                f"the span is beyond the model's limit of {len(in_span)} tokens",
                where=text.text[:60],
                hint="increase `max_length` in the model's entry",
            )
        vectors = features["token_embeddings"].float()
        sentence_vectors.append(vectors[in_sentence])
        span_vectors.append(vectors[in_span])
    return sentence_vectors, span_vectors


def _span_tokens(
    model: MultiVectorEncoder, prompt: str, text: QueryText, input_ids: torch.Tensor
) -> torch.Tensor:
    """Return a mask of the input's tokens that overlap the span, of shape (tokens,).

    Args:
        model: The model.
        prompt: Text that the model puts before `text`.
        text: The query.
        input_ids: Token ids of the model's input for the query, including query expansion.

    Raises:
        UserError: The input does not start with the tokens of the prompt and the query.
    """
    encoded = model.tokenizer(
        prompt + text.text, truncation=True, max_length=len(input_ids), return_offsets_mapping=True
    )
    offsets = torch.tensor(encoded["offset_mapping"])
    if input_ids[: len(offsets)].tolist() != encoded["input_ids"]:
        raise UserError(
            "the model's input differs from the tokens of its prompt and the text",
            where=text.text[:60],
            hint="use a model without a chat template and with padding on the right",
        )
    start, end = text.span
    span_after_prompt = (len(prompt) + start, len(prompt) + end)
    in_span = torch.zeros_like(input_ids, dtype=torch.bool)
    in_span[: len(offsets)] = span_mask(offsets.unsqueeze(0), [span_after_prompt])[0]
    return in_span


def _maxsim_scores(
    model: MultiVectorEncoder,
    query_vectors: Sequence[torch.Tensor],
    document_vectors: list[torch.Tensor],
    *,
    desc: str,
) -> Iterator[NDArray[np.float32]]:
    """Yield the MaxSim scores of each query with all documents, of shape (documents,).

    Raises:
        UserError: A score is not finite.
    """
    starts = range(0, len(query_vectors), _QUERIES_AT_ONCE)
    for start in Progress(starts, desc=desc, unit="blocks of queries"):
        block = list(query_vectors[start : start + _QUERIES_AT_ONCE])
        scores = model.similarity(block, document_vectors).cpu().numpy()
        _require_finite(scores, desc)
        yield from scores


def _require_finite(scores: NDArray[np.float32], where: str) -> None:
    """Raise a `UserError` if a score is infinite or undefined."""
    if not np.isfinite(scores).all():
        raise UserError(
            "the model returns scores that are not finite",
            where=where,
            hint="set dtype: bfloat16 or float32 in the model's entry",
        )
