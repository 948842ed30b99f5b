"""What the results page holds, read as a file."""

import contextlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from small_run import make_page, make_run

from pieline.core.errors import UserError
from pieline.reporting.evidence import spread


def evidence(page: Path) -> dict[str, Any]:
    text = page.read_text(encoding="utf-8")
    found = re.search(r'<script type="application/json" id="evidence">(.*?)</script>', text)
    assert found
    result: dict[str, Any] = json.loads(found[1])
    return result


def behind(page: Path, part: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The metric file whose path holds `part`, and the texts of the page."""
    data = evidence(page)
    (found,) = [item for item in data["files"].values() if part in item["path"]]
    return found, data["texts"]


def test_the_page_loads_nothing(small_page: Path) -> None:
    text = small_page.read_text(encoding="utf-8")
    sources = re.findall(r'(?:src|href|action|srcset)="([^"]*)"', text)
    assert sources
    assert [source for source in sources if not source.startswith(("#", "data:"))] == []
    assert not re.search(r"@import|url\(|fetch\(|XMLHttpRequest|import\(", text)


def test_tables_stand_in_the_papers_layout(small_page: Path) -> None:
    text = small_page.read_text(encoding="utf-8")
    found = re.findall(r'<table class="paper-table" data-name="(\w+)">', text)
    assert found == ["jam_drift", "idiots_detection", "idiolink_zero_shot", "idiolink_bm25"]
    assert "50.00<small>40.88</small>" in text
    assert '<tr class="not-run">' in text


def test_a_number_leads_to_its_own_metric_file(small_page: Path) -> None:
    text = small_page.read_text(encoding="utf-8")
    table = text[text.index('id="table-idiolink_bm25"') :]
    number = re.search(r'class="way" data-metrics="(\d+)"', table)
    assert number
    metric = evidence(small_page)["files"][number[1]]
    assert metric["path"] == "results/metrics/idiolink/test/bm25/span/seed-0.json"


def test_a_ranking_goes_down_to_marked_documents(small_page: Path) -> None:
    metric, texts = behind(small_page, "/sbert/")
    ranking = metric["evidence"]
    assert ranking["predictions"] in metric["inputs"]
    assert ranking["of"] == 2
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


def test_identification_goes_down_to_variants(small_page: Path) -> None:
    metric, texts = behind(small_page, "/jam/")
    figurative, literal = metric["evidence"]["rows"]
    told = [(item["sentence"], item["right"], item["answer"]) for item in figurative["sentences"]]
    assert told == [
        ("test-0001", True, "idiom: broke the ice"),
        ("test-0001-v1", False, "no idiom"),
    ]
    assert all(item["right"] for item in literal["sentences"])
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


def test_sentences_cannot_break_out_of_the_page(small_page: Path) -> None:
    text = small_page.read_text(encoding="utf-8")
    assert "<b>at</b>" not in text
    assert "\\u003cb>at\\u003c/b>" in text


def test_the_same_run_gives_the_same_page(small_page: Path, tmp_path: Path) -> None:
    assert make_run(tmp_path).read_bytes() == small_page.read_bytes()


@pytest.mark.parametrize("change", ["delete", "edit"])
def test_predictions_that_are_not_those_of_the_metrics(tmp_path: Path, change: str) -> None:
    make_run(tmp_path)
    run = tmp_path / "results/predictions/idiolink/test/sbert/span/seed-0.run.gz"
    if change == "delete":
        run.unlink()
    else:
        run.write_bytes(run.read_bytes() + b"x")
    metric = "results/metrics/idiolink/test/sbert/span/seed-0.json"
    with contextlib.chdir(tmp_path), pytest.raises(UserError) as raised:
        make_page()
    assert str(raised.value).startswith(f"{metric}: ")
    assert "run snakemake again" in str(raised.value)


def test_spread_takes_from_everywhere() -> None:
    assert spread(list(range(10)), 3) == [0, 3, 6]
    assert spread([1, 2], 3) == [1, 2]
