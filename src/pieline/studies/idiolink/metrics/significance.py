"""Paired randomization tests between two query modes or two models on the same queries.

Tests flip signs, and intervals resample, per PIE rather than per query, because the queries of a
PIE share its meaning and documents and are therefore not independent.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import fsum

import numpy as np
from numpy.typing import NDArray

from pieline.core.conditions import Measured
from pieline.core.measures import Measure, share
from pieline.core.records import Record
from pieline.core.significance import holm, randomization_test
from pieline.core.uncertainty import Interval, ratio_interval
from pieline.studies.idiolink.metrics.scores import MEASURES, UNKNOWN, QueryScores, RankingScores

METRICS = tuple(MEASURES)


class RankingComparison(Record):
    """Comparison of two query modes of a model, or of two models in a query mode, on one metric.

    All values are null if the metric of some query is unknown.

    Attributes:
        difference: Mean of the second minus mean of the first (fraction).
        interval: Bootstrap interval of the difference over PIEs; null with a single PIE.
        p_value: Two-sided p-value.
        p_holm: p-value corrected for all pairs that are tested together (Holm, 1979).
    """

    first: str
    second: str
    metric: str
    difference: float | None = None
    interval: Interval | None = None
    p_value: float | None = None
    p_holm: float | None = None


def _difference(metric: str) -> Measure[RankingComparison]:
    return share(
        f"{metric}_difference",
        lambda pair: pair.difference,
        lambda pair: pair.interval,
        unit="points",
        unknown=UNKNOWN,
    )


DIFFERENCES = {metric: _difference(metric) for metric in METRICS}
"""Measures of the differences in each metric."""


class ModeSignificance(Measured):
    """Comparisons of all pairs of query modes of one model and seed.

    Attributes:
        queries: Number of queries.
        pies: Number of PIEs, which are resampled with all their queries.
        patterns: Number of sign patterns over PIEs in the test: all 2^PIEs, or a sample of the
            maximum size if there are more.
        resamples: Number of resamples of the PIEs for the intervals.
    """

    split: str
    model: str
    seed: int
    queries: int
    pies: int
    patterns: int
    resamples: int
    comparisons: list[RankingComparison]


def compare_modes(
    scores: Mapping[str, QueryScores],
    pies: Mapping[str, str],
    *,
    permutations: int,
    resamples: int,
    seed: int,
) -> list[RankingComparison]:
    """Test every pair of query modes on both metrics, using the same queries.

    Args:
        scores: Scores of each query, by query mode; the order of modes determines that of pairs.
        pies: PIE of each query.
        permutations: Maximum number of sign patterns (see `randomization_test`).
        resamples: Number of resamples of the PIEs for the intervals.
        seed: Seed of patterns and resamples, which all pairs share.
    """
    pairs = list(combinations(scores, 2))
    queries = sorted(pies)
    _, members = np.unique([pies[query] for query in queries], return_inverse=True)
    sizes = np.bincount(members).tolist()
    result = []
    for metric in METRICS:
        values = {
            mode: np.array([query_scores[query][metric] for query in queries], dtype=float)
            for mode, query_scores in scores.items()
        }
        differences = [values[second] - values[first] for first, second in pairs]
        summed = np.array([np.bincount(members, weights=each) for each in differences])
        result += _compare(
            metric, pairs, summed, sizes, permutations=permutations, resamples=resamples, seed=seed
        )
    return result


def compare_models(
    scores: Mapping[str, Mapping[str, RankingScores]],
    *,
    permutations: int,
    resamples: int,
    seed: int,
) -> list[RankingComparison]:
    """Test every pair of models on both metrics, using the same queries in one query mode.

    Args:
        scores: Scores of each PIE, by model; the order of models determines that of pairs.
        permutations: Maximum number of sign patterns (see `randomization_test`).
        resamples: Number of resamples of the PIEs for the intervals.
        seed: Seed of patterns and resamples, which all pairs share.
    """
    pairs = list(combinations(scores, 2))
    # All models have the same queries.
    any_scores = next(iter(scores.values()))
    pies = sorted(any_scores)
    sizes = [any_scores[pie].queries for pie in pies]
    result = []
    for metric in METRICS:
        means = {
            model: np.array([getattr(pie_scores[pie], metric) for pie in pies], dtype=float)
            for model, pie_scores in scores.items()
        }
        sums = np.array([(means[second] - means[first]) * sizes for first, second in pairs])
        result += _compare(
            metric, pairs, sums, sizes, permutations=permutations, resamples=resamples, seed=seed
        )
    return result


def _compare(
    metric: str,
    pairs: Sequence[tuple[str, str]],
    sums: NDArray[np.float64],
    sizes: Sequence[int],
    *,
    permutations: int,
    resamples: int,
    seed: int,
) -> list[RankingComparison]:
    """Test all pairs on one metric; if a score is unknown, all values are None.

    Args:
        metric: Name of the metric.
        pairs: Pairs of modes or models.
        sums: Differences summed over the queries of each PIE, shape (pairs, PIEs).
        sizes: Number of queries of each PIE.
        permutations: Maximum number of sign patterns.
        resamples: Number of resamples.
        seed: Seed of patterns and resamples.
    """
    if np.isnan(sums).any():
        return [
            RankingComparison(first=first, second=second, metric=metric) for first, second in pairs
        ]
    p_values = randomization_test(sums, permutations=permutations, seed=seed).tolist()
    return [
        RankingComparison(
            first=first,
            second=second,
            metric=metric,
            # The rounding of sum() changed in Python 3.12.
            difference=fsum(of_pies) / sum(sizes),
            interval=ratio_interval(of_pies, sizes, resamples=resamples, seed=seed),
            p_value=p_value,
            p_holm=corrected,
        )
        for (first, second), of_pies, p_value, corrected in zip(
            pairs, sums.tolist(), p_values, holm(p_values), strict=True
        )
    ]
