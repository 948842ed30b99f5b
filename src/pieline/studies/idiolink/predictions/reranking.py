"""Re-ranking the documents of a first-stage run with a cross-encoder."""

from collections.abc import Sequence

import numpy as np
import torch
from sentence_transformers import CrossEncoder

from pieline.core.errors import UserError
from pieline.core.progress import Progress
from pieline.models.loading import loading, require_all_weights, require_finite, require_tokenizer
from pieline.models.rankers import RankerEntry, RerankerEntry
from pieline.models.weights import weights_location
from pieline.studies.idiolink.predictions.query_texts import (
    QueryText,
    instructed_text,
    plain_text,
)
from pieline.studies.idiolink.predictions.runs import RankedRun, rank
from pieline.studies.idiolink.records import Document, Query


def ranker_text(query: Query, entry: RankerEntry, mode: str) -> QueryText:
    """What a reranker or late-interaction model reads of a query in a query mode.

    Raises:
        UserError: the span is not in the sentence.
    """
    if mode.startswith("instruction"):
        return instructed_text(query, instruction_format=entry.instruction_format)
    return plain_text(query, query_prefix=entry.query_prefix)


def load_reranker(entry: RerankerEntry, *, device: str | None = None) -> CrossEncoder:
    """Load a cross-encoder on a CUDA GPU if there is one, otherwise on the CPU.

    Raises:
        UserError: the weights cannot be had or are not complete, or the model has more than one
            score per pair; names the checkpoint.
    """
    where, location = f"{entry.checkpoint} ({entry.source})", weights_location(entry)
    with loading(entry):
        model: CrossEncoder = CrossEncoder(
            location,
            device=device or ("cuda" if torch.cuda.is_available() else "cpu"),
            trust_remote_code=entry.trust_remote_code,
            model_kwargs={
                "dtype": getattr(torch, entry.dtype),
                "use_safetensors": True,
                # Reported with the names of the weights by `require_all_weights`.
                "ignore_mismatched_sizes": True,
            },
            max_length=entry.max_length,
        )
        require_all_weights(model.model, location, where)
        require_finite(model, where)
        require_tokenizer(model.tokenizer, model.model, location, where)
    if model.num_labels != 1:
        raise UserError(
            f"it has {model.num_labels} scores per pair of texts",
            where=where,
            mend="name a model that was trained to rank, which has one",
        )
    return model


def rerank(
    model: CrossEncoder,
    first_stage: RankedRun,
    queries: Sequence[Query],
    documents: Sequence[Document],
    entry: RerankerEntry,
    *,
    mode: str,
    progress: bool = True,
) -> RankedRun:
    """The documents of a first-stage run, ordered by the scores of a cross-encoder.

    Scores are the model's logits: the sigmoid that its files may ask for makes ties of the largest.

    Args:
        model: as `load_reranker` returns it.
        first_stage: the documents to score of each query.
        queries: the queries.
        documents: the documents of the index.
        entry: the model's entry.
        mode: query mode, `sentence` or `instruction_sentence`.
        progress: whether to show a progress bar.

    Raises:
        UserError: a score is not a finite number.
    """
    texts = {text.id: entry.passage_prefix + text.sentence for text in documents}
    run: RankedRun = {}
    for query in Progress(queries, desc="re-ranking", unit="queries", shown=progress):
        text, found = ranker_text(query, entry, mode).text, list(first_stage[query.id])
        scores = model.predict(
            [(text, texts[name]) for name in found],
            batch_size=entry.batch_size,
            activation_fn=torch.nn.Identity(),
            show_progress_bar=False,
        )
        if not np.isfinite(scores).all():
            raise UserError(
                "the model gives scores that are not numbers",
                where=query.id,
                mend="give its entry dtype: bfloat16 or float32",
            )
        run |= rank([query.id], [scores], found, top_k=len(found))
    return run
