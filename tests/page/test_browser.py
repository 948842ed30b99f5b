"""The results page in a real browser: filters, details, themes, phone, keyboard and print."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from browser import Browser, browser, needs_browser

pytestmark = [pytest.mark.full, needs_browser]
Size = tuple[int, int]
WIDE, PHONE = (1280, 900), (390, 844)
ENTER, ESCAPE, TAB, LEFT, UP, RIGHT, DOWN = 13, 27, 9, 37, 38, 39, 40


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Start a browser for all tests of this file."""
    with browser(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


@pytest.fixture
def page(window: Browser, small_page: Path) -> Iterator[Browser]:
    """Open the page in the browser.

    After the test there must be no errors or warnings, and no requests except for the page's files.
    """
    window.problems.clear()
    window.requests.clear()
    window.resize(*WIDE)
    window.prefer("light")
    window.open(small_page)
    yield window
    assert window.problems == []
    beside = small_page.parent.as_uri()
    assert all(url.startswith(("data:", "blob:", f"{beside}/")) for url in window.requests)


def visible(window: Browser, selector: str) -> list[str]:
    """Return the texts of the visible elements that match a selector."""
    texts: list[str] = window.evaluate(
        f"[...document.querySelectorAll('{selector}')]"
        ".filter((element) => element.checkVisibility())"
        ".map((element) => element.innerText.replace(/\\s+/g, ' ').trim())"
    )
    return texts


def press_number(window: Browser, table: str, place: int = 0) -> None:
    """Click a number of a table and wait for its details."""
    window.evaluate(
        f"document.querySelectorAll('#table-{table} td[data-metrics]')[{place}].click()"
    )
    window.wait_for("dialog .file")


def test_claims_are_collapsed_by_verdict(page: Browser) -> None:
    assert visible(page, ".claim") == []
    groups = visible(page, "details.claims > summary")
    assert [group.split(" claims;")[0].rpartition(" ")[0] for group in groups][-2:] == [
        "Depend on numbers that were not run",
        "Restate the paper: not measured here and excluded from all totals",
    ]


def test_verdicts_do_not_depend_on_color(page: Browser) -> None:
    page.evaluate(
        "document.querySelectorAll('.layout td').forEach((cell, place) =>"
        " cell.className = ['reproduced', 'not-reproduced'][place % 2])"
    )
    signs = page.evaluate(
        "[...document.querySelectorAll('.layout tbody td')]"
        ".map((cell) => getComputedStyle(cell, '::before').content)"
    )
    assert len(set(signs)) == 2
    assert not {"none", '""'} & set(signs)
    assert page.findings(".layout") == []


def test_filters(page: Browser) -> None:
    open_the_claims(page)
    assert len(visible(page, ".claim")) > 100
    assert len(visible(page, "section.table")) == 4

    page.choose("#study", "idiots")
    assert visible(page, "section.table h3") == ["IdioTS, Table 1"]
    assert all("IdioTS, section" in claim for claim in visible(page, ".claim"))
    assert visible(page, "figure") == []
    assert visible(page, ".index li a") == ["Table 1", "Table 2", "Table 3", "Running text"]
    absent = ["IdioTS, Table 2", "IdioTS, Table 3", "IdioTS, Running text"]
    assert visible(page, "section.absent h3") == absent

    page.choose("#study", "")
    page.choose("#search", "SBERT")
    assert visible(page, "section.table h3") == ["IdioLink, Table 2"]
    claims = visible(page, ".claim")
    assert 0 < len(claims) < 60
    assert not any("BM25 when only" in claim for claim in claims)
    assert visible(page, "#shown") == [f"2 rows of tables and {len(claims)} claims"]

    page.choose("#search", "")
    page.evaluate("document.querySelector('#run-only').click()")
    assert len(visible(page, "#table-idiolink_zero_shot tbody tr")) == 1
    assert visible(page, "section.absent") == []
    assert "study=" not in page.evaluate("location.hash")
    assert page.evaluate("location.hash").endswith("&run-only=yes")


def test_only_what_differs(page: Browser) -> None:
    open_the_claims(page)
    page.evaluate(
        "document.querySelector('#table-idiots_detection tbody td').className = 'not-reproduced'"
    )
    page.evaluate("document.querySelector('#differs').click()")
    assert visible(page, "section.table h3") == ["IdioTS, Table 1"]
    assert visible(page, ".index li a") == ["Table 1"]
    assert visible(page, ".claim") == []
    # A number that is only in the list below its table is found, too.
    page.evaluate(
        "document.querySelector('#table-jam_drift .about').insertAdjacentHTML("
        "'beforebegin', '<ul class=differing><li>Different PIEs: 1, printed 2</li></ul>')"
    )
    page.choose("#search", "different pies")
    assert visible(page, "section.table h3") == ["ID10M-JAM, Table 3"]


def open_the_claims(window: Browser) -> None:
    """Open the groups of claims."""
    window.evaluate("document.querySelectorAll('details.claims').forEach((d) => d.open = true)")


GROUPED = """
<table class="paper-table"><caption>x</caption>
<thead><tr><th role="presentation"></th><th scope="col">Model</th><th scope="col">Score</th></tr>
</thead>
<tbody><tr><th scope="rowgroup" rowspan="3">zero-shot</th><th scope="row">a</th><td>2.00</td></tr>
<tr><th scope="row">b</th><td>10.00<small>3</small></td></tr>
<tr class="not-run"><th scope="row">c</th><td>–<small>7.00</small></td></tr></tbody></table>
"""


def test_rows_sort_within_their_group_and_reset(small_page: Path, window: Browser) -> None:
    text = small_page.read_text(encoding="utf-8")
    start, end = (
        text.index('<table class="paper-table"'),
        text.index("</table>", text.index('<table class="paper-table"')),
    )
    grouped = small_page.with_name("grouped.html")
    grouped.write_text(text[:start] + GROUPED + text[end + 8 :], encoding="utf-8")
    window.open(grouped)
    order = []
    for _ in range(3):
        window.evaluate("document.querySelectorAll('.layout th.sorts')[1].click()")
        rows = visible(window, "#table-jam_drift tbody tr")
        assert rows[0].startswith("zero-shot")
        order.append([row.removeprefix("zero-shot ").split()[0] for row in rows])
    # The row that was not run is folded.
    assert order == [["b", "a"], ["a", "b"], ["a", "b"]]
    assert visible(window, "#table-jam_drift .fold") == ["1 row not run: show"]
    window.evaluate("document.querySelector('#table-jam_drift .fold button').click()")
    assert len(visible(window, "#table-jam_drift tbody tr")) == 3
    # The group keeps its title if only some of its rows are shown.
    window.choose("#search", "b 10.00")
    assert visible(window, "#table-jam_drift tbody tr") == ["zero-shot b 10.00 3"]
    grouped.unlink()


def test_a_number_opens_its_sentences(page: Browser) -> None:
    press_number(page, "idiolink_zero_shot")
    assert visible(page, "#dialog-title") == ["IdioLink, Table 2: sbert, Score = 50.00"]
    files = visible(page, "dialog .file a")
    assert files[:2] == [
        "results/metrics/idiolink/test/sbert/span/seed-0.json",
        "results/predictions/idiolink/test/sbert/span/seed-0.run.gz",
    ]
    queries = visible(page, "dialog details.sentence > summary")
    assert queries[0] == (
        "first is relevant The coach broke the ice. idiomatic, Sport; 2 of 3 relevant; q1"
    )
    page.evaluate("document.querySelector('dialog details.sentence > summary').click()")
    documents = visible(page, "dialog details.sentence[open] li")
    assert documents[0].startswith("relevant A joke broke the ice <b>at</b> last.")
    assert documents[1].startswith("not relevant The ship broke the ice.")
    assert "broke the ice" in visible(page, "dialog details.sentence[open] li mark")


def test_details_of_a_number_link_to_its_files(page: Browser, small_page: Path) -> None:
    press_number(page, "idiots_detection")
    page.wait_for("dialog .files")
    links = page.evaluate("[...document.querySelectorAll('dialog a')].map((link) => link.href)")
    assert visible(page, "dialog .trace code") == ["pieline trace idiots_detection accuracy"]
    assert visible(page, "dialog .trace button") == ["Copy"]
    run = small_page.parents[1]
    wanted = [
        "results/metrics/idiots/vicuna-7b/zero_shot/seed-0.json",
        "results/predictions/idiots/vicuna-7b/zero_shot/seed-0.jsonl",
        "recordings/vicuna-7b-zero_shot-0.jsonl",
        "paper_tables/idiots_detection.csv",
        "paper_tables/idiots_detection.tex",
    ]
    assert all((run / path).as_uri() in links and (run / path).is_file() for path in wanted)


def test_errors_only_and_by_pie(page: Browser) -> None:
    press_number(page, "idiots_detection")
    assert visible(page, ".pager output") == ["1 to 2 of 2 sentences"]
    page.choose(".pager select", "errors (1)")
    (wrong,) = visible(page, "dialog .sentence")
    assert "Answer: unparseable: no object recording key bbbbbbbbbbbb…" in wrong
    page.choose(".pager label:nth-of-type(2) select", "spill the beans")
    assert visible(page, ".pager output") == ["1 to 1 of 1 sentences"]


def test_two_rows_are_compared_by_their_items(window: Browser, small_page: Path) -> None:
    """SBERT ranks a relevant document first for the idiomatic query, BM25 for the literal one."""
    text = small_page.read_text(encoding="utf-8")
    start = text.index('id="table-idiolink_bm25"')
    row = re.search(r'<tr data-model="bm25">.*?</tr>', text[start:], re.DOTALL)
    assert row
    place = text.index('<tr class="not-run" data-model="sbert">')
    both = small_page.with_name("both.html")
    both.write_text(text[:place] + row[0] + text[place:], encoding="utf-8")
    window.open(both)
    press_number(window, "idiolink_zero_shot")
    window.choose("#behind select", "bm25")
    window.wait_for("dialog .pair")
    options = "[...document.querySelectorAll('.pager select')[0].options].map((each) => each.text)"
    assert window.evaluate(options) == [
        "all that differ (2)",
        "only sbert is right (1)",
        "only bm25 is right (1)",
        "both are wrong (0)",
    ]
    both.unlink()


def test_the_address_restores_the_state(page: Browser) -> None:
    press_number(page, "idiots_detection")
    page.choose("#study", "idiots")
    address = page.evaluate("location.hash")
    assert address == "#table-idiots_detection&number=0&study=idiots"
    page.evaluate("document.querySelector('#close').click()")
    page.choose("#study", "")
    page.evaluate(f"location.hash = '{address}'")
    page.wait_for("dialog[open] .sentence")
    assert visible(page, "section.table h3") == ["IdioTS, Table 1"]
    claim = page.evaluate("document.querySelector('.claim').id")
    # The dialog's close event arrives late and must not undo the new address.
    page.evaluate(f"document.querySelector('#close').click(); location.hash = '#{claim}'")
    page.wait_for(f"#{claim}[open]")
    # A filter that hides the target is reset.
    assert page.evaluate(f"document.querySelector('#{claim}').checkVisibility()")
    page.evaluate(f"location.hash = '{address}'")
    page.wait_for("dialog[open] .sentence")
    page.evaluate(f"location.hash = '#{claim}'")
    page.wait_for("dialog:not([open])")
    assert page.evaluate("location.hash") == f"#{claim}"


def test_a_page_without_its_files_reports_it(
    window: Browser, small_page: Path, tmp_path: Path
) -> None:
    alone = tmp_path / "index.html"
    alone.write_bytes(small_page.read_bytes())
    window.open(alone)
    window.evaluate("document.querySelector('#table-jam_drift td[data-metrics]').click()")
    window.wait_for("dialog .note")
    assert (
        "is missing: copy the folder items together with this page"
        in visible(window, "dialog .note")[0]
    )


def test_an_original_is_shown_with_its_variants(page: Browser) -> None:
    press_number(page, "jam_drift")
    page.evaluate("document.querySelector('dialog details.sentence > summary').click()")
    assert visible(page, "dialog details.sentence[open] li") == [
        "right original: They broke the ice. Answer: idiom: broke the ice",
        "wrong variant 1: The lake froze. They broke the ice. Answer: no idiom",
    ]


FOCUSED = "document.activeElement.innerText.trim()"


def test_the_page_works_with_the_keyboard(page: Browser) -> None:
    stops = page.evaluate(
        "[...document.querySelectorAll('.layout, .layout *')]"
        ".filter((element) => element.tabIndex >= 0).length"
    )
    assert stops == 4, "each table is one tab stop"
    page.evaluate("document.querySelector('#table-idiots_detection h3').tabIndex = 0")
    page.evaluate("document.querySelector('#table-idiots_detection h3').focus()")
    page.press("Tab", code=TAB)
    assert page.evaluate(FOCUSED).startswith("0.5")
    page.press("ArrowUp", code=UP)
    assert page.evaluate(FOCUSED) == "Score"
    page.press("ArrowLeft", code=LEFT)
    assert page.evaluate(FOCUSED) == "Model"
    page.press("Enter", code=ENTER, text="\r")
    assert page.evaluate("document.activeElement.ariaSort") == "descending"
    page.press("ArrowRight", code=RIGHT)
    page.press("ArrowDown", code=DOWN)
    page.press("Enter", code=ENTER, text="\r")
    assert page.evaluate("document.querySelector('dialog').open")
    page.wait_for("dialog .sentence")
    page.press("Tab", code=TAB)
    assert page.evaluate("document.querySelector('dialog').contains(document.activeElement)")
    page.press("Escape", code=ESCAPE)
    assert not page.evaluate("document.querySelector('dialog').open")
    assert page.evaluate(FOCUSED).startswith("0.5")


def test_everything_is_expanded_in_print(page: Browser) -> None:
    page.prefer("light", media="print")
    assert page.evaluate("document.querySelector('.claim dd').getClientRects().length") > 0
    assert visible(page, ".filters") == []
    page.prefer("light")
    assert page.evaluate("document.querySelector('.claim dd').checkVisibility()") is False


def test_the_theme_follows_the_system_and_a_button(page: Browser) -> None:
    def background() -> str:
        return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))

    light = background()
    page.prefer("dark")
    dark = background()
    assert dark != light
    page.prefer("light")
    for expected in (dark, light):
        page.evaluate("document.querySelector('#theme').click()")
        assert background() == expected


def test_on_a_phone(page: Browser) -> None:
    page.resize(*PHONE, phone=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
    open_the_claims(page)
    # Nothing extends beyond the edge of the screen; the papers' layouts scroll separately.
    beyond = page.evaluate(
        "[...document.querySelectorAll("
        "'.study *, #rest li, .index li, .layout, .claim summary, .filters *')]"
        ".filter((element) => element.offsetParent)"
        f".filter((element) => element.getBoundingClientRect().right > {PHONE[0]}).length"
    )
    assert beyond == 0
    press_number(page, "idiolink_zero_shot")
    page.wait_for("dialog details.sentence")
    width = page.evaluate("document.querySelector('dialog').getBoundingClientRect().width")
    assert width <= PHONE[0]
    assert visible(page, "dialog details.sentence > summary")


def test_the_model_stays_visible_beside_a_number_on_a_phone(page: Browser) -> None:
    page.resize(*PHONE, phone=True)
    table = "document.querySelector('#table-idiolink_zero_shot table')"
    page.evaluate(
        f"for (let place = 0; place < 9; place += 1) {{ const row = {table}.tBodies[0].rows[0];"
        " row.append(row.lastElementChild.cloneNode(true)); }"
    )
    for scrolled in (0, 10_000):
        page.evaluate(f"{table}.parentElement.scrollLeft = {scrolled}")
        left, right, number_left, number_right = page.evaluate(
            f"""(() => {{
            const row = {table}.tBodies[0].rows[0];
            const box = (cell) => cell.getBoundingClientRect();
            const model = box(row.querySelector('.pinned'));
            const number = [...row.querySelectorAll('td')].map(box)
              .find((each) => each.left >= model.right - 1 && each.right <= innerWidth);
            return [model.left, model.right, number.left, number.right];
            }})()"""
        )
        assert 0 <= left < right <= number_left + 1
        assert number_right <= PHONE[0]


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing(page: Browser, theme: Literal["light", "dark"], size: Size) -> None:
    page.prefer(theme)
    page.resize(*size, phone=size == PHONE)
    page.unfold()
    assert page.findings() == []
    for table in ("idiolink_zero_shot", "idiots_detection", "jam_drift"):
        press_number(page, table)
        page.evaluate("document.querySelector('dialog details.sentence')?.setAttribute('open', '')")
        assert page.findings("dialog") == []


def test_axe_detects_violations(page: Browser) -> None:
    page.evaluate("document.querySelector('figure img').removeAttribute('alt')")
    page.evaluate("document.querySelector('#run').style.color = '#bbb'")
    rules = {finding.split(":")[0] for finding in page.findings()}
    assert rules == {"image-alt", "color-contrast"}
