"""The MAGPIE reader accepts valid lines and reports invalid ones with their number."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from construction_cases import row, write_rows
from support import ROOT

from pieline.core.errors import UserError
from pieline.studies.idiolink.raw.magpie import read_magpie


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


def test_a_missing_file_gives_a_one_line_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        list(read_magpie(tmp_path / "none.jsonl"))


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
