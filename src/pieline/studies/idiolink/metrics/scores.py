"""The metric file of an IdioLink run: overall, by usage, by subject and by PIE."""

from collections import defaultdict
from collections.abc import Mapping

from pieline.core.conditions import NO_CONDITIONS, Conditions
from pieline.core.records import Record
from pieline.core.uncertainty import Interval, ratio_interval
from pieline.studies.idiolink.datasets.dataset import IdiolinkDataset
from pieline.studies.idiolink.metrics.ranking import (
    MEASURES,
    RankingScores,
    Scores,
    mean_scores,
    score_queries,
)
from pieline.studies.idiolink.predictions.bm25_tuning import Tuning
from pieline.studies.idiolink.raw.released import Qrels, meaning_qrels, subject_qrels


class IdiolinkMetrics(Record):
    """Metrics of one run; all scores are fractions.

    `overall`, `by_usage`, `by_subject` and `by_pie` count a document as relevant if it carries the
    query's meaning; `same_meaning_and_subject` if it is, besides, of the query's subject;
    `same_subject` if it is of the query's subject whatever its meaning, which shows how topical
    a ranking is. `intervals` are those of `overall` by metric, from `resamples` draws of the PIEs
    with all their queries; none where the score is unknown or there is a single PIE.
    """

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
    intervals: Mapping[str, Interval] = {}
    resamples: int = 0
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
    resamples: int,
    tuning: Tuning | None,
    computed_from: dict[str, str],
    conditions: Conditions = NO_CONDITIONS,
) -> IdiolinkMetrics:
    """Score a run that ranks `depth` documents for each query of the dataset.

    `seed` is that of the model's training, 0 for a model as published; `resamples` are draws of the
    PIEs for the intervals; the rest goes into the metric file.
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

    def by(field: str) -> dict[str, RankingScores]:
        members = defaultdict(list)
        for query in queries:
            members[getattr(query, field)].append(query.id)
        return {
            group: mean_scores(scores, names, depth=ranked, qrels=meaning)
            for group, names in sorted(members.items())
        }

    def overall(qrels: Qrels) -> RankingScores:
        return mean_scores(score_queries(run, qrels), qrels, depth=ranked, qrels=qrels)

    by_pie = by("pie")
    return IdiolinkMetrics(
        split=dataset.split,
        composition=dataset.composition,
        model=model,
        query_mode=query_mode,
        seed=seed,
        dataset_is_released=dataset.released,
        overall=mean_scores(scores, scores, depth=ranked, qrels=meaning),
        by_usage=by("usage"),
        by_subject=by("subject"),
        by_pie=by_pie,
        same_meaning_and_subject=overall(both),
        same_subject=overall(subject),
        depth=depth,
        tuning=tuning,
        intervals=_intervals(by_pie, resamples),
        resamples=resamples,
        computed_from=computed_from,
        conditions=conditions,
    )


def _intervals(by_pie: Mapping[str, RankingScores], resamples: int) -> dict[str, Interval]:
    """Of both means over queries, when PIEs are drawn."""
    sizes = [scores.queries for scores in by_pie.values()]
    found = {}
    for metric in MEASURES:
        means = [getattr(scores, metric) for scores in by_pie.values()]
        if None not in means:
            sums = [mean * size for mean, size in zip(means, sizes, strict=True)]
            found[metric] = ratio_interval(sums, sizes, resamples=resamples, seed=0)
    return {metric: interval for metric, interval in found.items() if interval}
