"""The default run: it makes every table, is reproducible, and a second call does nothing."""

import re
from pathlib import Path

from support import succeed


def test_the_output_is_short(default_run: Path) -> None:
    shown = (default_run.parent / "stderr.txt").read_text(encoding="utf-8").splitlines()
    assert len(shown) < 250
    assert max(map(len, shown)) <= 200
    assert not [line for line in shown if "it/s]" in line], "bars that libraries draw into a pipe"
    assert any(re.search(r": idiolink_metrics (\d+) of \1$", line) for line in shown), shown
    logs = list((default_run / ".snakemake/log").iterdir())
    assert "rule idiolink_metrics:\n    input: " in "".join(map(Path.read_text, logs))


def test_the_output_ends_with_the_scores_and_the_page(default_run: Path) -> None:
    shown = (default_run.parent / "stderr.txt").read_text(encoding="utf-8").splitlines()
    *_, totals, page = [line for line in shown if not line.startswith(("Complete", "Elapsed"))]
    assert totals == "sample data: compared with no printed number"
    assert page == f"Open {default_run / 'paper_tables/index.html'}"
    scores = next(line for line in shown if line.startswith("  BM25 "))
    assert scores in shown[-40:]


def test_second_call_does_nothing(default_run: Path) -> None:
    # Without a lock, which would be part of other tests' copies of this folder.
    result = succeed(default_run, "--cores", "2", "--nolock", "all")
    assert "Nothing to be done" in result.stdout + result.stderr


def test_outputs_contain_no_absolute_path(default_run: Path) -> None:
    texts = [
        *(default_run / "paper_tables").rglob("*.*"),
        *(default_run / "results").rglob("*.json*"),
    ]
    assert texts
    for path in filter(Path.is_file, texts):
        assert str(default_run).encode() not in path.read_bytes(), path
