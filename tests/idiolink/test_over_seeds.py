"""Simulated coverage of the ranges that seeds explain, with seeds from one normal distribution."""

from collections.abc import Iterator
from statistics import fmean, stdev

import numpy as np
import pytest

from pieline.core.uncertainty import Spread, spread
from pieline.reporting.printed import compare
from pieline.reporting.seeds import deviation_ranges, mean_ranges

RUNS = 1500


def pairs(ours: int, *, ddof: int = 1) -> Iterator[tuple[Spread, Spread]]:
    """Yield our spread, over `ours` seeds, and the printed one, over three seeds with `ddof`."""
    random = np.random.default_rng(8)
    for _ in range(RUNS):
        values = random.normal(70, 0.4, size=3)
        printed = Spread(mean=fmean(values), deviation=float(np.std(values, ddof=ddof)), seeds=3)
        yield spread(random.normal(70, 0.4, size=ours).tolist()), printed


def share(verdicts: Iterator[bool]) -> float:
    return float(np.mean(list(verdicts)))


@pytest.mark.parametrize("seeds", [1, 3, 5])
@pytest.mark.parametrize("ddof", [0, 1])
def test_means_of_the_same_distribution_are_reproduced_in_95_percent(seeds: int, ddof: int) -> None:
    coverage = share(
        low <= ours.mean <= high
        for ours, printed in pairs(seeds, ddof=ddof)
        for low, high in mean_ranges(ours, printed, ddof=[ddof], decimals=9).values()
    )
    assert 0.935 < coverage < 0.985


@pytest.mark.parametrize("seeds", [3, 5])
@pytest.mark.parametrize("ddof", [0, 1])
def test_deviations_of_the_same_distribution_are_reproduced_in_95_percent(
    seeds: int, ddof: int
) -> None:
    coverage = share(
        low <= (ours.deviation or 0) <= high
        for ours, printed in pairs(seeds, ddof=ddof)
        for low, high in deviation_ranges(seeds, printed, ddof=[ddof], decimals=9).values()
    )
    assert 0.935 < coverage < 0.965


def test_the_range_of_a_deviation_computed_manually() -> None:
    printed = Spread(mean=42.14, deviation=0.05, seeds=3)
    ranges = deviation_ranges(3, printed, ddof=[1, 0], decimals=2)
    # The 2.5 and 97.5% points of F(2, 2) are 1 / 39 and 39; 0.045 to 0.055 round to 0.05.
    assert ranges["printed with ddof 1"] == pytest.approx((0.045 / 39**0.5, 0.055 * 39**0.5))
    assert ranges["printed with ddof 0"] == pytest.approx(
        (0.045 / 39**0.5 * 1.5**0.5, 0.055 * 39**0.5 * 1.5**0.5)
    )


def test_the_range_of_a_mean_computed_manually() -> None:
    printed = Spread(mean=50.0, deviation=0.3, seeds=3)
    values = [50.2, 50.5, 50.8]
    ((low, high),) = mean_ranges(spread(values), printed).values()
    # Equal deviations: t with four degrees of freedom.
    assert stdev(values) == pytest.approx(0.3)
    assert (50 - low, high - 50) == pytest.approx([2.7764 * 0.3 * (2 / 3) ** 0.5 + 0.005] * 2, 1e-4)
    ((low, high),) = mean_ranges(spread([50.2]), printed).values()
    assert high - 50 == pytest.approx(4.3027 * 0.3 * (4 / 3) ** 0.5 + 0.005, 1e-4)
    constant = Spread(mean=50.0, deviation=0.0, seeds=3)
    ((low, high),) = mean_ranges(Spread(mean=50.0, deviation=0.0, seeds=3), constant).values()
    assert (low, high) == pytest.approx((49.995, 50.005))


def test_the_only_matching_reading_is_reported() -> None:
    printed = Spread(mean=42.14, deviation=0.05, seeds=3)
    ranges = deviation_ranges(3, printed, ddof=[1, 0])
    for ours, reason in (
        (0.1, ""),
        (0.4, "within sampling range only if printed with ddof 0"),
        (0.008, "within sampling range only if printed with ddof 1"),
    ):
        comparison = compare(ours, 0.05, obstacles=[], ranges=ranges)
        assert (comparison.reproduced, comparison.reason) == ("within sampling range", reason)
    assert compare(0.0, 0.05, obstacles=[], ranges=ranges).reproduced == "no"
    assert compare(0.1, 0.05, obstacles=["sample data"], ranges=ranges).reason == "sample data"
