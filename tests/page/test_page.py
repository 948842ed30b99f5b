"""Content of the results page, read as a file."""

import base64
import contextlib
import gzip
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from small_run import make_page, make_run, save_table
from support import ROOT

from pieline.core.errors import UserError
from pieline.reporting.evidence import check_metrics
from pieline.reporting.numbers import read_numbers
from pieline.results.numbers import COSTS
from pieline.results.page.build import _RUNS, _other_runs

METRICS = "results/metrics/idiolink/test/bm25/span/seed-0.json"


@pytest.fixture
def small_run(small_page: Path, tmp_path: Path) -> Path:
    """Copy the small run; a test may change the copy."""
    return Path(shutil.copytree(small_page.parents[1], tmp_path / "run"))


def script(page: Path, name: str) -> dict[str, Any]:
    """Return the content of one of the page's files."""
    text = (page.parent / "items" / f"{name}.js").read_text(encoding="utf-8")
    match = re.fullmatch(r'pieline\("([\w-]+)", "([\w+/=]+)"\);\n', text)
    assert match
    assert match[1] == name
    result: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(match[2])))
    return result


def behind(page: Path, part: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the metric file whose path contains `part`, and the texts of its evidence by file."""
    names = (path.stem for path in (page.parent / "items").glob("[0-9]*.js"))
    (metric,) = [item for item in (script(page, name) for name in names) if part in item["path"]]
    return metric, {path: script(page, name) for path, name in metric["texts"].items()}


def test_the_page_loads_only_its_figures(small_page: Path) -> None:
    text = small_page.read_text(encoding="utf-8")
    assert re.findall(r'src="([^"]*)"', text) == ["figures/idiolink_modes.png"]
    assert not re.search(r"@import|url\(|fetch\(|XMLHttpRequest|import\(|https?://", text)


def test_every_link_has_a_target(small_page: Path) -> None:
    text = small_page.read_text(encoding="utf-8")
    links = set(re.findall(r'href="([^"]*)"', text)) - {"data:,"}
    places = {link for link in links if link.startswith("#")}
    assert places
    assert all(f'id="{place[1:]}"' in text for place in places)
    # These are made by other rules.
    others = {"paper.tex", "../results/provenance.json"}
    missing = [link for link in links - places - others if not (small_page.parent / link).is_file()]
    assert missing == []
    assert others < links
    makers = {(small_page.parent / link).resolve() for link in links if link.endswith(".py")}
    folder = ROOT / "src/pieline/studies/idiolink"
    assert makers == {folder / "figures.py", folder / "tables/zero_shot.py"}


def first_screen(page: Path) -> str:
    """Return the page's text before the tables and without the filters, without line breaks."""
    text = page.read_text(encoding="utf-8")
    first = text[text.index("<header>") : text.index("<main")]
    return re.sub(r"\s+", " ", re.sub("<form.*</form>", "", first, flags=re.DOTALL))


def test_the_first_screen_lists_what_was_run_and_what_the_rest_requires(small_page: Path) -> None:
    first = first_screen(small_page)
    assert "A run on the sample data." in first
    assert "989 printed numbers: none reproduced, 4 not comparable, 985 not run." in first
    assert re.findall(r"<p>(\d+ of \d+ printed numbers reproduced.*?)</p>", first) == [
        "0 of 550 printed numbers reproduced.",
        "0 of 42 printed numbers reproduced.",
        "0 of 397 printed numbers reproduced.",
    ]
    # Reasons are listed once per study, with their counts.
    assert 'nobody had time <span class="soft">(430)</span>' in first
    assert "<strong>the key K</strong>: 36 numbers of GPT-4o<" in first
    assert "<strong>the public hard variants of ID10M-JAM</strong>: " in first
    costs = re.findall(r"<strong>([^<]*)</strong>: (\d+) numbers", first)
    assert sum(int(times) for _, times in costs[:4]) == 989
    assert [cost for cost, _ in costs[:4]] == [cost[0].upper() + cost[1:] for cost in COSTS]
    assert first.index("What you can add, and what it costs") < first.index("study-jam")
    assert 'id="evidence"' not in first
    assert "jam drift" not in first


def test_the_first_screen_lists_reproduced_and_differing_numbers(small_run: Path) -> None:
    keys = {"model": "bm25", "composition": "full"}
    with contextlib.chdir(small_run):
        save_table(
            "idiolink_bm25",
            keys
            | {"query_mode": "span", "measure": "r_precision", "ours": 50.0, "files": [METRICS]},
            keys | {"query_mode": "sentence", "measure": "k1", "ours": 0.9},
        )
        first = first_screen(make_page(data="released"))
    assert "A run on mixed data." in first
    assert "1 of 397 printed numbers reproduced: 1 parameter." in first
    assert "BM25, span mode, R-Precision: 50.00, printed 49.22" in first
    legend = first[first.index('id="study-idiolink"') :]
    assert re.findall(r'<li class="sign [\w-]+">(.*?)</li>', legend)[:4] == [
        "1 reproduced",
        "1 not reproduced",
        "1 not comparable",
        "394 not run",
    ]
    assert "-- estimate_cost" in first


def test_the_page_starts_with_the_reproduced_scores(small_run: Path) -> None:
    keys = {"model": "sbert", "composition": "full"}
    run = keys | {"query_mode": "span", "files": [METRICS]}
    with contextlib.chdir(small_run):
        save_table(
            "idiolink_zero_shot",
            run | {"measure": "r_precision", "ours": 40.884},
            run | {"measure": "ndcg_at_10", "ours": 58.5},
        )
        first = first_screen(make_page(data="released"))
    evidence = first[first.index('id="evidence"') :].partition("</section>")[0]
    assert "Reproduced: IdioLink, Table 2" in evidence
    cells = re.findall(r'<td(?: class="([\w-]+)")?>(?:<button[^>]*>)?([\d.–]+)', evidence)
    assert cells == [
        *[("reproduced", "40.88"), ("", "40.88"), ("", "40.88")],
        *[("not-reproduced", "58.50"), ("", "58.86"), ("", "58.86")],
    ]
    assert first.index('id="evidence"') < first.index('id="costs"') < first.index("study-jam")


def test_a_run_with_own_models_starts_with_their_scores(small_run: Path) -> None:
    """The rank is among the printed scores, if one of them was compared in this run."""
    column = {"composition": "full", "query_mode": "span", "measure": "r_precision"}
    mine = column | {"better": "high", "model": "mine", "ours": 50.5}
    with contextlib.chdir(small_run):
        sbert = column | {"model": "sbert", "ours": 40.884, "files": [METRICS]}
        save_table("idiolink_zero_shot", mine, sbert)
        own = {"others": {"mine": "Mine"}, "labels": {"mine": "Mine", "sbert": "SBERT"}}
        text = make_page(data="released", **own).read_text(encoding="utf-8")
        save_table("idiolink_zero_shot", mine, sbert | {"obstacles": ["sample data"]})
        sample = make_page(**own).read_text(encoding="utf-8")
        save_table("idiolink_zero_shot", mine | {"better": ""}, sbert)
        neither = make_page(**own).read_text(encoding="utf-8")
    card = re.sub(r"\s+", " ", text[text.index('id="own"') :].partition("</section>")[0])
    assert text.index('id="own"') < text.index('id="evidence"')
    assert "span mode, R-Precision" in card
    assert "<strong>50.50</strong>" in card
    table = pd.read_csv(ROOT / "published/idiolink_table2.csv").query("query_mode == 'span'")
    printed = table["r_precision_pct"].dropna()
    better = (printed > 50.5).sum()
    # BM25 is printed in another table.
    assert f"<td>{better + 1} of {len(printed) + 2}</td>" in card
    assert card.count('class="printed-dot"') == len(printed) + 1
    assert card.count('class="own-dot"') == 1
    assert '<span class="amount">+9.62</span> SBERT' in card
    assert "best printed" in card
    card = sample[sample.index('id="own"') :].partition("</section>")[0]
    assert '<td>1 of 3 <span class="soft">in this run</span></td>' in card
    assert "best printed" not in card
    assert "in this run" not in neither
    assert 'data-model="mine"' in text
    assert 'data-own="mine"' in text


def test_a_number_that_does_not_count_is_marked(small_run: Path) -> None:
    """Of several rows for one printed number, one counts; the frame and the table say which."""
    keys = {"model": "vicuna-7b", "setting": "zero_shot", "measure": "accuracy", "decimals": 3}
    with contextlib.chdir(small_run):
        rows = [keys | {"seed": str(seed), "ours": ours} for seed, ours in enumerate((0.1, 0.676))]
        save_table("idiots_detection", *rows)
        page = make_page(data="released")
        numbers = read_numbers("paper_tables/numbers.csv")
    of_model = [number for number in numbers if number.ours and number.model == "vicuna-7b"]
    assert [(each.verdict, each.counts) for each in of_model] == [
        ("not reproduced", True),
        ("reproduced", False),
    ]
    table = page.parent / "html/idiots_detection.html"
    assert re.findall(r'<td class="([\w -]+)"', table.read_text(encoding="utf-8")) == [
        "not-reproduced",
        "reproduced uncounted",
    ]
    assert "1 not reproduced" in first_screen(page)
    assert "1 reproduced" not in first_screen(page)


def test_every_table_of_the_papers_is_listed(small_page: Path) -> None:
    """Tables that were not made have a reason and requirements, but no empty layout."""
    text = re.sub(r"\s+", " ", small_page.read_text(encoding="utf-8"))
    index = text[text.index('<div class="index">') : text.index("Our numbers in the papers")]
    listed = re.findall(r'<a href="#([\w-]+)">(.*?)</a>', index)
    assert [name for _, name in listed] == [
        *(f"Table {number}" for number in range(1, 9)),
        "Running text",
        *("Table 1", "Table 2", "Table 3", "Running text"),
        *("Table 1", "Table 2", "Table 4", "Table 3", "Table 4", "Table 5", "Table 6"),
        "Running text",
    ]
    absent = text[text.index('id="absent-jam-Table-5"') :].partition("</section>")[0]
    assert "Success count and negative drift by usage." in absent
    assert "224 not run: nobody had time" in absent
    assert "Requires the public hard variants of ID10M-JAM; the key K." in absent
    assert "<table" not in absent
    described = text[text.index('id="absent-jam-Table-7"') :].partition("</section>")[0]
    assert "Not made: nobody had time." in described


def test_a_table_without_our_numbers_is_collapsed(small_run: Path) -> None:
    with contextlib.chdir(small_run):
        keys = {"model": "vicuna-7b", "setting": "zero_shot", "measure": "accuracy"}
        save_table("idiots_detection", keys | {"ours": None, "not_run": "no key"})
        text = make_page().read_text(encoding="utf-8")
    for name, is_folded in (("idiots_detection", True), ("jam_drift", False)):
        section = text[text.index(f'id="table-{name}"') :].partition("</section>")[0]
        assert ("<summary>The printed numbers</summary>" in section) is is_folded


def test_a_page_of_own_data_has_no_printed_numbers(small_run: Path) -> None:
    with contextlib.chdir(small_run):
        page = make_page(mark="Own data: mine.", data="own")
    first = first_screen(page)
    assert "Own data: mine." in first
    assert "The papers print no numbers for this data." in first
    assert "printed" not in first
    assert "What you can add" not in first
    assert "absent-" not in page.read_text(encoding="utf-8")


def test_tables_have_the_papers_layout(small_page: Path) -> None:
    text = small_page.read_text(encoding="utf-8")
    names = re.findall(r'<table class="paper-table" data-name="(\w+)">', text)
    assert names == ["jam_drift", "idiots_detection", "idiolink_zero_shot", "idiolink_bm25"]
    assert "50.00<small>40.88</small>" in text
    assert '<tr class="not-run" data-model="sbert">' in text


def test_claims_follow_the_tables_by_verdict(small_page: Path) -> None:
    text = small_page.read_text(encoding="utf-8")
    assert text.index('id="tables"') < text.index('id="claims"')
    verdicts = re.findall(r'<span class="badge [\w-]+">ours: ([\w ]+)</span>', text)
    assert len(verdicts) > 100
    order = ["fails", "holds", "not comparable", "not run", "restates the print"]
    assert set(verdicts) >= {"not run", "restates the print"}
    assert verdicts == sorted(verdicts, key=order.index)


def test_a_number_opens_its_metric_file(small_page: Path) -> None:
    text = small_page.read_text(encoding="utf-8")
    table = text[text.index('id="table-idiolink_bm25"') :]
    number = re.search(r'data-metrics="(\d+)"', table)
    assert number
    metric = script(small_page, number[1])
    assert metric["path"] == METRICS


def test_a_number_has_the_command_that_traces_it(small_run: Path) -> None:
    """The browser replaces MEASURE by the measure of the number."""
    options = ("--directory", "runs/mine", "--configfile", "config/sample.yaml")
    with contextlib.chdir(small_run):
        row = {"model": "sbert", "query_mode": "span", "composition": "full", "files": [METRICS]}
        measures = [("r_precision", 40.884), ("r_precision_std", 0.5), ("ndcg_at_10", 58.5)]
        rows = [row | {"measure": name, "ours": ours} for name, ours in measures]
        save_table("idiolink_zero_shot", *rows)
        text = make_page(data="released", options=options).read_text(encoding="utf-8")
    traces = set(re.findall(r'data-trace="([^"]*)"', text))
    start, end = "pieline trace", " ".join(options)
    assert {
        f"{start} idiolink_zero_shot MEASURE {end}",
        f"{start} idiolink_zero_shot r_precision {end}",
    } <= traces
    shown = re.findall(r'data-metrics="\d[^"]*" data-measure="([^"]*)"', text)
    assert "r_precision" in shown
    assert "" not in shown
    assert "r_precision_std" not in shown


def test_a_ranking_has_marked_documents(small_page: Path) -> None:
    metric, texts = behind(small_page, "/sbert/")
    ranking = metric["evidence"]
    assert ranking["predictions"] in metric["inputs"]
    first, second = ranking["rows"]
    # d1 and d3 have the idiomatic meaning; d2 and d4 are relevant to the literal query.
    assert [item[0] for item in first["best"]] == ["d1", "d2", "d3"]
    assert [item[2] for item in first["best"]] == [1, 0, 1]
    assert [item[2] for item in second["best"]] == [0, 1, 0]
    document = texts[ranking["documents"]]["d1"]
    assert document["parts"] == ["A joke ", "broke the ice", " <b>at</b> last."]
    assert metric["scores"]["overall.r_precision"] == pytest.approx(0.5)


def test_detection_has_answers(small_page: Path) -> None:
    metric, texts = behind(small_page, "/idiots/")
    good, bad = metric["evidence"]["rows"]
    assert (good["right"], good["answer"]) == (True, "idiom: spill the beans (tell a secret)")
    # An unreadable answer does not count as "no idiom", so it is wrong for a distractor, too.
    assert (bad["right"], bad["answer"]) == (False, "unparseable: no object")
    assert texts[metric["evidence"]["sentences"]]["s2"]["usage"] == "distractor"
    assert metric["evidence"]["recording"] == "recordings/vicuna-7b-zero_shot-0.jsonl"
    assert good["keys"] == ["a" * 12]


def test_identification_has_variants(small_page: Path) -> None:
    metric, texts = behind(small_page, "/jam/")
    figurative, literal = metric["evidence"]["rows"]
    answers = [
        (item["sentence"], item["right"], item["answer"]) for item in figurative["sentences"]
    ]
    assert answers == [
        ("test-0001", True, "idiom: broke the ice"),
        ("test-0001-v1", False, "no idiom"),
    ]
    assert all(item["right"] for item in literal["sentences"])
    # Predictions without recordings: external ones, or the recordings were deleted.
    assert metric["evidence"]["recording"] is None
    sentences = texts[metric["evidence"]["sentences"]]
    assert sentences["test-0001-v1"]["parts"] == [
        "The lake froze. They ",
        "broke the ice",
        ".",
    ]
    # The PIE of a literal sentence is marked although it has no tags.
    assert sentences["test-0002-v1"]["parts"] == [
        "At the party: They ",
        "broke the ice",
        ".",
    ]


def test_the_same_run_gives_the_same_page(small_page: Path, tmp_path: Path) -> None:
    page = make_run(tmp_path)
    details = {path.name: path.read_bytes() for path in page.parent.glob("items/*")}
    assert details == {path.name: path.read_bytes() for path in small_page.parent.glob("items/*")}
    assert page.read_bytes() == small_page.read_bytes()


@pytest.mark.parametrize("change", ["delete", "edit"])
def test_changed_predictions_are_detected(small_run: Path, change: str) -> None:
    run = small_run / "results/predictions/idiolink/test/sbert/span/seed-0.run.gz"
    if change == "delete":
        run.unlink()
    else:
        run.write_bytes(run.read_bytes() + b"x")
    metric = "results/metrics/idiolink/test/sbert/span/seed-0.json"
    with contextlib.chdir(small_run), pytest.raises(UserError) as raised:
        check_metrics([metric], {})
    assert str(raised.value).startswith(f"{run.relative_to(small_run)}: ")
    assert f"run the same snakemake command with --forcerun {metric}" in str(raised.value)


def test_the_pages_of_the_projects_runs_link_to_each_other(tmp_path: Path) -> None:
    pages = {
        title: tmp_path / folder / "paper_tables/index.html" for title, (folder, _) in _RUNS.items()
    }
    for title, page in pages.items():
        page.parent.mkdir(parents=True)
        links = {name: link for name, (link, _) in _other_runs(tmp_path, page).items()}
        assert links.keys() == _RUNS.keys() - {title}
        for name, link in links.items():
            assert (page.parent / link).resolve() == pages[name].resolve()
    assert _other_runs(tmp_path / "project", tmp_path / "elsewhere/paper_tables/index.html") == {}
