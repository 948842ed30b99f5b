"""One function counts: frame, terminal, page, document, README and the signs in tables agree."""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest
from support import ROOT, succeed

from pieline.reporting.numbers import COMPARED, Number, read_numbers
from pieline.results.numbers import counted, summarize

SIGN = re.compile(r'<td class="([\w-]+)"')
"""Class of a cell whose sign counts; others have a second class."""


def signs_in(folder: Path) -> Counter[tuple[str, str]]:
    """Count the verdicts that tables show and that count, by table."""
    return Counter(
        (path.stem, verdict)
        for path in folder.glob("html/*.html")
        for name in SIGN.findall(path.read_text(encoding="utf-8"))
        if (verdict := name.replace("-", " ")) in COMPARED
    )


def compared(numbers: list[Number]) -> Counter[tuple[str, str]]:
    """Count the numbers that count and were compared, by the table that shows them.

    A deviation has no cell of its own: it is shown behind its mean, whose sign the cell has.
    """
    return Counter(
        (number.tables[0], number.verdict)
        for number in counted(numbers)
        if number.verdict in COMPARED and not number.measure.endswith("_std")
    )


@pytest.mark.full
def test_the_shipped_run_has_the_same_totals_everywhere(tmp_path: Path) -> None:
    result = succeed(
        ROOT,
        *("--cores", "2", "--directory", str(tmp_path), "--configfile", "config/shipped.yaml"),
        *("--config", "idiolink={permutations: 100, bootstrap_resamples: 100}", "--", "all"),
    )
    folder = tmp_path / "paper_tables"
    numbers = read_numbers(folder / "numbers.csv")
    summary = summarize(numbers)
    assert summary == (
        "989 printed numbers: 14 reproduced (12 scores, 2 parameters), 9 within sampling range,"
        " 15 not reproduced, 14 not comparable, 937 not run"
    )
    assert summary in result.stdout + result.stderr
    command = [sys.executable, "tools/report_comparison.py", folder / "numbers.csv", "--brief"]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert printed.stdout == f"{summary}\n"
    for name in ("index.html", "comparison.tex"):
        assert f"{summary}." in (folder / name).read_text(encoding="utf-8")
    frame = pd.read_parquet(folder / "numbers.parquet").query("counts")
    assert len(frame) == 989
    reproduced = int((frame["verdict"] == "reproduced").sum())
    readme = re.sub(r"\s+", " ", (ROOT / "README.md").read_text(encoding="utf-8"))
    agreement = (
        rf"the papers' {len(frame)} numbers, \d+ agree with ours \({reproduced} in `make rep"
    )
    assert re.search(agreement, readme)
    assert signs_in(folder) == compared(numbers)
