"""R-Precision and nDCG@10 of a run, by ir-measures (IdioLink, section 5.1, appendix D)."""

from collections.abc import Container, Iterable, Sequence
from operator import attrgetter
from statistics import fmean

from ir_measures import Rprec, nDCG
from pydantic import BaseModel, ConfigDict

from pieline.core.measures import share
from pieline.studies.idiolink.metrics.validation import Scores, calculate

MEASURES = {"r_precision": Rprec, "ndcg_at_10": nDCG @ 10}

UNKNOWN = "unknown: the metric needs more documents than are kept per query"
"""Reason for a missing score (see `RankingScores`)."""

_NDCG_CUT = 10


class RankingScores(BaseModel):
    """Mean scores over queries, as fractions; None if the score of some query is unknown.

    The ranking below the documents that a run keeps is unknown. R-Precision is therefore unknown
    if a query has more relevant documents than are kept, and nDCG@10 if fewer than ten are kept.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    queries: int
    r_precision: float | None
    ndcg_at_10: float | None


RANKING = tuple(
    share(metric, attrgetter(metric), better="high", unknown=UNKNOWN) for metric in MEASURES
)
"""Measures of both metrics over some queries."""

QueryScores = dict[str, dict[str, float | None]]
"""`r_precision` and `ndcg_at_10` by query id; None if unknown (see `RankingScores`)."""


def score_queries(run: Scores, qrels: Scores, *, depth: int | None = None) -> QueryScores:
    """Return R-Precision and nDCG@10 (binary relevance) of each query, as fractions.

    Queries in the qrels that are missing from the run score zero.

    Args:
        run: The ranking.
        qrels: Relevant documents of each query.
        depth: Number of documents that the run keeps per query; None for the whole index.
    """
    scores: QueryScores = {}
    for query, values in calculate(MEASURES, run, qrels).items():
        looked_at = {"r_precision": len(qrels[query]), "ndcg_at_10": _NDCG_CUT}
        scores[query] = {
            name: value if depth is None or looked_at.get(name, 0) <= depth else None
            for name, value in values.items()
        }
    return scores


def first_relevant(ranked: Iterable[str], relevant: Container[str]) -> int | None:
    """Return the rank (from 1) of the first relevant document, or None if there is none."""
    return next((rank for rank, name in enumerate(ranked, start=1) if name in relevant), None)


def mean_scores(scores: QueryScores, queries: Iterable[str]) -> RankingScores:
    """Return the mean scores over the given queries."""
    names = sorted(queries)
    means = {measure: _mean([scores[name][measure] for name in names]) for measure in MEASURES}
    return RankingScores.model_validate({"queries": len(names), **means})


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if len(known) == len(values) else None
