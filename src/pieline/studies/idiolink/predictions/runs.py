"""TREC runs: the best documents of each query, ties broken as trec_eval breaks them."""

import gzip
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pieline.core.errors import UserError
from pieline.core.files import open_gzip

Run = dict[str, dict[str, float]]
"""Score by query id and document id."""

_QUERIES_AT_ONCE = 256


def cosine_scores(
    queries: NDArray[np.float32], documents: NDArray[np.float32]
) -> Iterator[NDArray[np.float32]]:
    """Cosine similarity of each query with every document: one (documents,) row a query."""
    unit_documents = _unit(documents)
    for start in range(0, len(queries), _QUERIES_AT_ONCE):
        yield from _unit(queries[start : start + _QUERIES_AT_ONCE]) @ unit_documents.T


def rank(
    query_ids: Sequence[str],
    scores: Iterable[NDArray[np.floating]],
    document_ids: Sequence[str],
    *,
    top_k: int,
) -> Run:
    """The `top_k` best documents of each query, best first.

    Equal scores are ordered by descending document id, as trec_eval orders them, so that the run
    means the same to every tool and on every processor. `scores` are one row of shape (documents,)
    a query, in the order of `document_ids`.
    """
    by_descending_id = np.argsort(np.asarray(document_ids), kind="stable")[::-1]
    names = [document_ids[index] for index in by_descending_id]
    run: Run = {}
    for query_id, row in zip(query_ids, scores, strict=True):
        permuted = row[by_descending_id]
        near = _at_least_the_kth(permuted, top_k)
        best = near[np.argsort(-permuted[near], kind="stable")[:top_k]]
        run[query_id] = {names[index]: float(permuted[index]) for index in best}
    return run


def _at_least_the_kth(scores: NDArray[np.floating], k: int) -> NDArray[np.intp]:
    """Ascending indices of all scores that are at least the k-th largest: far fewer to sort."""
    if k >= len(scores):
        return np.arange(len(scores))
    return np.flatnonzero(scores >= np.partition(scores, -k)[-k])


def write_run(path: str | Path, run: Run, *, tag: str) -> None:
    """Write a gzipped TREC run: `query Q0 document rank score tag`, scores exact."""
    with open_gzip(path) as stream:
        for query_id, documents in run.items():
            lines = (
                f"{query_id} Q0 {document_id} {position} {score!r} {tag}\n"
                for position, (document_id, score) in enumerate(documents.items(), start=1)
            )
            # Written at once: gzip takes half as long again over single lines.
            stream.write("".join(lines).encode())


def read_run(path: str | Path) -> Run:
    """Read a gzipped TREC run.

    Raises:
        UserError: a line has not six fields or no number as its score; names file and line.
    """
    run: Run = {}
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        for number, line in enumerate(stream, start=1):
            try:
                query_id, _, document_id, _, score, _ = line.split()
                run.setdefault(query_id, {})[document_id] = float(score)
            except ValueError:
                raise UserError(
                    "not a line of a TREC run", where=f"{path}:{number}", mend="make it again"
                ) from None
    return run


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows scaled to length 1; a zero row stays zero."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    lengths[lengths == 0] = 1
    unit: NDArray[np.float32] = vectors / lengths
    return unit
