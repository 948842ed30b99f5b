"""Test `benchmarks/jam/printed_runs.py`, which finds runs consistent with the printed tables."""

import runpy
from collections import Counter
from typing import Any

import pytest
from support import ROOT

PUBLISHED = ROOT / "published"


@pytest.fixture(scope="module")
def program() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "benchmarks/jam/printed_runs.py"))


def test_drifts_over_seeds_are_means_of_rounded_values(program: dict[str, Any]) -> None:
    """Integers explain multi-seed rows only if each seed's value is rounded first."""
    originals = program["printed_originals"](PUBLISHED)
    solve = program["solve"]
    rows = program["printed_rows"](PUBLISHED)
    solutions = {key: solve(key, cells, originals[key[2]]) for key, cells in rows.items()}
    assert Counter((len(row.seeds), row.rounded) for row in solutions.values()) == {
        (1, False): 16,
        (3, True): 16,
        (5, True): 4,
    }


def test_row_without_an_integer_solution_is_rejected(program: dict[str, Any]) -> None:
    key = ("zero_shot", "GPT-4o", "english")
    cells = program["printed_rows"](PUBLISHED)[key] | {"success": 484.0}
    with pytest.raises(ValueError, match="no runs give the cells of"):
        program["solve"](key, cells, program["printed_originals"](PUBLISHED)["english"])
