"""Test differences between two query modes or two models on the same queries.

The paired randomization tests flip the signs of whole PIEs, and the intervals resample whole PIEs,
because the queries of a PIE share a meaning and documents and are therefore not independent.
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

    The difference, the interval and the p-values are null if the score of some query is unknown.

    Attributes:
        difference: Mean score of `second` minus mean score of `first` (fraction).
        interval: 95% bootstrap interval of the difference over PIEs; null with a single PIE.
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
        lambda comparison: comparison.difference,
        lambda comparison: comparison.interval,
        unit="points",
        unknown=UNKNOWN,
    )


DIFFERENCES = {metric: _difference(metric) for metric in METRICS}
"""Measure that reads the difference from a comparison, by the metric that was compared."""


class ModeSignificance(Measured):
    """Comparisons of all pairs of query modes of one model and seed.

    Attributes:
        queries: Number of queries.
        pies: Number of PIEs, which are resampled with all their queries.
        patterns: Number of sign patterns over PIEs that the tests use: all 2^PIEs patterns, or a
            random sample if there are more than the setting `permutations`.
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
    """Test differences in R-Precision and nDCG@10 between every two query modes.

    Args:
        scores: Scores of each query, by query mode. The second mode of a pair comes after the first
            mode in this mapping.
        pies: PIE of each query, by query id.
        permutations: Maximum number of sign patterns (see `randomization_test`).
        resamples: Number of resamples of the PIEs for the intervals.
        seed: Seed of patterns and resamples, which all pairs share.
    """
    pairs = list(combinations(scores, 2))
    queries = sorted(pies)
    _, pie_numbers = np.unique([pies[query] for query in queries], return_inverse=True)
    queries_per_pie = np.bincount(pie_numbers).tolist()
    comparisons = []
    for metric in METRICS:
        scores_by_mode = {
            mode: np.array([query_scores[query][metric] for query in queries], dtype=float)
            for mode, query_scores in scores.items()
        }
        sums_per_pie = []
        for first, second in pairs:
            differences = scores_by_mode[second] - scores_by_mode[first]
            sums_per_pie.append(np.bincount(pie_numbers, weights=differences))
        comparisons += _compare_pairs(
            metric,
            pairs,
            np.array(sums_per_pie),
            queries_per_pie,
            permutations=permutations,
            resamples=resamples,
            seed=seed,
        )
    return comparisons


def compare_models(
    scores: Mapping[str, Mapping[str, RankingScores]],
    *,
    permutations: int,
    resamples: int,
    seed: int,
) -> list[RankingComparison]:
    """Test differences in R-Precision and nDCG@10 between every two models in one query mode.

    Args:
        scores: For each model, the mean scores over the queries of each PIE, by PIE. The second
            model of a pair comes after the first model in this mapping.
        permutations: Maximum number of sign patterns (see `randomization_test`).
        resamples: Number of resamples of the PIEs for the intervals.
        seed: Seed of patterns and resamples, which all pairs share.
    """
    pairs = list(combinations(scores, 2))
    # All models have the same queries.
    any_scores = next(iter(scores.values()))
    pies = sorted(any_scores)
    queries_per_pie = [any_scores[pie].queries for pie in pies]
    comparisons = []
    for metric in METRICS:
        means_by_model = {
            model: np.array([getattr(pie_scores[pie], metric) for pie in pies], dtype=float)
            for model, pie_scores in scores.items()
        }
        sums_per_pie = []
        for first, second in pairs:
            differences = means_by_model[second] - means_by_model[first]
            sums_per_pie.append(differences * queries_per_pie)
        comparisons += _compare_pairs(
            metric,
            pairs,
            np.array(sums_per_pie),
            queries_per_pie,
            permutations=permutations,
            resamples=resamples,
            seed=seed,
        )
    return comparisons


def _compare_pairs(
    metric: str,
    pairs: Sequence[tuple[str, str]],
    sums_per_pie: NDArray[np.float64],
    queries_per_pie: Sequence[int],
    *,
    permutations: int,
    resamples: int,
    seed: int,
) -> list[RankingComparison]:
    """Test all pairs on one metric.

    If the score of some query is unknown, the comparisons contain None instead of results.

    Args:
        metric: Name of the metric.
        pairs: Pairs of query modes or models.
        sums_per_pie: Differences summed over the queries of each PIE, shape (pairs, PIEs).
        queries_per_pie: Number of queries of each PIE.
        permutations: Maximum number of sign patterns.
        resamples: Number of resamples.
        seed: Seed of patterns and resamples.
    """
    if np.isnan(sums_per_pie).any():
        return [
            RankingComparison(first=first, second=second, metric=metric) for first, second in pairs
        ]
    p_values = randomization_test(sums_per_pie, permutations=permutations, seed=seed).tolist()
    corrected_p_values = holm(p_values)
    comparisons = []
    for number, (first, second) in enumerate(pairs):
        sums = sums_per_pie[number].tolist()
        comparisons.append(
            RankingComparison(
                first=first,
                second=second,
                metric=metric,
                # The rounding of sum() changed in Python 3.12.
                difference=fsum(sums) / sum(queries_per_pie),
                interval=ratio_interval(sums, queries_per_pie, resamples=resamples, seed=seed),
                p_value=p_values[number],
                p_holm=corrected_p_values[number],
            )
        )
    return comparisons
