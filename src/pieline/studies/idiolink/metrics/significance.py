"""Do two query modes or two models differ on the same queries? A paired randomization test.

The queries of a PIE share its meaning and its documents, so they are hard or easy together: PIEs
are drawn, not queries.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import fsum

import numpy as np
from numpy.typing import NDArray

from pieline.core.conditions import MetricRecord
from pieline.core.records import Record
from pieline.core.significance import holm, randomization_test
from pieline.core.uncertainty import Interval, ratio_interval
from pieline.studies.idiolink.metrics.ranking import MEASURES, QueryScores, RankingScores

METRICS = tuple(MEASURES)


class RankingComparison(Record):
    """Two query modes of a model, or two models in a query mode, by one metric.

    `difference` is the second's mean minus the first's (fraction), `interval` its bootstrap
    interval over PIEs, null with a single one. `p_value` is two-sided; `p_holm` is corrected (Holm,
    1979) for all pairs that are tested together. All are null where the metric of some query is
    unknown.
    """

    first: str
    second: str
    metric: str
    difference: float | None = None
    interval: Interval | None = None
    p_value: float | None = None
    p_holm: float | None = None


class ModeSignificance(MetricRecord):
    """All pairs of query modes of one model and seed.

    Attributes:
        queries, pies: how many queries of how many PIEs; the PIEs are what is drawn.
        patterns: of signs over the PIEs in the test: drawn, or all 2^PIEs where those are no more.
        resamples: of the PIEs, behind the intervals.
    """

    split: str
    model: str
    seed: int
    queries: int
    pies: int
    patterns: int
    resamples: int
    dataset_is_released: bool
    comparisons: list[RankingComparison]


def compare_modes(
    scores: Mapping[str, QueryScores],
    pies: Mapping[str, str],
    *,
    permutations: int,
    resamples: int,
    seed: int,
) -> list[RankingComparison]:
    """Test every pair of query modes by both metrics over the same queries.

    Args:
        scores: of each query, by query mode, in the order in which pairs are to be told.
        pies: the PIE of each query.
        permutations: sign patterns at most (see `randomization_test`).
        resamples: of the PIEs, for the intervals.
        seed: of both; the same draws serve every pair.
    """
    pairs = list(combinations(scores, 2))
    queries = sorted(pies)
    _, members = np.unique([pies[query] for query in queries], return_inverse=True)
    sizes = np.bincount(members).tolist()
    result = []
    for metric in METRICS:
        values = {
            mode: np.array([found[query][metric] for query in queries], dtype=float)
            for mode, found in scores.items()
        }
        sums = np.array(
            [
                np.bincount(members, weights=values[second] - values[first])
                for first, second in pairs
            ]
        )
        result += _compare(
            metric, pairs, sums, sizes, permutations=permutations, resamples=resamples, seed=seed
        )
    return result


def compare_models(
    scores: Mapping[str, Mapping[str, RankingScores]],
    *,
    permutations: int,
    resamples: int,
    seed: int,
) -> list[RankingComparison]:
    """Test every pair of models by both metrics over the same queries, in one query mode.

    Args:
        scores: of each PIE, by model, in the order in which pairs are listed.
        permutations: sign patterns at most (see `randomization_test`).
        resamples: of the PIEs, for the intervals.
        seed: of both; the same draws serve every pair.
    """
    pairs = list(combinations(scores, 2))
    of_one = next(iter(scores.values()))
    pies = sorted(of_one)
    sizes = [of_one[pie].queries for pie in pies]
    result = []
    for metric in METRICS:
        means = {
            model: np.array([getattr(found[pie], metric) for pie in pies], dtype=float)
            for model, found in scores.items()
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
    """Test pairs by one metric.

    `sums` has the shape (pairs, PIEs): the differences between the two, summed over the queries of
    a PIE, of which there are `sizes`.
    """
    if np.isnan(sums).any():
        return [
            RankingComparison(first=first, second=second, metric=metric) for first, second in pairs
        ]
    chances = randomization_test(sums, permutations=permutations, seed=seed).tolist()
    return [
        RankingComparison(
            first=first,
            second=second,
            metric=metric,
            # From Python 3.12 on, sum() rounds otherwise.
            difference=fsum(of_pies) / sum(sizes),
            interval=ratio_interval(of_pies, sizes, resamples=resamples, seed=seed),
            p_value=chance,
            p_holm=corrected,
        )
        for (first, second), of_pies, chance, corrected in zip(
            pairs, sums.tolist(), chances, holm(chances), strict=True
        )
    ]
