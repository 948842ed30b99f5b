"""What the results page holds, read as a file."""

import base64
import contextlib
import gzip
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from small_run import make_page, make_run
from support import ROOT

from pieline.core.errors import UserError
from pieline.reporting.evidence import check_metrics
from pieline.reporting.models import REHEARSAL_NOTE
from pieline.results.comparison import read_cells


@pytest.fixture
def small_run(small_page: Path, tmp_path: Path) -> Path:
    """A copy of the small run, that a test may change."""
    return Path(shutil.copytree(small_page.parents[1], tmp_path / "run"))


def script(page: Path, name: str) -> dict[str, Any]:
    """What a file beside the page gives to it."""
    text = (page.parent / "items" / f"{name}.js").read_text(encoding="utf-8")
    found = re.fullmatch(r'pieline\("([\w-]+)", "([\w+/=]+)"\);\n', text)
    assert found
    assert found[1] == name
    result: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(found[2])))
    return result


def behind(page: Path, part: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The metric file whose path holds `part`, and the texts that its evidence names, by file."""
    names = (path.stem for path in (page.parent / "items").glob("[0-9]*.js"))
    (found,) = [item for item in (script(page, name) for name in names) if part in item["path"]]
    return found, {path: script(page, name) for path, name in found["texts"].items()}


def test_the_page_alone_loads_nothing_but_its_figures(small_page: Path) -> None:
    text = small_page.read_text(encoding="utf-8")
    assert re.findall(r'src="([^"]*)"', text) == ["figures/idiolink_modes.png"]
    assert not re.search(r"@import|url\(|fetch\(|XMLHttpRequest|import\(|https?://", text)


def test_every_link_leads_to_a_file_or_a_place(small_page: Path) -> None:
    text = small_page.read_text(encoding="utf-8")
    links = set(re.findall(r'href="([^"]*)"', text)) - {"data:,"}
    places = {link for link in links if link.startswith("#")}
    assert places
    assert all(f'id="{place[1:]}"' in text for place in places)
    # Those are made by rules of their own.
    others = {"paper.tex", "../results/provenance.json"}
    missing = [link for link in links - places - others if not (small_page.parent / link).is_file()]
    assert missing == []
    assert others < links
    makers = {(small_page.parent / link).resolve() for link in links if link.endswith(".py")}
    folder = ROOT / "src/pieline/studies/idiolink"
    assert makers == {folder / "figures/modes.py", folder / "tables/zero_shot.py"}


def test_the_first_screen_says_what_the_run_is(small_page: Path) -> None:
    text = small_page.read_text(encoding="utf-8")
    first = text[text.index("<header>") : text.index('<form class="filters"')]
    assert "A run on the sample data." in first
    assert "make verify" in first
    assert "No cell can be compared with a printed one." in first
    rows = re.findall(r'<a href="#table-(\w+)".*?</tr>', first)
    assert rows == ["jam_drift", "idiots_detection", "idiolink_zero_shot", "idiolink_bm25"]
    # Reasons are said once for a study, and counted.
    assert '<li>no time <span class="soft">(2)</span></li>' in first
    assert '<li>sample data <span class="soft">(2)</span></li>' in first


@pytest.mark.parametrize(
    ("mark", "data", "says"),
    [
        (
            REHEARSAL_NOTE,
            "released",
            f"{REHEARSAL_NOTE}</strong> It shows complete plumbing and reproduces nothing",
        ),
        ("", "released", "A run on mixed data."),
        ("Own data: mine.", "own", "Own data: mine."),
    ],
)
def test_other_runs_say_so(small_run: Path, mark: str, data: str, says: str) -> None:
    with contextlib.chdir(small_run):
        assert says in make_page(mark=mark, data=data).read_text(encoding="utf-8")


def test_the_overview_counts_every_number_once(small_page: Path) -> None:
    text = small_page.read_text(encoding="utf-8")
    tables = [path for path in small_page.parent.glob("*.csv") if path.stem != "claims"]
    told = re.findall(r'<tfoot><tr><th scope="row">all</th>(.*?)<td></td>', text)
    counted = sum(int(number) for row in told for number in re.findall(r"\d+", row))
    assert counted == len(read_cells(tables)) == 6


def test_tables_stand_in_the_papers_layout(small_page: Path) -> None:
    text = small_page.read_text(encoding="utf-8")
    found = re.findall(r'<table class="paper-table" data-name="(\w+)">', text)
    assert found == ["jam_drift", "idiots_detection", "idiolink_zero_shot", "idiolink_bm25"]
    assert "50.00<small>40.88</small>" in text
    assert '<tr class="not-run">' in text


def test_claims_come_after_the_tables_by_verdict(small_page: Path) -> None:
    text = small_page.read_text(encoding="utf-8")
    assert text.index('id="tables"') < text.index('id="claims"')
    verdicts = re.findall(r'<span class="badge [\w-]+">ours: ([\w ]+)</span>', text)
    assert len(verdicts) > 100
    order = ["fails", "holds", "not comparable", "not run", "restates the print"]
    assert set(verdicts) >= {"not run", "restates the print"}
    assert verdicts == sorted(verdicts, key=order.index)


def test_a_number_leads_to_its_own_metric_file(small_page: Path) -> None:
    text = small_page.read_text(encoding="utf-8")
    table = text[text.index('id="table-idiolink_bm25"') :]
    number = re.search(r'data-metrics="(\d+)"', table)
    assert number
    metric = script(small_page, number[1])
    assert metric["path"] == "results/metrics/idiolink/test/bm25/span/seed-0.json"


def test_a_ranking_goes_down_to_marked_documents(small_page: Path) -> None:
    metric, texts = behind(small_page, "/sbert/")
    ranking = metric["evidence"]
    assert ranking["predictions"] in metric["inputs"]
    first, second = ranking["rows"]
    # d1 and d3 carry the idiomatic meaning; the literal query wants d2 and d4.
    assert [item[0] for item in first["best"]] == ["d1", "d2", "d3"]
    assert [item[2] for item in first["best"]] == [1, 0, 1]
    assert [item[2] for item in second["best"]] == [0, 1, 0]
    document = texts[ranking["documents"]]["d1"]
    assert document["parts"] == ["A joke ", "broke the ice", " <b>at</b> last."]
    assert metric["scores"]["overall.r_precision"] == pytest.approx(0.5)


def test_detection_goes_down_to_answers(small_page: Path) -> None:
    metric, texts = behind(small_page, "/idiots/")
    good, bad = metric["evidence"]["rows"]
    assert (good["right"], good["answer"]) == (True, "idiom: spill the beans (tell a secret)")
    # What could not be read is no "no idiom", so it is wrong of a distractor, too.
    assert (bad["right"], bad["answer"]) == (False, "unparseable: no object")
    assert texts[metric["evidence"]["sentences"]]["s2"]["usage"] == "distractor"
    assert metric["evidence"]["recording"] == "recordings/vicuna-7b-zero_shot-0.jsonl"
    assert good["keys"] == ["a" * 12]


def test_identification_goes_down_to_variants(small_page: Path) -> None:
    metric, texts = behind(small_page, "/jam/")
    figurative, literal = metric["evidence"]["rows"]
    told = [(item["sentence"], item["right"], item["answer"]) for item in figurative["sentences"]]
    assert told == [
        ("test-0001", True, "idiom: broke the ice"),
        ("test-0001-v1", False, "no idiom"),
    ]
    assert all(item["right"] for item in literal["sentences"])
    # They were made elsewhere, or their recordings are no longer there.
    assert metric["evidence"]["recording"] is None
    sentences = texts[metric["evidence"]["sentences"]]
    assert sentences["test-0001-v1"]["parts"] == [
        "The lake froze. They ",
        "broke the ice",
        ".",
    ]
    # The PIE of a literal sentence has no tags and is marked all the same.
    assert sentences["test-0002-v1"]["parts"] == [
        "At the party: They ",
        "broke the ice",
        ".",
    ]


def test_the_same_run_gives_the_same_page(small_page: Path, tmp_path: Path) -> None:
    page = make_run(tmp_path)
    made = {path.name: path.read_bytes() for path in page.parent.glob("items/*")}
    assert made == {path.name: path.read_bytes() for path in small_page.parent.glob("items/*")}
    assert page.read_bytes() == small_page.read_bytes()


@pytest.mark.parametrize("change", ["delete", "edit"])
def test_predictions_that_are_not_those_of_the_metrics(small_run: Path, change: str) -> None:
    run = small_run / "results/predictions/idiolink/test/sbert/span/seed-0.run.gz"
    if change == "delete":
        run.unlink()
    else:
        run.write_bytes(run.read_bytes() + b"x")
    metric = "results/metrics/idiolink/test/sbert/span/seed-0.json"
    with contextlib.chdir(small_run), pytest.raises(UserError) as raised:
        check_metrics([metric], {})
    assert str(raised.value).startswith(f"{run.relative_to(small_run)}: ")
    assert f"run snakemake --cores all --forcerun {metric}" in str(raised.value)
