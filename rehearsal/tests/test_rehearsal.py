"""A complete rehearsal at the small size: every job, table and page."""

import csv
import os
import re
from pathlib import Path

import pytest
from support import ROOT, run_snakemake

from pieline.core.files import read_text
from pieline.reporting.models import REHEARSAL_NOTE

pytestmark = pytest.mark.skipif(
    "PIELINE_REHEARSE" not in os.environ,
    reason="1,843 jobs: set PIELINE_REHEARSE=1 to run them",
)
ARGUMENTS = ("--configfile", "config/rehearsal.yaml", "--config", "rehearsal={size: small}")
MARK = REHEARSAL_NOTE.partition(":")[0]


@pytest.fixture(scope="module")
def rehearsal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run a small rehearsal and return its folder."""
    folder = tmp_path_factory.mktemp("rehearsal")
    arguments = ("--cores", "2", "--directory", str(folder), *ARGUMENTS, "--", "all")
    result = run_snakemake(ROOT, *arguments, as_users_do=True)
    assert result.returncode == 0, (result.stdout + result.stderr)[-4000:]
    return folder


def compared(folder: Path) -> list[dict[str, str]]:
    text = read_text(folder / "paper_tables/comparison.csv")
    return [row for row in csv.DictReader(text.splitlines()) if row["printed"]]


def test_every_output_is_marked_as_a_rehearsal(rehearsal: Path) -> None:
    tables = rehearsal / "paper_tables"
    # Tables without printed numbers have no rows in the comparison.
    texts = [*tables.glob("*.html"), *tables.glob("html/*.html"), *tables.glob("*.tex")]
    assert len(texts) > 50
    assert [path.name for path in texts if MARK not in read_text(path)] == []
    assert all(row["reason"].startswith(REHEARSAL_NOTE) for row in compared(rehearsal))


def test_every_model_of_the_papers_is_run(rehearsal: Path) -> None:
    # Empty cells are undefined (no original was correctly judged) or were never published.
    empty = {row["reason"] for row in compared(rehearsal) if row["verdict"] == "not run"}
    assert [
        reason for reason in empty if not re.search("no such original|not published", reason)
    ] == []


def test_retrieval_scores_have_the_printed_digits(rehearsal: Path) -> None:
    rows = [row for row in compared(rehearsal) if row["table"] == "idiolink_finetuned"]
    equal = sum(float(row["ours"]) == float(row["printed"]) for row in rows)
    assert len(rows) == 240
    assert equal > 220


def test_the_bill_agrees_with_the_ledger(rehearsal: Path) -> None:
    page = read_text(rehearsal / "paper_tables/rehearsal.html")
    assert "Plumbing complete." in page
    assert "Not covered" in page
    assert re.search(r"The bill and the ledger agree: [\d]+ recorded answers", page)


def test_a_second_run_has_nothing_to_do(rehearsal: Path) -> None:
    again = run_snakemake(ROOT, "-n", "--directory", str(rehearsal), *ARGUMENTS, "--", "all")
    assert "Nothing to be done" in again.stdout + again.stderr
