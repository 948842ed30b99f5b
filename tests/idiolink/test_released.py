"""Reproduction of printed numbers on the real data (IdioLink, Table 2 and appendix E)."""

import csv
import json
from collections import Counter
from pathlib import Path

import pytest
from support import MIRROR, ROOT, needs_mirror, succeed

from pieline.reporting.printed import read_comparisons
from pieline.results.claims.claim import load_claims
from pieline.results.numbers import read_numbers, summarize
from pieline.studies.idiolink.tables.reference import EQUAL, NOT_EQUAL

pytestmark = [needs_mirror, pytest.mark.full]


@pytest.fixture(scope="module")
def released_tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return paper_tables/ of a run as in `make verify`, with fewer resamples for intervals."""
    folder = tmp_path_factory.mktemp("released")
    succeed(
        ROOT,
        *("--cores", "2", "--directory", str(folder), "--configfile", "config/released.yaml"),
        *("--config", f"mirror={MIRROR.resolve()}"),
        *("idiolink={permutations: 100, bootstrap_resamples: 100}", "--"),
        "all",
    )
    return folder / "paper_tables"


def test_eight_cells_of_sbert(released_tables: Path) -> None:
    cells = {
        (row["query_mode"], row["metric"]): row
        for row in read_comparisons(released_tables / "idiolink_zero_shot.csv")
        if row["comparable"] == "yes"
    }
    assert len(cells) == 8
    for (mode, _), row in cells.items():
        assert row["model"] == "sbert"
        if mode in {"sentence", "span"}:
            assert float(row["ours"]) == float(row["printed"]), row
        else:
            assert abs(float(row["difference"])) <= 0.05, row
        assert row["reproduced"] == "yes"


def test_four_cells_of_bm25_and_its_parameters(released_tables: Path) -> None:
    rows = read_comparisons(released_tables / "idiolink_bm25.csv")
    assert len(rows) == 8
    for row in rows:
        assert row["comparable"] == "yes"
        tolerance = 0.0 if row["metric"] in {"k1", "b"} else 0.15
        assert abs(float(row["difference"])) <= tolerance, row


def test_the_run_ends_with_page_ledger_and_comparison(released_tables: Path) -> None:
    """The counts cover all printed numbers; only four of the compared numbers differ."""
    numbers = read_numbers(released_tables / "printed_numbers.csv")
    assert summarize(numbers) == (
        "989 printed numbers: 58 reproduced (12 scores, 44 counts, 2 parameters),"
        " 4 not reproduced, 6 not comparable, 921 not run"
    )
    # The command that makes a number again selects this run, and names no place on this machine.
    commands = {number.command for number in numbers if number.verdict == "reproduced"}
    assert commands
    assert all("--config 'idiolink={" in command for command in commands)
    assert not any(str(MIRROR.resolve()) in command for command in commands)
    failed = [number.what for number in numbers if number.verdict == "not reproduced"]
    assert len(failed) == 4
    differing = ("Different", "people checked")
    assert all(any(part in what for part in differing) for what in failed)
    with (released_tables / "comparison.csv").open(encoding="utf-8") as stream:
        cells = Counter(row["verdict"] for row in csv.DictReader(stream))
    assert (cells["reproduced"], cells["not reproduced"]) == (60, 4)
    ledger = json.loads((released_tables / "claims.json").read_text(encoding="utf-8"))
    assert ledger["counts"]["ours"] == {"holds": 20, "fails": 3, "not run": 146}
    decided = {claim["id"]: claim["ours"]["verdict"] for claim in ledger["claims"]}
    stated = {claim.id: claim.verify for claim in load_claims(ROOT / "published/claims.yaml")}
    for name, verdict in decided.items():
        assert stated[name] == (verdict if verdict in ("holds", "fails") else None), name
    assert (released_tables / "index.html").stat().st_size > 100_000
    page = (released_tables / "index.html").read_text(encoding="utf-8")
    for absent in ("jam-Table-3", "jam-Table-5", "jam-Table-6", "idiolink-Table-5"):
        assert f'id="absent-{absent}"' in page


def test_scores_of_the_released_run(released_tables: Path) -> None:
    """Without instructions, SBERT is equal; with them, the released run used another text."""
    with (released_tables / "idiolink_released.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    sbert = [row for row in rows if row["model"] == "sbert"]
    counts = Counter((row["query_mode"], row["released_verdict"]) for row in sbert)
    for mode in ("sentence", "span"):
        # Overall, by usage, and nDCG@10 by subject, whose R-Precision needs more documents.
        assert (counts[mode, EQUAL], counts[mode, NOT_EQUAL], counts[mode, ""]) == (19, 0, 1)
        with_text = f"instruction_{mode}"
        assert (counts[with_text, EQUAL], counts[with_text, NOT_EQUAL]) == (0, 19)
    bm25 = [row for row in rows if row["model"] == "bm25"]
    assert len(bm25) == 24
    for row in bm25:
        # Ties are in another order.
        most = 0.05 if row["scope"] == "overall" else 0.8
        assert abs(float(row["ours"]) - float(row["released"])) <= most, row
    assert {row["printed"] for row in rows} == {""}
