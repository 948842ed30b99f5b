"""Comparison of cells with printed numbers, and the summary line."""

import csv
from pathlib import Path
from typing import Any

import pytest
from support import ROOT

from pieline.core.errors import UserError
from pieline.core.files import sha256
from pieline.core.uncertainty import Interval
from pieline.reporting.printed import (
    StatedText,
    compare,
    percent_bounds,
    probability,
    read_comparisons,
    read_published,
    rounded,
    state,
    write_comparisons,
)
from pieline.results.cells import read_cells, write_comparison
from pieline.results.numbers import PrintedNumber, write_numbers_as_latex
from pieline.results.run_results import RunResults

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


def test_verdicts(tmp_path: Path) -> None:
    cells = read_cells(write_tables(tmp_path))
    assert [(cell.table, cell.cell, cell.verdict) for cell in cells] == [
        ("idiolink_zero_shot", "a x", "reproduced"),
        ("idiolink_zero_shot", "b x", "not reproduced"),
        ("idiolink_zero_shot", "c x", "not run"),
        ("idiots_detection", "a_b y", "not comparable"),
    ]
    assert [cell.comparable for cell in cells] == [True, True, False, False]
    assert cells[2].reason == "not run: no key"


def test_cells_within_sampling_range_have_their_own_verdict(tmp_path: Path) -> None:
    path = tmp_path / "jam_drift.csv"
    ranges = {"it deviates so": (1.0, 2.0)}
    rows = [
        ({"model": str(ours)}, compare(ours, 1.5, obstacles=[], ranges=ranges), ())
        for ours in (1.5, 1.504, 1.506, 1.9, 2.1)
    ]
    write_comparisons(path, rows, decimals=3)
    cells = read_cells([path])
    sampled = "within sampling range"
    assert [cell.verdict for cell in cells] == [
        *("reproduced", "reproduced", sampled, sampled, "not reproduced"),
    ]


def test_metric_files_are_the_sources_of_numbers(tmp_path: Path) -> None:
    tables = write_tables(tmp_path)
    cells = read_cells(tables)
    assert cells[0].metrics == (METRICS, "results/a.json")
    assert RunResults(studies=(), cells=tuple(cells)).metric_files() == ["results/a.json", METRICS]


def test_files(tmp_path: Path) -> None:
    cells = read_cells(write_tables(tmp_path))
    table = tmp_path / "comparison.csv"
    write_comparison(table, cells)
    with table.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["verdict"] for row in rows] == [cell.verdict for cell in cells]
    assert list(rows[0].items()) == [
        ("table", "idiolink_zero_shot"), ("cell", "a x"), ("ours", "1.00"), ("printed", "1"),
        ("difference", "0.00"), ("tolerance", "0"), ("verdict", "reproduced"), ("reason", ""),
    ]  # fmt: skip


def printed_number(**fields: str) -> PrintedNumber:
    """Return a printed number of ID10M-JAM."""
    values = {"paper": "jam", "place": "Table 3", "file": "jam_drift", "kind": "score", **fields}
    empty = dict.fromkeys(("model", "what", "printed", "ours", "verdict", "reason"), "")
    return PrintedNumber.model_validate({**empty, "needs": (), **values})


def test_printed_numbers_with_ours_are_listed_in_words(tmp_path: Path) -> None:
    numbers = [
        printed_number(
            what="GPT-4o_mini, English", ours="0.5", printed="0.75", verdict="not reproduced"
        ),
        printed_number(what="GPT-4o", printed="1", verdict="not run"),
    ]
    tex, template = tmp_path / "comparison.tex", ROOT / "templates/comparison.tex.jinja"
    papers = {"jam": "ID10M-JAM", "idiots": "IdioTS"}
    write_numbers_as_latex(tex, numbers, template=template, papers=papers)
    text = tex.read_text(encoding="utf-8")
    assert "2 printed numbers: none reproduced, 1 not reproduced, 1 not run." in text
    row = r"Table 3 & GPT-4o\_mini, English & 0.5 & 0.75 & -0.25 & not reproduced"
    assert row in text
    assert "ID10M-JAM" in text
    assert "IdioTS" not in text
    assert "GPT-4o &" not in text  # without a number of our own
    write_numbers_as_latex(tex, [], template=template, papers=papers)
    assert "This run has no number to compare" in tex.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("ours", "printed", "reason"),
    [
        ("bert-base", "bert-base", "as printed"),
        ("bert base", "bert_base", "spelled differently"),
        ("bert  base", "bert-base", "spelled differently"),
        ("MIT", "MIT License", "spelled differently"),
        ("Llama-4-Community", "Llama 4 Community License Agreement", "spelled differently"),
        ("MIT", "Apache License", "not as printed"),
        ("bert-base", "bert-large", "not as printed"),
        ("bert-base", "", "not stated in the paper"),
        ("", "bert-base", "not as printed"),
    ],
)
def test_a_statement_is_compared_with_the_printed_one(ours: str, printed: str, reason: str) -> None:
    assert state(ours, printed) == StatedText(ours=ours, printed=printed, reason=reason)
    assert state(ours, printed, reason="why").reason == "why"


@pytest.mark.parametrize(
    ("ours", "printed", "options", "reproduced"),
    [
        (1.004, 1.0, {}, "yes"),
        (0.996, 1.0, {}, "yes"),
        (1.006, 1.0, {}, "no"),
        (0.994, 1.0, {}, "no"),
        (1.4, 1.0, {"decimals": 0}, "yes"),
        (1.6, 1.0, {"decimals": 0}, "no"),
        (1.104, 1.0, {"tolerance": 0.1}, "yes"),
        (1.106, 1.0, {"tolerance": 0.1}, "no"),
        # Exactly half a unit, which 42.145 - 42.14 and 18.335 - 18.34 are not in floating point.
        (20.5, 20.0, {"decimals": 0}, "yes"),
        (9.5, 9.0, {"decimals": 0}, "yes"),
        (19.5, 20.0, {"decimals": 0}, "yes"),
        (20.6, 20.0, {"decimals": 0}, "no"),
        *[(n + 0.005, float(n), {}, "yes") for n in (0, 18, 42, 59, 75)],
        (42.145, 42.14, {}, "yes"),
        (18.335, 18.34, {}, "yes"),
        (18.33499, 18.34, {}, "no"),
        (1.155, 1.0, {"tolerance": 0.15}, "yes"),
        (None, 1.0, {}, None),
        (1.0, None, {}, None),
        (1.0, 1.0, {"obstacles": ["sample data"]}, None),
    ],
)
def test_a_number_is_reproduced_within_its_tolerance_and_rounding(
    ours: float | None, printed: float | None, options: dict[str, Any], reproduced: str | None
) -> None:
    comparison = compare(ours, printed, **{"obstacles": [], **options})
    assert comparison.reproduced == reproduced


def test_one_of_several_readings_is_enough() -> None:
    ranges = {"read so": (1.0, 2.0), "read otherwise": (2.0, 3.0)}
    reasons = {
        ours: (comparison.reproduced, comparison.reason)
        for ours in (0.5, 1.0, 2.0, 3.0, 3.5)
        if (comparison := compare(ours, 9.0, obstacles=[], ranges=ranges))
    }
    assert reasons == {
        0.5: ("no", ""),
        1.0: ("within sampling range", "within sampling range only if read so"),
        2.0: ("within sampling range", ""),
        3.0: ("within sampling range", "within sampling range only if read otherwise"),
        3.5: ("no", ""),
    }
    unknown = compare(None, 9.0, obstacles=[], ranges=ranges)
    assert (unknown.readings(), unknown.reproduced) == ([], None)
    assert unknown.allowed() == "1.000 to 2.000 if read so; 2.000 to 3.000 if read otherwise"


def test_every_column_of_a_comparison(tmp_path: Path) -> None:
    rows = [
        ({"id": "a"}, compare(-0.004, 1.5, obstacles=[], tolerance=0.25), ("m.json", "n.json")),
        ({"id": "b"}, compare(-1.5, -1.5, obstacles=[], decimals=1), ()),
        ({"id": "c"}, compare(1.0, None, obstacles=["sample data"]), ()),
        ({"id": "d"}, state("x", "y"), ()),
    ]
    write_comparisons(tmp_path / "t.csv", rows, decimals=2, mark="REHEARSAL:")
    assert (tmp_path / "t.csv").read_text().splitlines() == [
        "id,ours,printed,difference,comparable,tolerance,reproduced,reason,metrics",
        "a,0.00,1.5,-1.50,yes,0.25,no,REHEARSAL:,m.json n.json",
        "b,-1.5,-1.5,0.0,yes,0,yes,REHEARSAL:,",
        "c,1.00,,,no,,,REHEARSAL: sample data; the paper prints no such number,",
        "d,x,y,,no,,,REHEARSAL: not as printed,",
    ]
    write_comparisons(tmp_path / "none.csv", [], decimals=2)
    assert read_comparisons(tmp_path / "none.csv") == []
    (tmp_path / "other.csv").write_text("ours,printed,reproduced\n")
    with pytest.raises(UserError, match=r"other\.csv:1: no column 'comparable'; pass a CSV"):
        read_comparisons(tmp_path / "other.csv")


def test_printed_numbers_are_read_with_their_scales(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("model,size,score,note\na,110M,1.5,big\nb,0.5B,,7\n")
    columns = "texts: [model, size, note], numbers: [score]"
    (tmp_path / "schema.yaml").write_text(
        f"p: {{{columns}, rows: 2, sha256: {sha256(path)}}}", encoding="utf-8"
    )
    assert read_published(path, ["model"]) == {
        ("a",): {"size": 110_000_000, "score": 1.5},
        ("b",): {"size": 500_000_000, "note": 7},
    }
    assert read_published(path, ["note", "model"])["7", "b"] == {"size": 500_000_000}
    with pytest.raises(UserError, match=r"p\.csv: no column 'modle'"):
        read_published(path, ["model", "modle"])


def test_number_formats_in_tables() -> None:
    assert [rounded(value, 1) for value in (1.25, -0.04, -0.06, 0.0, None)] == [
        "1.2", "0.0", "-0.1", "0.0", "",
    ]  # fmt: skip
    assert [probability(value) for value in (0.0009, 0.001, 0.25)] == ["< 0.001", "0.001", "0.250"]
    assert percent_bounds(Interval(low=0.1234, high=0.5), 1) == ("12.3", "50.0")
    assert percent_bounds(None, 1) is None
