"""Do two query modes differ on the same queries? A paired randomisation test."""

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from pieline.core.conditions import NO_CONDITIONS, Conditions
from pieline.core.records import Record
from pieline.studies.idiolink.metrics.ranking import MEASURES, QueryScores

METRICS = tuple(MEASURES)
_FLIPS_AT_ONCE = 500
_ROUNDING = 1e-9


class ModeComparison(Record):
    """Two query modes by one metric.

    `difference` is the second's mean minus the first's (fraction). `p_value` is
    two-sided; `p_holm` is corrected (Holm, 1979) for all pairs of modes of this model and metric.
    All are null where the metric of some query is unknown.
    """

    first: str
    second: str
    metric: str
    queries: int
    difference: float | None = None
    p_value: float | None = None
    p_holm: float | None = None


class ModeSignificance(Record):
    """All pairs of query modes of one model and seed."""

    split: str
    model: str
    seed: int
    permutations: int
    dataset_is_released: bool
    comparisons: list[ModeComparison]
    computed_from: dict[str, str]
    conditions: Conditions = NO_CONDITIONS


def compare_modes(
    scores: Mapping[str, QueryScores], *, permutations: int, seed: int
) -> list[ModeComparison]:
    """Test every pair of query modes by both metrics over the same queries.

    Args:
        scores: of each query, by query mode, in the order in which pairs are to be told.
        permutations: random sign patterns.
        seed: of the sign patterns; the same ones serve every pair.
    """
    pairs = list(combinations(scores, 2))
    queries = sorted(next(iter(scores.values())))
    result = []
    for metric in METRICS:
        values = {
            mode: np.array([found[query][metric] for query in queries], dtype=float)
            for mode, found in scores.items()
        }
        if np.isnan([*values.values()]).any():
            result += [
                ModeComparison(first=first, second=second, metric=metric, queries=len(queries))
                for first, second in pairs
            ]
            continue
        differences = np.array([values[second] - values[first] for first, second in pairs])
        chances = randomisation_test(differences, permutations=permutations, seed=seed)
        corrected = holm(chances.tolist())
        for place, (first, second) in enumerate(pairs):
            result.append(
                ModeComparison(
                    first=first,
                    second=second,
                    metric=metric,
                    queries=len(queries),
                    difference=float(differences[place].mean()),
                    p_value=float(chances[place]),
                    p_holm=corrected[place],
                )
            )
    return result


def randomisation_test(
    differences: NDArray[np.float64], *, permutations: int, seed: int
) -> NDArray[np.float64]:
    """Two-sided p-values of paired differences: how often do random signs give as large a mean?

    The observed signs count as one of the patterns, so that no p-value is zero.

    Args:
        differences: shape (comparisons, pairs).
        permutations: random sign patterns.
        seed: of the patterns.

    Returns:
        Shape (comparisons,).
    """
    generator = np.random.default_rng(seed)
    count = differences.shape[1]
    # A matrix product adds in another order than a plain sum: equal sums must compare as equal.
    observed = np.abs(differences.sum(axis=1)) - _ROUNDING
    reached = np.zeros(len(differences), dtype=np.int64)
    for start in range(0, permutations, _FLIPS_AT_ONCE):
        rows = min(_FLIPS_AT_ONCE, permutations - start)
        signs = 2.0 * generator.integers(0, 2, size=(rows, count), dtype=np.int8) - 1.0
        reached += (np.abs(differences @ signs.T) >= observed[:, None]).sum(axis=1)
    chances: NDArray[np.float64] = (1 + reached) / (1 + permutations)
    return chances


def holm(chances: Sequence[float]) -> list[float]:
    """P-values corrected for their number by Holm's step-down procedure, in the given order."""
    corrected = [0.0] * len(chances)
    largest = 0.0
    for rank, place in enumerate(sorted(range(len(chances)), key=lambda place: chances[place])):
        largest = max(largest, min(1.0, (len(chances) - rank) * chances[place]))
        corrected[place] = largest
    return corrected
