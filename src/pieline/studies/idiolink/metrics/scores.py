"""The metric file of an IdioLink run: overall, by usage, by subject and by PIE."""

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict

from pieline.core.conditions import NO_CONDITIONS, Conditions
from pieline.studies.idiolink.datasets.dataset import IdiolinkDataset
from pieline.studies.idiolink.metrics.ranking import (
    RankingScores,
    Scores,
    mean_by_group,
    mean_scores,
    score_queries,
)
from pieline.studies.idiolink.predictions.bm25_tuning import Tuning
from pieline.studies.idiolink.raw.released import Qrels, meaning_qrels, subject_qrels


class IdiolinkMetrics(BaseModel):
    """Metrics of one run; all scores are fractions.

    `overall`, `by_usage`, `by_subject` and `by_pie` count a document as relevant if it carries the
    query's meaning; `same_meaning_and_subject` if it is, besides, of the query's subject;
    `same_subject` if it is of the query's subject whatever its meaning, which shows how topical
    a ranking is.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    split: str
    composition: str
    model: str
    query_mode: str
    seed: int
    dataset_is_released: bool
    overall: RankingScores
    by_usage: dict[str, RankingScores]
    by_subject: dict[str, RankingScores]
    by_pie: dict[str, RankingScores]
    same_meaning_and_subject: RankingScores
    same_subject: RankingScores
    depth: int
    tuning: Tuning | None
    computed_from: dict[str, str]
    conditions: Conditions = NO_CONDITIONS


def idiolink_metrics(
    run: Scores,
    dataset: IdiolinkDataset,
    *,
    model: str,
    query_mode: str,
    seed: int,
    depth: int,
    tuning: Tuning | None,
    computed_from: dict[str, str],
    conditions: Conditions = NO_CONDITIONS,
) -> IdiolinkMetrics:
    """Score a run.

    Args:
        run: the ranking.
        dataset: the index and queries that it ranks.
        model: name in models.yaml.
        query_mode: how the queries were embedded or searched.
        seed: of the model's training; 0 for a model as published.
        depth: documents that the run ranks for a query.
        tuning: BM25's grid and chosen point.
        computed_from: digests of the files behind the numbers.
        conditions: settings and weights behind them.
    """
    queries = dataset.queries
    ranked = min(depth, len(dataset.documents))
    meaning = meaning_qrels(queries, dataset.documents)
    subject = subject_qrels(queries, dataset.documents)
    both = {
        query: {name: 1 for name in documents if name in subject[query]}
        for query, documents in meaning.items()
    }
    scores = score_queries(run, meaning)
    relevant = _counts(meaning)

    def by(field: str) -> dict[str, RankingScores]:
        groups = {query.id: getattr(query, field) for query in queries}
        return mean_by_group(scores, groups, depth=ranked, relevant=relevant)

    def overall(qrels: Qrels) -> RankingScores:
        return mean_scores(score_queries(run, qrels), qrels, depth=ranked, relevant=_counts(qrels))

    return IdiolinkMetrics(
        split=dataset.split,
        composition=dataset.composition,
        model=model,
        query_mode=query_mode,
        seed=seed,
        dataset_is_released=dataset.released,
        overall=mean_scores(scores, scores, depth=ranked, relevant=relevant),
        by_usage=by("usage"),
        by_subject=by("subject"),
        by_pie=by("pie"),
        same_meaning_and_subject=overall(both),
        same_subject=overall(subject),
        depth=depth,
        tuning=tuning,
        computed_from=computed_from,
        conditions=conditions,
    )


def _counts(qrels: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    return {query: len(documents) for query, documents in qrels.items()}
