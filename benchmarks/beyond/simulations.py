"""Simulate the level and power of the tests that compare custom prompts.

Usage: python benchmarks/beyond/simulations.py (about two minutes on one core)

Simulated runs are passed to the functions behind paper_tables/jam_prompts and idiots_bias;
docs/beyond.md summarizes the printed lines. Each original has three variants of correlated
difficulty: its flip probability is drawn from a beta distribution with the given mean and
a + b = 2, so that two variants of an original have a correlation of 1/3.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from pieline.beyond.idiots.metrics import swap_test
from pieline.studies.jam.metrics.drift import compare_shares

ORIGINALS, VARIANTS = 178, 3
PIES, SENTENCES = 93, (164, 86)
SIMULATIONS, LEVEL = 2000, 0.05
AT_ONCE = 200
Numbers = NDArray[np.float64]


def drift_p_values(first: float, second: float, *, simulations: int, seed: int) -> Iterator[float]:
    """Yield p-values for two prompts with these drifts, on originals that are hard for both.

    The flipped variants are drawn separately for each prompt, in proportion to its drift.
    """
    random = np.random.default_rng(seed)
    high = max(first, second)
    for _ in range(0, simulations, AT_ONCE):
        hard = random.beta(2 * high, 2 * (1 - high), (AT_ONCE, ORIGINALS))
        flips = [random.binomial(VARIANTS, hard * drift / high) for drift in (first, second)]
        base = np.full(ORIGINALS, float(VARIANTS))
        parts = {
            (number, side): np.array([base, flips[side][number]])
            for number in range(AT_ONCE)
            for side in (0, 1)
        }
        pairs = [((number, 0), (number, 1)) for number in range(AT_ONCE)]
        tests = compare_shares(parts, pairs, permutations=999, seed=0)
        yield from (test.p_value for test in tests.values())


def signal_p_values(
    d_primes: tuple[float, float], criteria: tuple[float, float], *, simulations: int, seed: int
) -> Numbers:
    """Return p-values of the differences in d′ and criterion, of shape (simulations, 2).

    The sentences of a PIE share a component of the evidence (variance 0.5), as do both prompts.
    """
    random = np.random.default_rng(seed)
    p_values = []
    each = [np.bincount(np.arange(number) % PIES, minlength=PIES) for number in SENTENCES]
    for number in range(simulations):
        shared = random.normal(0, 0.5**0.5, (2, PIES))
        sides = []
        for d_prime, criterion in zip(d_primes, criteria, strict=True):
            means = (d_prime / 2 - criterion, -d_prime / 2 - criterion)
            # The total variance of the evidence is 1.
            yes = [
                random.binomial(each[kind], norm.cdf((means[kind] + shared[kind]) / 0.5**0.5))
                for kind in (0, 1)
            ]
            sides.append(np.stack([yes[0], each[0], yes[1], each[1]], axis=1).astype(float))
        p_values.append(swap_test(*sides, permutations=999, seed=number))
    return np.array(p_values)


def rejection_rate(p_values: Iterator[float] | Numbers) -> str:
    """Return the percentage of p-values at or below the level, as text."""
    return f"{100 * np.mean(np.array(list(p_values)) <= LEVEL):.1f}%"


def power(drift: float) -> float:
    """Return the smallest decrease from a drift, in steps of 0.005, with 80% power; else NaN."""
    step = 0.005
    low = drift - step
    while low > 0:
        p_values = list(drift_p_values(drift, low, simulations=600, seed=2))
        if np.mean(np.array(p_values) <= LEVEL) >= 0.8:
            return drift - low
        low -= step
    return float("nan")


def main() -> None:
    """Print the level of each test and the power of both tests."""
    print(f"level at {LEVEL:.0%}, over {SIMULATIONS:,} simulations without a difference")
    for drift in (0.05, 0.10, 0.30):
        p_values = drift_p_values(drift, drift, simulations=SIMULATIONS, seed=1)
        print(f"  drift {drift:.0%}, {ORIGINALS} originals: {rejection_rate(p_values)}")
    for criteria in ((0.0, 0.0), (-0.5, -0.5), (0.0, -0.5)):
        p_values = signal_p_values((1.5, 1.5), criteria, simulations=SIMULATIONS, seed=1)
        description = f"d′ 1.5 twice, criteria {criteria[0]:g} and {criteria[1]:g}"
        print(
            f"  {description}: d′ {rejection_rate(p_values[:, 0])},"
            f" criterion {rejection_rate(p_values[:, 1])}"
        )
    print("difference found at 80%")
    for drift in (0.10, 0.20, 0.30):
        print(
            f"  from a drift of {drift:.0%}, {ORIGINALS} originals: {100 * power(drift):.1f} points"
        )
    for change in (0.3, 0.5, 0.7):
        p_values = signal_p_values((1.5, 1.5 + change), (0, 0), simulations=600, seed=3)
        moved = signal_p_values((1.5, 1.5), (0, -change / 2), simulations=600, seed=3)
        print(
            f"  {PIES} PIEs: d′ higher by {change} found in {rejection_rate(p_values[:, 0])},"
            f" c lower by {change / 2:g} in {rejection_rate(moved[:, 1])}"
        )


if __name__ == "__main__":
    main()
