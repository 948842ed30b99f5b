"""Comparison of our numbers with printed ones, and the LaTeX table of them."""

from pathlib import Path
from typing import Any

import pytest
from frame_cases import our_number
from support import ROOT

from pieline.core.errors import UserError
from pieline.core.files import sha256
from pieline.reporting.printed import (
    StatedText,
    compare,
    probability,
    read_published,
    rounded,
    state,
)
from pieline.results.numbers import write_numbers_as_latex


def test_printed_numbers_with_ours_are_listed_in_words(tmp_path: Path) -> None:
    keys = {"study": "jam", "place": "Table 3", "setting": "", "language": "english"}
    keys |= {"what": "", "kind": "score", "measure": "success", "scope": "", "decimals": 2}
    numbers = [
        our_number(0.5, "not reproduced", model="gpt", printed=0.75, **keys),
        our_number(None, "not run", model="b", printed=1.0, **keys),
        our_number(3.0, "not comparable", model="c", printed=None, **keys | {"counts": False}),
    ]
    tex, template = tmp_path / "comparison.tex", ROOT / "templates/comparison.tex.jinja"
    papers, labels = {"jam": "ID10M-JAM", "idiots": "IdioTS"}, {"gpt": "GPT-4o_mini"}
    write_numbers_as_latex(tex, numbers, template=template, papers=papers, labels=labels)
    text = tex.read_text(encoding="utf-8")
    assert "2 printed numbers: none reproduced, 1 not reproduced, 1 not run." in text
    row = r"Table 3 & GPT-4o\_mini, English, success count & 0.50 & 0.75 & -0.25 & not reproduced"
    assert row in text
    assert "ID10M-JAM" in text
    assert "IdioTS" not in text
    assert "b, English" not in text  # without a number of our own
    write_numbers_as_latex(tex, [], template=template, papers=papers, labels=labels)
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
