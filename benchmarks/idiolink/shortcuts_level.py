"""Measure how often the interval of the partial correlation excludes 0 in simulated test splits.

Each of 75 PIEs has ten queries per usage. The ease of a PIE and usage affects both overlap and
nDCG@10. The additional effect of a query's overlap on its nDCG@10 varies by PIE (standard
deviation 0.1) around a mean effect, which is 0 in the null simulations.

    python benchmarks/idiolink/shortcuts_level.py
"""

from pathlib import Path

import numpy as np

from pieline.beyond.idiolink.metrics import partial_correlation
from pieline.core.files import write_json
from pieline.core.uncertainty import draw_units

PIES, EACH, RESAMPLES = 75, 10, 300
STUDIES = {0.0: 2000, 0.05: 500, 0.1: 500, 0.15: 500}
"""Number of simulations by effect."""


def main() -> None:
    """Run the simulations and save the result next to this file."""
    random = np.random.default_rng(1)
    pies = np.repeat(np.arange(PIES), 2 * EACH)
    cells = np.repeat(np.arange(2 * PIES), EACH)
    resamples = draw_units([0] * PIES, resamples=RESAMPLES, seed=0)
    results = []
    for effect, studies in STUDIES.items():
        values, rejected = [], []
        for _ in range(studies):
            easy = np.repeat(random.normal(size=2 * PIES), EACH)
            own = random.normal(size=len(pies))
            slopes = effect + 0.1 * random.normal(size=PIES)
            ndcg = np.clip(easy + slopes[pies] * own + random.normal(size=len(pies)), 0, 2)
            measured = partial_correlation(easy + own, ndcg, cells, resamples[:, pies])
            assert measured.value is not None and measured.interval
            values.append(measured.value)
            rejected.append(not measured.interval.low <= 0 <= measured.interval.high)
        results.append(
            {
                "effect": effect,
                "studies": studies,
                "mean_correlation": round(float(np.mean(values)), 3) + 0.0,
                "interval_leaves_out_0_pct": round(100 * float(np.mean(rejected)), 1),
            }
        )
    write_json(Path(__file__).with_suffix(".json"), results)


if __name__ == "__main__":
    main()
