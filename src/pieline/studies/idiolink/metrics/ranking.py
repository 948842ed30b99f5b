"""R-Precision and nDCG@10 of a run (IdioLink, section 5.1 and appendix D), by ir-measures."""

from collections.abc import Iterable, Mapping
from statistics import fmean

import ir_measures
from ir_measures import Rprec, nDCG
from pydantic import BaseModel, ConfigDict

Scores = Mapping[str, Mapping[str, float]]
"""Score (of a run) or relevance (of qrels) by query id and document id."""

MEASURES = {"r_precision": Rprec, "ndcg_at_10": nDCG @ 10}


class RankingScores(BaseModel):
    """Means over queries, as fractions of 1.

    `r_precision` is None where some query has more relevant documents than the run ranks: what
    stands below the cut is unknown.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    queries: int
    r_precision: float | None
    ndcg_at_10: float


QueryScores = dict[str, dict[str, float]]
"""`r_precision` and `ndcg_at_10` by query id."""


def score_queries(run: Scores, qrels: Scores) -> QueryScores:
    """R-Precision and nDCG@10 (binary relevance) of each query, fractions.

    A query of the qrels that the run lacks scores zero.
    """
    relevance = {
        query: {document: int(grade) for document, grade in documents.items()}
        for query, documents in qrels.items()
    }
    scores = {query: dict(documents) for query, documents in run.items()}
    names = {str(measure): name for name, measure in MEASURES.items()}
    result: QueryScores = {query: dict.fromkeys(MEASURES, 0.0) for query in qrels}
    for value in ir_measures.iter_calc(list(MEASURES.values()), relevance, scores):
        result[value.query_id][names[str(value.measure)]] = float(value.value)
    return result


def mean_scores(
    scores: QueryScores, queries: Iterable[str], *, depth: int, qrels: Scores
) -> RankingScores:
    """Means over some queries, of which a run ranks `depth` documents each."""
    names = sorted(queries)
    means: dict[str, float | None] = {
        measure: fmean(scores[name][measure] for name in names) for measure in MEASURES
    }
    if any(len(qrels[name]) > depth for name in names):
        means["r_precision"] = None
    return RankingScores.model_validate({"queries": len(names), **means})


def ndcg_at_10(run: Scores, qrels: Scores) -> float:
    """Mean nDCG@10 over all queries (fraction)."""
    return fmean(values["ndcg_at_10"] for values in score_queries(run, qrels).values())
