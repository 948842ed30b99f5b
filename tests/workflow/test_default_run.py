"""The default run: it makes every table, is reproducible, and a second call does nothing."""

import csv
import re
from pathlib import Path

from support import output_digests, run_snakemake


def test_makes_every_idiolink_table_and_figure(default_run: Path) -> None:
    made = output_digests(default_run)
    for name in (
        "idiolink_zero_shot.tex",
        "idiolink_zero_shot.csv",
        "idiolink_bm25.tex",
        "idiolink_bm25.csv",
        "idiolink_ablation.tex",
        "idiolink_ablation.csv",
        "figures/idiolink_modes.pdf",
        "figures/idiolink_modes.png",
    ):
        assert f"paper_tables/{name}" in made


def test_the_output_is_short(default_run: Path) -> None:
    shown = (default_run.parent / "stderr.txt").read_text(encoding="utf-8").splitlines()
    assert len(shown) < 250
    assert max(map(len, shown)) <= 200
    assert not [line for line in shown if "it/s]" in line], "bars that libraries draw into a pipe"
    assert any(re.search(r": idiolink_metrics (\d+) of \1$", line) for line in shown), shown
    logs = list((default_run / ".snakemake/log").iterdir())
    assert "rule idiolink_metrics:\n    input: " in "".join(map(Path.read_text, logs))


def test_second_call_does_nothing(default_run: Path) -> None:
    # Without a lock, which would be part of other tests' copies of this folder.
    result = run_snakemake(default_run, "--cores", "2", "--nolock", "all")
    assert result.returncode == 0
    assert "Nothing to be done" in result.stdout + result.stderr


def test_sample_numbers_are_never_comparable(default_run: Path) -> None:
    tables = sorted((default_run / "paper_tables").glob("idiolink_*.csv"))
    assert tables
    for table in tables:
        with table.open() as stream:
            rows = list(csv.DictReader(stream))
        assert rows
        assert {row["comparable"] for row in rows} == {"no"}
        assert all(row["reason"] for row in rows)


def test_models_that_were_not_run_have_a_reason_but_no_number(default_run: Path) -> None:
    with (default_run / "paper_tables/idiolink_zero_shot.csv").open() as stream:
        rows = [row for row in csv.DictReader(stream) if row["model"] == "contriever"]
    assert len(rows) == 8
    assert {row["ours"] for row in rows} == {""}
    assert {row["reason"] for row in rows} == {"not run: not in this configuration"}


def test_outputs_contain_no_absolute_path(default_run: Path) -> None:
    texts = [
        *(default_run / "paper_tables").glob("*.*"),
        *(default_run / "results").rglob("*.json*"),
    ]
    assert texts
    for path in texts:
        assert str(default_run).encode() not in path.read_bytes(), path
