"""Metrics of IdioLink runs: overall, by usage, by subject, by PIE and by query.

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


QUERY_COLUMNS = (
    *("query", "pie", "usage", "subject", "composition", "model", "query_mode", "seed"),
    *MEASURES,
    "first_relevant",
)
"""Columns of the CSV of per-query scores. Scores are fractions, empty if unknown; `first_relevant`
is the rank of the first document with the query's meaning, empty if the run contains none.
"""


class IdiolinkMetrics(Measured):
    """Metrics of one run; all scores are fractions.

    Attributes:
        overall, by_usage, by_subject, by_pie: Scores with the documents of the query's meaning as
            relevant.
        same_meaning_and_subject: Scores with only the documents of the query's meaning and subject
            as relevant.
        same_subject: Scores with the documents of the query's subject as relevant, which measure
            how topical a ranking is.
        depth: Number of documents that the run keeps per query.
        tuning: Tuned BM25 parameters; null for other models.
        intervals: Intervals of `overall` by metric, from bootstrap resamples of the PIEs with all
            their queries; missing if the score is unknown or there is a single PIE.
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
        lambda item: getattr(item.overall, metric),
        lambda item: item.intervals.get(metric),
        better="high",
        unknown=UNKNOWN,
    )


SCORES = tuple(map(_overall, MEASURES))
"""Measures of both metrics over all queries."""
BM25 = (
    Measure[IdiolinkMetrics]("k1", lambda item: item.tuning.chosen.k1 if item.tuning else None),
    Measure[IdiolinkMetrics]("b", lambda item: item.tuning.chosen.b if item.tuning else None),
)
"""Measures of the tuned parameters of BM25."""


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

    The seed of `identity` is the training seed (0 for zero-shot models).

    Args:
        run: The ranking.
        dataset: Documents and queries that were ranked.
        identity: Model, query mode and seed of the run.
        evidence: Inputs and conditions of the metrics.
        depth: Number of documents per query.
        resamples: Number of resamples of the PIEs, for intervals.
        tuning: Tuned BM25 parameters; None for other models.

    Returns:
        The metrics, and the scores of each query by meaning, including the rank of the first
        relevant document (`first_relevant`).
    """
    queries = dataset.queries
    cut = depth if depth < len(dataset.documents) else None
    meaning = meaning_qrels(queries, dataset.documents)
    subject = subject_qrels(queries, dataset.documents)
    both = {
        query: {name: 1 for name in documents if name in subject[query]}
        for query, documents in meaning.items()
    }
    scores = score_queries(run, meaning, depth=cut)
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
        same_meaning_and_subject=mean_scores(score_queries(run, both, depth=cut), both),
        same_subject=mean_scores(score_queries(run, subject, depth=cut), subject),
        depth=depth,
        tuning=tuning,
        intervals=_intervals(by_pie, resamples),
        resamples=resamples,
        **evidence.of_record,
    )
    for name, query_scores in scores.items():
        ranked = in_order(run.get(name, {}))
        query_scores["first_relevant"] = first_relevant(ranked, meaning[name])
    return metrics, scores


def _means_by(
    field: Literal["pie", "usage", "subject"], queries: Sequence[Meaning], scores: QueryScores
) -> dict[str, RankingScores]:
    """Return the mean scores of the queries with the same PIE, usage or subject."""
    members = defaultdict(list)
    for query in queries:
        members[getattr(query, field)].append(query.id)
    return {group: mean_scores(scores, names) for group, names in sorted(members.items())}


def _intervals(by_pie: Mapping[str, RankingScores], resamples: int) -> dict[str, Interval]:
    """Return the bootstrap interval of the mean over queries, by metric; PIEs are resampled."""
    sizes = [scores.queries for scores in by_pie.values()]
    intervals = {}
    for metric in MEASURES:
        means = [getattr(scores, metric) for scores in by_pie.values()]
        if None in means:
            continue
        sums = [mean * size for mean, size in zip(means, sizes, strict=True)]
        if interval := ratio_interval(sums, sizes, resamples=resamples, seed=0):
            intervals[metric] = interval
    return intervals


def save_query_scores(
    path: str | Path, metrics: IdiolinkMetrics, scores: QueryScores, queries: Iterable[Meaning]
) -> None:
    """Save a run's per-query scores as CSV, in query order."""
    rows = []
    run = metrics.model_dump(include={"composition", "model", "query_mode", "seed"})
    for query in queries:
        row = {"query": query.id, "pie": query.pie, "usage": query.usage, "subject": query.subject}
        rows.append(row | run | scores[query.id])
    write_csv(path, QUERY_COLUMNS, rows)
