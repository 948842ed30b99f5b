"""Do two query modes differ on the same queries? A paired randomisation test over PIEs.

The queries of a PIE share its meaning and its documents, so they are hard or easy together: PIEs
are drawn, not queries.
"""

from collections.abc import Mapping
from itertools import combinations
from math import fsum

import numpy as np

from pieline.core.conditions import MetricRecord
from pieline.core.records import Record
from pieline.core.significance import holm, randomisation_test
from pieline.core.uncertainty import Interval, ratio_interval
from pieline.studies.idiolink.metrics.ranking import MEASURES, QueryScores

METRICS = tuple(MEASURES)


class ModeComparison(Record):
    """Two query modes by one metric.

    `difference` is the second's mean minus the first's (fraction), `interval` its bootstrap
    interval over PIEs, null with a single one. `p_value` is two-sided; `p_holm` is corrected (Holm,
    1979) for all pairs of modes of this model and metric. All are null where the metric of some
    query is unknown.
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
    comparisons: list[ModeComparison]


def compare_modes(
    scores: Mapping[str, QueryScores],
    pies: Mapping[str, str],
    *,
    permutations: int,
    resamples: int,
    seed: int,
) -> list[ModeComparison]:
    """Test every pair of query modes by both metrics over the same queries.

    Args:
        scores: of each query, by query mode, in the order in which pairs are to be told.
        pies: the PIE of each query.
        permutations: sign patterns at most (see `randomisation_test`).
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
        if np.isnan([*values.values()]).any():
            result += [
                ModeComparison(first=first, second=second, metric=metric) for first, second in pairs
            ]
            continue
        sums = np.array(
            [
                np.bincount(members, weights=values[second] - values[first])
                for first, second in pairs
            ]
        )
        chances = randomisation_test(sums, permutations=permutations, seed=seed).tolist()
        corrected = holm(chances)
        for place, (first, second) in enumerate(pairs):
            of_pies = sums[place].tolist()
            result.append(
                ModeComparison(
                    first=first,
                    second=second,
                    metric=metric,
                    # From Python 3.12 on, sum() rounds otherwise.
                    difference=fsum(of_pies) / len(queries),
                    interval=ratio_interval(of_pies, sizes, resamples=resamples, seed=seed),
                    p_value=chances[place],
                    p_holm=corrected[place],
                )
            )
    return result
