"""The BM25 baseline (IdioLink, appendix E): BM25Okapi, tuned on the validation split."""

import re
from collections.abc import Callable, Sequence
from copy import copy
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from rank_bm25 import BM25Okapi

from pieline.core.progress import Progress
from pieline.studies.idiolink.predictions.rankings import RankedRun, rank
from pieline.studies.idiolink.records import Bm25Parameters, Document, GridPoint, Query, Tuning

Bm25QueryMode = Literal["sentence", "span"]

_TUNING_DEPTH = 10
"""Number of documents that tuning ranks per query: the cutoff of nDCG@10."""
_TOKEN = re.compile(r"\b\w+(?:'\w+)?\b")


def tokenize(text: str) -> list[str]:
    """Split a text into lowercase words with the paper's pattern (appendix E.1)."""
    return _TOKEN.findall(text.lower())


class Bm25Index(BM25Okapi):  # type: ignore[misc] # rank_bm25 has no types
    """BM25Okapi with an inverted index, which is faster and gives bit-identical scores.

    `BM25Okapi` itself scans all documents for each query term.
    """

    def __init__(self, corpus: Sequence[list[str]], *, k1: float, b: float) -> None:
        super().__init__(corpus, k1=k1, b=b)
        self._lengths = np.array(self.doc_len)
        # For each term, the index of each document with the term, and the term's frequency there.
        postings: dict[str, list[tuple[int, int]]] = {}
        for document_index, frequencies in enumerate(self.doc_freqs):
            for term, frequency in frequencies.items():
                postings.setdefault(term, []).append((document_index, frequency))
        # Arrays of shape (2, documents with the term): the indices and the frequencies.
        self._postings = {
            term: np.array(term_postings).T for term, term_postings in postings.items()
        }

    def get_scores(self, query: Sequence[str]) -> NDArray[np.float64]:
        """Return the BM25 score of every document, of shape (documents,)."""
        scores = np.zeros(self.corpus_size)
        for term in query:
            if term in self._postings:
                document_indices, frequencies = self._postings[term]
                lengths = self._lengths[document_indices]
                relative_lengths = 1 - self.b + self.b * lengths / self.avgdl
                scores[document_indices] += self.idf[term] * (
                    frequencies * (self.k1 + 1) / (frequencies + self.k1 * relative_lengths)
                )
        return scores

    def with_parameters(self, parameters: Bm25Parameters) -> "Bm25Index":
        """Return an index of the same documents with other parameters."""
        index = copy(self)
        index.k1, index.b = parameters.k1, parameters.b
        return index


def build_index(documents: Sequence[Document], parameters: Bm25Parameters) -> Bm25Index:
    """Return an index of the documents' sentences with the given parameters."""
    corpus = [tokenize(document.sentence) for document in documents]
    return Bm25Index(corpus, k1=parameters.k1, b=parameters.b)


def search(
    index: Bm25Index,
    documents: Sequence[Document],
    queries: Sequence[Query],
    *,
    query_mode: Bm25QueryMode,
    top_k: int,
    progress: bool = True,
) -> RankedRun:
    """Return the `top_k` documents for each query's sentence or span, best first."""
    scores = (
        index.get_scores(tokenize(getattr(query, query_mode)))
        for query in Progress(queries, desc="search", unit="queries", shown=progress)
    )
    ids = [document.id for document in documents]
    return rank([query.id for query in queries], scores, ids, top_k=top_k)


def tune(
    documents: Sequence[Document],
    queries: Sequence[Query],
    *,
    query_mode: Bm25QueryMode,
    composition: str,
    k1: Sequence[float],
    b: Sequence[float],
    ndcg_at_10: Callable[[RankedRun], float],
) -> Tuning:
    """Choose the values of k1 and b with the best nDCG@10 on the validation split.

    All combinations of values are tried. Among equally good combinations, the first one is chosen.

    Args:
        documents: Documents of the index.
        queries: Validation queries.
        query_mode: Query mode to tune.
        composition: Index composition of the documents.
        k1: Values of k1 to try.
        b: Values of b to try.
        ndcg_at_10: Function that returns the mean nDCG@10 of a run, as a fraction.
    """
    combinations = [Bm25Parameters(k1=k1_value, b=b_value) for k1_value in k1 for b_value in b]
    index = build_index(documents, combinations[0])
    grid = []
    for parameters in combinations:
        run = search(
            index.with_parameters(parameters),
            documents,
            queries,
            query_mode=query_mode,
            top_k=_TUNING_DEPTH,
            progress=False,
        )
        grid.append(GridPoint(k1=parameters.k1, b=parameters.b, ndcg_at_10=ndcg_at_10(run)))
    best = max(grid, key=lambda point: point.ndcg_at_10)
    chosen = Bm25Parameters(k1=best.k1, b=best.b)
    return Tuning(query_mode=query_mode, composition=composition, chosen=chosen, grid=grid)
