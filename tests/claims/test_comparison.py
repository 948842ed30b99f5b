"""Cells beside cells, and the line that counts them."""

import csv
from pathlib import Path

from support import ROOT

from pieline.reporting.printed import compare, write_comparisons
from pieline.results.comparison import metric_files, read_cells, summary, write_comparison

METRICS = "results/metrics/b.json"


def write_tables(folder: Path) -> list[Path]:
    zero_shot, detection = folder / "idiolink_zero_shot.csv", folder / "idiots_detection.csv"
    rows = [
        (
            {"model": "a", "metric": "x"},
            compare(1.001, 1.0, obstacles=[]),
            (METRICS, "results/a.json"),
        ),
        ({"model": "b", "metric": "x"}, compare(1.4, 1.0, obstacles=[]), (METRICS,)),
        ({"model": "c", "metric": "x"}, compare(None, 1.0, obstacles=["not run: no key"]), ()),
    ]
    write_comparisons(zero_shot, rows, decimals=2)
    rows = [({"model": "a_b", "metric": "y"}, compare(0.5, 0.5, obstacles=["sample data"]), ())]
    write_comparisons(detection, rows, decimals=2)
    return [zero_shot, detection]


def test_verdicts_and_summary(tmp_path: Path) -> None:
    cells = read_cells(write_tables(tmp_path))
    assert [(cell.table, cell.cell, cell.verdict) for cell in cells] == [
        ("idiolink_zero_shot", "a x", "reproduced"),
        ("idiolink_zero_shot", "b x", "not reproduced"),
        ("idiolink_zero_shot", "c x", "not run"),
        ("idiots_detection", "a_b y", "not comparable"),
    ]
    assert cells[2].reason == "not run: no key"
    assert summary(cells) == "1 of 2 comparable cells reproduced"


def test_metric_files_are_those_that_numbers_come_from(tmp_path: Path) -> None:
    tables = write_tables(tmp_path)
    assert read_cells(tables)[0].metrics == (METRICS, "results/a.json")
    assert metric_files(tables) == ["results/a.json", METRICS]


def test_files(tmp_path: Path) -> None:
    cells = read_cells(write_tables(tmp_path))
    table, tex = tmp_path / "comparison.csv", tmp_path / "comparison.tex"
    write_comparison(cells, csv=table, tex=tex, template=ROOT / "templates/comparison.tex.jinja")
    with table.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["verdict"] for row in rows] == [cell.verdict for cell in cells]
    text = tex.read_text(encoding="utf-8")
    assert "1 of 2 comparable cells reproduced." in text
    assert r"a\_\allowbreak{}b y & 0.50 & 0.5 & 0.00" in text
    assert "c x" not in text  # nothing of ours stands there


def test_no_tables_at_all(tmp_path: Path) -> None:
    tex = tmp_path / "comparison.tex"
    template = ROOT / "templates/comparison.tex.jinja"
    write_comparison([], csv=tmp_path / "comparison.csv", tex=tex, template=template)
    assert "no cell can be compared with a printed one" in tex.read_text(encoding="utf-8")
