"""Score IdioLink's rankings overall, by usage, by subject, by PIE and by query.

R-Precision and nDCG@10 are computed by ir-measures (section 5.1, appendix D). The metric file and
the CSV of per-query scores are computed from the same scores.
"""

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from statistics import fmean
from typing import Literal

from ir_measures import Rprec, nDCG
from pydantic import BaseModel, ConfigDict

from pieline.core.conditions import Evidence, Measured, RunIdentity
from pieline.core.measures import Measure, share
from pieline.core.tables import write_csv
from pieline.core.uncertainty import Interval, ratio_interval
from pieline.studies.idiolink.datasets.dataset import Meanings, meaning_qrels, subject_qrels
from pieline.studies.idiolink.metrics.validation import Scores, calculate
from pieline.studies.idiolink.predictions.rankings import in_order
from pieline.studies.idiolink.records import Meaning, Tuning

MEASURES = {"r_precision": Rprec, "ndcg_at_10": nDCG @ 10}

UNKNOWN = "unknown: the metric needs more documents than are kept per query"
"""Reason for a missing score (see `RankingScores`)."""

_NDCG_DEPTH = 10
"""Number of top documents that nDCG@10 considers."""


class RankingScores(BaseModel):
    """Mean scores over queries, as fractions; None if the score of some query is unknown.

    A run keeps only the top documents of each query. R-Precision is therefore unknown if the query
    has more relevant documents than the run keeps, and nDCG@10 is unknown if the run keeps fewer
    than ten documents.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    queries: int
    r_precision: float | None
    ndcg_at_10: float | None


RANKING = tuple(
    share(metric, attrgetter(metric), better="high", unknown=UNKNOWN) for metric in MEASURES
)
"""Measures that read R-Precision and nDCG@10 from a `RankingScores`."""

QueryScores = dict[str, dict[str, float | None]]
"""Score by query id and name of the metric; None if unknown (see `RankingScores`)."""


def score_queries(run: Scores, qrels: Scores, *, depth: int | None = None) -> QueryScores:
    """Return R-Precision and nDCG@10 (binary relevance) of each query, as fractions.

    Queries in the qrels that are missing from the run score zero. A score is None if it depends on
    more documents than the run keeps.

    Args:
        run: The ranking.
        qrels: Relevant documents of each query.
        depth: Number of documents that the run keeps per query; None for the whole index.
    """
    scores: QueryScores = {}
    for query, query_scores in calculate(MEASURES, run, qrels).items():
        # A custom metric is assumed to need no particular depth.
        required_depth = {"r_precision": len(qrels[query]), "ndcg_at_10": _NDCG_DEPTH}
        scores[query] = {}
        for metric, score in query_scores.items():
            is_known = depth is None or required_depth.get(metric, 0) <= depth
            scores[query][metric] = score if is_known else None
    return scores


def first_relevant(ranking: Iterable[str], relevant: Container[str]) -> int | None:
    """Return the rank (from 1) of the first relevant document; None if no document is relevant."""
    for rank, document in enumerate(ranking, start=1):
        if document in relevant:
            return rank
    return None


def mean_scores(scores: QueryScores, queries: Iterable[str]) -> RankingScores:
    """Return the mean score in each metric over the queries with the given ids."""
    query_ids = sorted(queries)
    means = {
        metric: _mean_if_all_known([scores[query][metric] for query in query_ids])
        for metric in MEASURES
    }
    return RankingScores.model_validate({"queries": len(query_ids), **means})


def _mean_if_all_known(scores: Sequence[float | None]) -> float | None:
    """Return the mean of the scores; None if any of them is unknown."""
    known_scores = [score for score in scores if score is not None]
    return fmean(known_scores) if len(known_scores) == len(scores) else None


QUERY_COLUMNS = (
    *("query", "pie", "usage", "subject", "composition", "model", "query_mode", "seed"),
    *MEASURES,
    "first_relevant",
)
"""Columns of the CSV of per-query scores.

Scores are fractions and empty if unknown. `first_relevant` is the rank of the first document with
the query's meaning, and empty if the run contains no such document.
"""


class IdiolinkMetrics(Measured):
    """Metrics of one run; all scores are fractions.

    Attributes:
        overall, by_usage, by_subject, by_pie: Scores if the documents with the query's meaning are
            relevant.
        same_meaning_and_subject: Scores if only the documents with the query's meaning and subject
            are relevant.
        same_subject: Scores if the documents with the query's subject are relevant. High scores
            mean that the ranking depends on the topic.
        depth: Number of documents that the run keeps per query.
        tuning: Tuned BM25 parameters; null for other models.
        intervals: 95% bootstrap intervals of `overall` by metric. PIEs are resampled with all their
            queries. A metric has no interval if its score is unknown or there is a single PIE.
        resamples: Number of resamples.
    """

    split: str
    composition: str
    model: str
    query_mode: str
    seed: int
    overall: RankingScores
    by_usage: dict[str, RankingScores]
    by_subject: dict[str, RankingScores]
    by_pie: dict[str, RankingScores]
    same_meaning_and_subject: RankingScores
    same_subject: RankingScores
    depth: int
    tuning: Tuning | None
    intervals: Mapping[str, Interval] = {}
    resamples: int = 0


def _overall(metric: str) -> Measure[IdiolinkMetrics]:
    return share(
        metric,
        lambda metrics: getattr(metrics.overall, metric),
        lambda metrics: metrics.intervals.get(metric),
        better="high",
        unknown=UNKNOWN,
    )


SCORES = tuple(_overall(metric) for metric in MEASURES)
"""Measures that read R-Precision and nDCG@10 over all queries from a metric file."""
BM25 = (
    Measure[IdiolinkMetrics]("k1", lambda run: run.tuning.chosen.k1 if run.tuning else None),
    Measure[IdiolinkMetrics]("b", lambda run: run.tuning.chosen.b if run.tuning else None),
)
"""Measures that read the tuned parameters of BM25 from a metric file."""


def idiolink_metrics(
    run: Scores,
    dataset: Meanings,
    identity: RunIdentity,
    evidence: Evidence,
    *,
    depth: int,
    resamples: int,
    tuning: Tuning | None,
) -> tuple[IdiolinkMetrics, QueryScores]:
    """Score a run that ranks `depth` documents for each query of the dataset.

    Args:
        run: The ranking.
        dataset: The queries, and the documents that were ranked.
        identity: Model, query mode and training seed of the run; 0 is the seed of zero-shot runs.
        evidence: Inputs and conditions of the metrics.
        depth: Number of documents per query.
        resamples: Number of resamples of the PIEs, for intervals.
        tuning: Tuned BM25 parameters; None for other models.

    Returns:
        The metrics, and for each query R-Precision, nDCG@10 and `first_relevant`, which count the
        documents with the query's meaning as relevant.
    """
    queries = dataset.queries
    # A run that ranks the whole index has no cutoff.
    cutoff = depth if depth < len(dataset.documents) else None
    same_meaning = meaning_qrels(queries, dataset.documents)
    same_subject = subject_qrels(queries, dataset.documents)
    same_meaning_and_subject = {
        query: {document: 1 for document in documents if document in same_subject[query]}
        for query, documents in same_meaning.items()
    }
    scores = score_queries(run, same_meaning, depth=cutoff)
    subject_scores = score_queries(run, same_subject, depth=cutoff)
    both_scores = score_queries(run, same_meaning_and_subject, depth=cutoff)
    by_pie = _means_by("pie", queries, scores)
    metrics = IdiolinkMetrics(
        split=dataset.split,
        composition=dataset.composition,
        model=identity.model,
        query_mode=identity.setting,
        seed=identity.seed,
        dataset_is_released=dataset.released,
        overall=mean_scores(scores, scores),
        by_usage=_means_by("usage", queries, scores),
        by_subject=_means_by("subject", queries, scores),
        by_pie=by_pie,
        same_meaning_and_subject=mean_scores(both_scores, both_scores),
        same_subject=mean_scores(subject_scores, subject_scores),
        depth=depth,
        tuning=tuning,
        intervals=_intervals(by_pie, resamples),
        resamples=resamples,
        **evidence.of_record,
    )
    for query, query_scores in scores.items():
        ranking = in_order(run.get(query, {}))
        query_scores["first_relevant"] = first_relevant(ranking, same_meaning[query])
    return metrics, scores


def _means_by(
    field: Literal["pie", "usage", "subject"], queries: Sequence[Meaning], scores: QueryScores
) -> dict[str, RankingScores]:
    """Map each PIE, usage or subject (the value of `field`) to the mean scores of its queries."""
    query_ids = defaultdict(list)
    for query in queries:
        query_ids[getattr(query, field)].append(query.id)
    return {group: mean_scores(scores, ids) for group, ids in sorted(query_ids.items())}


def _intervals(by_pie: Mapping[str, RankingScores], resamples: int) -> dict[str, Interval]:
    """Return the 95% bootstrap interval of the mean score over queries, by metric.

    PIEs are resampled with all their queries. A metric has no interval if its score is unknown or
    there is a single PIE.
    """
    query_counts = [scores.queries for scores in by_pie.values()]
    intervals = {}
    for metric in MEASURES:
        means = [getattr(scores, metric) for scores in by_pie.values()]
        if None in means:
            continue
        sums = [mean * count for mean, count in zip(means, query_counts, strict=True)]
        if interval := ratio_interval(sums, query_counts, resamples=resamples, seed=0):
            intervals[metric] = interval
    return intervals


def save_query_scores(
    path: str | Path, metrics: IdiolinkMetrics, scores: QueryScores, queries: Iterable[Meaning]
) -> None:
    """Save a run's per-query scores as CSV with `QUERY_COLUMNS`, in the order of `queries`."""
    run_columns = metrics.model_dump(include={"composition", "model", "query_mode", "seed"})
    rows = []
    for query in queries:
        query_columns = {
            "query": query.id,
            "pie": query.pie,
            "usage": query.usage,
            "subject": query.subject,
        }
        rows.append({**query_columns, **run_columns, **scores[query.id]})
    write_csv(path, QUERY_COLUMNS, rows)
