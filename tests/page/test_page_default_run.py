"""Final outputs of the default run: claims, comparison, page, document and provenance."""

import csv
import json
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest
from browser import browser, needs_browser
from support import succeed

from pieline.core.files import sha256
from pieline.results.numbers import read_numbers

# The small run's page is tested with every combination of these.


def test_every_table_is_compared(default_run: Path) -> None:
    with (default_run / "paper_tables/comparison.csv").open(encoding="utf-8") as stream:
        compared = {row["table"] for row in csv.DictReader(stream)}
    latex = {path.stem for path in (default_run / "paper_tables").glob("*.tex")}
    assert latex - {"claims", "comparison", "paper", "idiots_prompt"} == compared


def test_every_printed_number_is_in_our_tables(default_run: Path) -> None:
    numbers = read_numbers(default_run / "paper_tables/printed_numbers.csv")
    assert [number.what for number in numbers if "no such row" in number.reason] == []
    assert all(number.needs for number in numbers)


def test_nothing_is_judged_on_sample_data(default_run: Path) -> None:
    """No claim is judged and no cell is compared on sample data."""
    ledger = json.loads((default_run / "paper_tables/claims.json").read_text(encoding="utf-8"))
    assert set(ledger["counts"]["ours"]) <= {"not comparable", "not run"}
    with (default_run / "paper_tables/comparison.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert {row["verdict"] for row in rows} <= {"not comparable", "not run"}
    assert all(row["reason"] for row in rows)


def test_the_page_shows_every_table_and_figure(default_run: Path) -> None:
    text = (default_run / "paper_tables/index.html").read_text(encoding="utf-8")
    tables = default_run / "paper_tables"
    for path in tables.glob("*.tex"):
        if path.stem not in ("claims", "comparison", "paper"):
            assert f'id="table-{path.stem}"' in text, path.stem
    assert text.count('<img src="figures/') == len(list((tables / "figures").glob("*.png")))
    assert (tables / "index.html").stat().st_size < 3_000_000


def test_provenance_has_every_raw_file_and_every_output(default_run: Path) -> None:
    record = json.loads((default_run / "results/provenance.json").read_text(encoding="utf-8"))
    raw = {
        str(path.relative_to(default_run))
        for path in (default_run / "results/raw").rglob("*")
        if path.is_file() and "weights" not in path.parts and not path.match("*.evidence.json")
    }
    assert {file["path"] for file in record["raw_files"]} == raw
    for file in [*record["raw_files"], *record["recordings"], *record["outputs"]]:
        assert sha256(default_run / file["path"]) == file["sha256"], file["path"]
    listed = {file["path"] for file in record["outputs"]}
    with (default_run / "paper_tables/comparison.csv").open(encoding="utf-8") as stream:
        compared = {f"paper_tables/{row['table']}.csv" for row in csv.DictReader(stream)}
    assert compared <= listed
    assert "paper_tables/index.html" in listed
    assert record["recordings"], "the language models' answers are recorded"


@pytest.mark.full
def test_the_report_has_every_table_and_figure(default_run: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.zip"
    succeed(default_run, "--nolock", "--report", str(report))
    tables = default_run / "paper_tables"
    wanted = {path.name for path in [*tables.glob("*.csv"), *tables.glob("figures/*.png")]}
    with zipfile.ZipFile(report) as archive:
        inside = {Path(name).name for name in archive.namelist()}
    assert wanted | {"index.html"} <= inside


@pytest.mark.skipif(
    not all(map(shutil.which, ("pdflatex", "pdftotext"))),
    reason="no pdflatex or no pdftotext on this machine (apt-get install poppler-utils)",
)
def test_the_document_fits_its_pages_and_can_be_searched(default_run: Path) -> None:
    document = default_run / "paper_tables/paper.pdf"

    def read(*command: str) -> str:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    fonts = read("pdffonts", str(document)).splitlines()[2:]
    assert fonts
    assert [font for font in fonts if "Type 3" in font or " yes " not in font] == []
    text = read("pdftotext", str(document), "-")
    assert "not in this configuration" in text
    assert "conguration" not in text
    words = read("pdftotext", "-bbox", str(document), "-")
    [width] = set(re.findall(r'<page width="([\d.]+)"', words))
    margin = 1.8 / 2.54 * 72
    outside = [
        word
        for left, right, word in re.findall(r'xMin="(\S+)" .* xMax="(\S+)" .*>(.*)</word>', words)
        if float(left) < margin - 2 or float(right) > float(width) - margin + 2
    ]
    assert outside == []


@pytest.mark.skipif(
    not all(map(shutil.which, ("pdflatex", "pdftohtml"))),
    reason="no pdflatex or no pdftohtml on this machine (apt-get install poppler-utils)",
)
def test_no_type_in_the_document_is_smaller_than_6_points(default_run: Path) -> None:
    document = default_run / "paper_tables/paper.pdf"
    # Sizes are integers, so enlarge them as far as the program can.
    command = ["pdftohtml", "-xml", "-i", "-zoom", "3", "-stdout", str(document)]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    sizes = {int(size) for size in re.findall(r'<fontspec [^>]*size="(\d+)"', result.stdout)}
    assert min(sizes) >= 3 * 6


@pytest.mark.full
@needs_browser
def test_a_number_of_each_study_opens_sentences(default_run: Path, tmp_path: Path) -> None:
    page = default_run / "paper_tables/index.html"
    with browser(tmp_path) as window:
        window.open(page)
        for table in ("jam_drift", "idiots_detection", "idiolink_zero_shot", "idiolink_finetuned"):
            window.evaluate(f"document.querySelector('#table-{table} td[data-metrics]').click()")
            window.wait_for("dialog .sentence")
            window.evaluate("document.querySelector('#behind').replaceChildren()")
        assert window.problems == []
        beside = page.parent.as_uri()
        assert all(url.startswith(("data:", "blob:", f"{beside}/")) for url in window.requests)
