"""Final outputs of the default run: claims, numbers, page, document and provenance."""

import json
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import pandas as pd
import pytest
from browser import browser, needs_browser
from support import succeed

from pieline.core.files import sha256
from pieline.core.sidecars import is_sidecar
from pieline.reporting.numbers import read_numbers
from pieline.results.numbers import NOWHERE, counted, summarize

# The small run's page is tested with every combination of these.


def tables_in(folder: Path) -> set[str]:
    """Return the tables with numbers of a run."""
    numbers = read_numbers(folder / "paper_tables/numbers.csv")
    return {table for number in numbers if number.ours is not None for table in number.tables}


def test_every_table_is_in_the_frame(default_run: Path) -> None:
    """A table's CSV has its rows of the frame; a table of texts has other columns."""
    folder = default_run / "paper_tables"
    csvs = {path.stem: pd.read_csv(path, dtype=str).fillna("") for path in folder.glob("*.csv")}
    latex = {path.stem for path in folder.glob("*.tex")} - {"claims", "comparison", "paper"}
    frame, keys = csvs.pop("numbers"), ["study", "model", "setting", "measure", "seed"]
    of_texts = {name for name in latex if "verdict" not in csvs[name]}
    assert latex - of_texts >= tables_in(default_run)
    for name in latex - of_texts:
        rows = frame[[name in tables.split() for tables in frame["tables"]]]
        shown = [key for key in keys if key in csvs[name]]
        assert {*csvs[name][shown].itertuples(index=False, name=None)} <= {
            *rows[shown].itertuples(index=False, name=None)
        }, name


def test_every_printed_number_is_in_our_tables(default_run: Path) -> None:
    numbers = counted(read_numbers(default_run / "paper_tables/numbers.csv"))
    assert len(numbers) == 989
    assert all(number.reason and number.needs for number in numbers)
    assert {number.reason for number in numbers if not number.tables} == {NOWHERE}


def test_nothing_is_judged_on_sample_data(default_run: Path) -> None:
    """No claim is judged and no number is compared on sample data."""
    ledger = json.loads((default_run / "paper_tables/claims.json").read_text(encoding="utf-8"))
    assert set(ledger["counts"]["ours"]) <= {"not comparable", "not run"}
    numbers = read_numbers(default_run / "paper_tables/numbers.csv")
    assert {number.verdict for number in numbers} == {"not comparable", "not run"}
    assert all(number.reason for number in numbers)


def test_the_pages_totals_are_those_of_the_frame(default_run: Path) -> None:
    folder = default_run / "paper_tables"
    summary = f"{summarize(read_numbers(folder / 'numbers.csv'))}."
    for name in ("index.html", "comparison.tex"):
        assert summary in (folder / name).read_text(encoding="utf-8")


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
        if path.is_file() and "weights" not in path.parts and not is_sidecar(str(path))
    }
    assert {file["path"] for file in record["raw_files"]} == raw
    for file in [*record["raw_files"], *record["recordings"], *record["outputs"]]:
        assert sha256(default_run / file["path"]) == file["sha256"], file["path"]
    listed = {file["path"] for file in record["outputs"]}
    assert {f"paper_tables/{table}.csv" for table in tables_in(default_run)} <= listed
    assert {"paper_tables/index.html", "paper_tables/numbers.parquet"} <= listed
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
