"""The MAGPIE reader, and the criteria, bounds, readings and exclusions that select PIEs."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from construction_cases import counts, row, write_rows
from support import MIRROR, ROOT, needs_mirror

from pieline.core.errors import UserError
from pieline.studies.idiolink.originals.pairs import filter_magpie, read_candidates
from pieline.studies.idiolink.originals.pie_filter import (
    FilterOptions,
    FilterThresholds,
    LabelCounts,
    PieVerdict,
    Semantics,
    count_labels,
    filter_pies,
    read_exclusions,
    verdicts_by_interpretation,
)
from pieline.studies.idiolink.raw import read_magpie

PAPER = FilterThresholds()
BOTH = ("paper", "released")


def verdict(label_counts: LabelCounts, semantics: Semantics = "paper") -> PieVerdict:
    return filter_pies({"a PIE": label_counts}, PAPER, semantics, {})[0]


@pytest.mark.parametrize(
    ("label_counts", "failed"),
    [
        (counts(idiomatic=15, literal=15), []),
        (counts(idiomatic=15, literal=14), ["occurrences"]),
        (counts(idiomatic=40, literal=10), ["balance"]),
        (counts(idiomatic=10, literal=40), ["balance"]),
        (counts(idiomatic=15, literal=15, confidence=0.99), ["confidence"]),
        (counts(idiomatic=9, literal=1, confidence=0.5), ["occurrences", "balance", "confidence"]),
        (counts(idiomatic=0, literal=0, other=40), ["balance"]),
    ],
)
def test_each_criterion_alone(label_counts: LabelCounts, failed: list[str]) -> None:
    result = verdict(label_counts)
    assert result.failed == failed
    assert result.kept == (not failed)
    assert len(result.reasons) == len(failed)


@pytest.mark.parametrize(
    ("idiomatic", "literal", "kept"),
    [
        (15, 15, True),  # exactly 30
        (15, 14, False),
        (10, 30, True),  # exactly 25%
        (9, 31, False),
        (30, 10, True),  # exactly 75%
        (31, 9, False),
    ],
)
def test_bounds_are_inclusive(idiomatic: int, literal: int, kept: bool) -> None:
    assert verdict(counts(idiomatic=idiomatic, literal=literal)).kept == kept


def test_the_readings_differ_in_the_denominator() -> None:
    # 10 of the 40 idiomatic and literal ones are 25%; of all 50, 10 are 20% and 30 are 60%.
    label_counts = counts(idiomatic=10, literal=30, other=10)
    assert verdict(label_counts).idiomatic_share == 0.25
    assert verdict(label_counts, "released").idiomatic_share == 0.2
    assert verdict(label_counts).kept
    assert verdict(label_counts, "released").kept


def test_the_released_reading_accepts_either_share() -> None:
    label_counts = counts(idiomatic=5, literal=30, other=15)
    assert verdict(label_counts).failed == ["balance"]
    assert verdict(label_counts, "released").kept
    neither = counts(idiomatic=5, literal=5, other=40)
    assert verdict(neither).kept
    assert verdict(neither, "released").failed == ["balance"]


@pytest.mark.parametrize(
    ("label_counts", "kept"),
    [
        (counts(idiomatic=15, literal=15), {"confident_annotations", "any_confidence", *BOTH}),
        # 40 idiomatic and 40 literal occurrences, of which 39 and 0 are confident.
        (
            counts(idiomatic=40, literal=40, confidence=0.5, confident=39),
            {"released", "any_confidence"},
        ),
        (counts(idiomatic=40, literal=40, confidence=0.5, confident=0), {"any_confidence"}),
        # 30 of 90 are confident, 10 of them literal: only the confident ones are balanced.
        (
            LabelCounts(Counter(i=80, l=10), Counter(i=20, l=10), least_confidence=0.5),
            {"confident_annotations"},
        ),
    ],
)
def test_each_reading_of_the_confidence(label_counts: LabelCounts, kept: set[str]) -> None:
    readings = verdicts_by_interpretation({"a PIE": label_counts}, PAPER, {})
    assert {name for name, (verdict,) in readings.items() if verdict.kept} == kept


def test_counting_reads_labels_and_confidence(tmp_path: Path) -> None:
    rows = [row(id=1), row(id=2, label="l", confidence=0.8), row(id=3, label="f"), row(id=4)]
    path = write_rows(tmp_path / "magpie.jsonl", rows)
    label_counts = count_labels(read_magpie(path), PAPER)["spill the beans"]
    assert (label_counts.idiomatic, label_counts.literal, label_counts.occurrences) == (2, 1, 4)
    assert label_counts.confident == 2
    assert label_counts.least_confidence == 0.8


def test_manual_exclusions_have_a_reason_and_keep_their_number() -> None:
    balanced = {name: counts(idiomatic=20, literal=20) for name in ("b", "a", "c")}
    balanced["aa"] = counts(idiomatic=1, literal=1)
    verdicts = filter_pies(balanced, PAPER, "paper", {"b": "contrived"})
    assert [(item.pie, item.number, item.kept) for item in verdicts] == [
        ("a", 1, True),
        ("aa", None, False),
        ("b", 2, False),
        ("c", 3, True),
    ]
    assert verdicts[2].reasons == ["excluded manually: contrived"]


def test_an_exclusion_of_an_unknown_pie_is_rejected() -> None:
    with pytest.raises(UserError, match="'spil the beans' is not in MAGPIE"):
        filter_pies(
            {"spill the beans": counts(idiomatic=1, literal=1)},
            PAPER,
            "paper",
            {"spil the beans": "typing error"},
        )


def test_a_selected_pie_must_pass_the_filter() -> None:
    label_counts = {"a": counts(idiomatic=20, literal=20), "b": counts(idiomatic=2, literal=2)}
    wanted = filter_pies(label_counts, PAPER, "paper", {}, only=["a"])
    assert [item.kept for item in wanted] == [True, False]
    with pytest.raises(UserError, match="'b' does not pass"):
        filter_pies(label_counts, PAPER, "paper", {}, only=["b"])


@pytest.mark.parametrize(
    ("content", "where"),
    [
        ("idiom\treason\n", ":1: no column 'pie'"),
        ("pie\treason\nring a bell\n", ":2: 1 cell instead of 2"),
        ("pie\treason\nring a bell\tliter", ": no newline at the end of the file"),
        ("pie\treason\nring a bell\t\n", ":2: empty PIE or reason"),
        ("pie\treason\na\tx\na\ty\n", ":3: 'a' occurs twice"),
    ],
)
def test_invalid_exclusions_report_their_line(tmp_path: Path, content: str, where: str) -> None:
    path = tmp_path / "exclusions.tsv"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(UserError) as caught:
        read_exclusions(path)
    assert where in str(caught.value)


def sample_filter(semantics: Semantics) -> dict[str, PieVerdict]:
    sample = ROOT / "data/sample/magpie"
    options = FilterOptions(
        semantics=semantics,
        min_occurrences=8,
    )
    verdicts, pairs, report = filter_magpie(
        sample / "MAGPIE_sample.jsonl",
        sample / "exclusions.tsv",
        options,
        candidates=None,
        documents=[],
        computed_from={},
    )
    assert len(pairs) == 10 * report.kept
    assert report.kept_by_reading == {
        "paper": 8,
        "released": 10,
        "confident_annotations": 8,
        "any_confidence": 9,
    }
    return {item.pie: item for item in verdicts}


def test_the_sample_fails_each_criterion_at_least_once() -> None:
    verdicts = sample_filter("paper")
    failed = {pie: item.failed for pie, item in verdicts.items() if item.failed}
    assert failed == {
        "in a nutshell": ["manual"],
        "in the bag": ["balance"],
        "miss the boat": ["occurrences"],
        "off the hook": ["balance"],
        "ring a bell": ["occurrences"],
        "rock the boat": ["balance"],
        "turn the page": ["confidence"],
    }
    assert sample_filter("released")["off the hook"].kept
    assert sample_filter("released")["turn the page"].kept


@needs_mirror
def test_the_released_list_has_118_candidates_of_which_109_are_valid() -> None:
    candidates = read_candidates(MIRROR / "idiolink/MAGPIE_SOURCE_IDIOMS.csv")
    assert len(candidates) == 118
    assert sum(item.valid for item in candidates) == 109
    # Numbers are assigned in alphabetical order, as for our candidates.
    assert [item.number for item in candidates] == list(range(1, 119))
    assert [item.pie for item in candidates] == sorted(item.pie for item in candidates)


def test_reads_the_sample() -> None:
    occurrences = list(read_magpie(ROOT / "data/sample/magpie/MAGPIE_sample.jsonl"))
    assert len(occurrences) == 143
    assert len({item.idiom for item in occurrences}) == 15
    assert (occurrences[0].idiom, occurrences[0].confidence) == ("break the ice", 1.0)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"label": "x"}, "label"),
        ({"confidence": 1.2}, "confidence"),
        ({"confidence": "1.0"}, "confidence"),
        ({"idiom": ""}, "idiom: blank"),
        ({"idiom": " \t"}, "idiom: blank"),
        ({"id": 1}, "id 1 is already in line 1"),
    ],
)
def test_an_invalid_field_reports_line_and_field(
    tmp_path: Path, changes: dict[str, Any], problem: str
) -> None:
    path = write_rows(tmp_path / "magpie.jsonl", [row(), row(**({"id": 2} | changes)), row(id=3)])
    with pytest.raises(UserError) as caught:
        list(read_magpie(path))
    assert str(caught.value).startswith(f"{path}:2: ")
    assert problem in caught.value.what


@pytest.mark.parametrize("line", [b"", b"{", b"[]", b'{"id": "\xff"}', b"not JSON"])
def test_an_invalid_line_reports_its_number(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "magpie.jsonl"
    path.write_bytes(json.dumps(row()).encode() + b"\n" + line + b"\n")
    with pytest.raises(UserError, match=r"magpie\.jsonl:2: "):
        list(read_magpie(path))


def test_an_empty_file_is_an_error(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "magpie.jsonl", [])
    with pytest.raises(UserError, match=r"magpie\.jsonl:1: the file is empty; download"):
        list(read_magpie(path))


def test_a_file_of_the_real_size_fits_in_300_megabytes(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    program = ROOT / "benchmarks/construction/magpie_filter.py"
    subprocess.run(
        [sys.executable, program, "--output", figures],
        env={"PYTHONPATH": str(ROOT / "src")},
        check=True,
        stdout=subprocess.DEVNULL,
    )
    measured = json.loads(figures.read_text(encoding="utf-8"))
    assert measured["rows"] == 56_622
    assert measured["pies"] == 1_756
    assert measured["kept"] > 0
    assert measured["peak_memory_mb"] < 300
