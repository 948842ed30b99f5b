"""The results page in a real browser: filters, the way down, themes, phone, keyboard."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Browser, browser, needs_browser

pytestmark = needs_browser
PHONE = (390, 844)
ENTER, ESCAPE, TAB = 13, 27, 9


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One browser for all tests of this file."""
    with browser(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


@pytest.fixture
def page(window: Browser, small_page: Path) -> Iterator[Browser]:
    """The page, freshly opened; at the end nothing may have gone wrong or over the network."""
    window.problems.clear()
    window.requests.clear()
    window.resize(1280, 900)
    window.prefer("light")
    window.open(small_page)
    yield window
    assert window.problems == []
    assert {url for url in window.requests if not url.startswith("data:")} == {small_page.as_uri()}


def visible(window: Browser, selector: str) -> list[str]:
    """Texts of the elements that a reader can see."""
    found: list[str] = window.evaluate(
        f"[...document.querySelectorAll('{selector}')]"
        ".filter((element) => element.offsetParent !== null)"
        ".map((element) => element.innerText.replace(/\\s+/g, ' ').trim())"
    )
    return found


def open_the_numbers(window: Browser) -> None:
    """Open the list of numbers below each table."""
    window.evaluate("document.querySelectorAll('details.numbers').forEach((d) => d.open = true)")


def test_tables_stand_in_the_papers_layout(page: Browser) -> None:
    tables = visible(page, ".layout table")
    assert len(tables) == 4
    # The list of numbers is folded away.
    assert not any(visible(page, "section.table .list tbody tr"))
    page.choose("#model", "sbert")
    rows = visible(page, "#table-idiolink_zero_shot .layout tbody tr")
    assert [row.split()[:2] for row in rows] == [["sbert", "50.00"], ["sberta", "–"]]


def test_a_verdict_is_no_colour_alone(page: Browser) -> None:
    page.evaluate(
        "document.querySelectorAll('.layout td').forEach((cell, place) =>"
        " cell.className = ['reproduced', 'not-reproduced'][place % 2])"
    )
    signs = page.evaluate(
        "[...document.querySelectorAll('.layout tbody td')]"
        ".map((cell) => getComputedStyle(cell, '::after').content)"
    )
    assert len(set(signs)) == 2
    assert not {"none", '""'} & set(signs)
    for selector in (".layout td.reproduced", ".layout td.not-reproduced"):
        assert contrast(page, selector) >= 4.5


def test_filters(page: Browser) -> None:
    assert len(visible(page, ".claim")) > 100
    assert len(visible(page, "section.table")) == 4

    page.choose("#study", "idiots")
    assert visible(page, "section.table h3") == ["IdioTS, Table 1"]
    assert visible(page, "#claims h3") == ["IdioTS"]
    assert visible(page, "figure") == []

    page.choose("#study", "")
    page.choose("#model", "sbert")
    open_the_numbers(page)
    rows = visible(page, "section.table .list tbody tr")
    assert len(rows) == 1
    assert rows[0].startswith("SBERT span R-Precision 50.00 40.88 9.12")
    claims = visible(page, ".claim")
    assert 0 < len(claims) < 60
    assert not any("BM25 when only" in claim for claim in claims)
    assert f"{len(claims)} claims and 1 numbers shown" in visible(page, "#shown")

    page.choose("#verdict", "fails")
    failing = visible(page, ".claim")
    assert 0 < len(failing) < len(claims)
    assert all("printed: fails" in claim for claim in failing)


def test_cells_that_were_not_run_can_be_shown(page: Browser) -> None:
    page.choose("#model", "sbert")
    open_the_numbers(page)
    assert len(visible(page, "section.table .list tbody tr")) == 1
    page.evaluate("document.querySelector('#notrun').click()")
    rows = visible(page, "section.table .list tbody tr")
    assert len(rows) == 2
    assert rows[1].endswith("– 18.34 – not run")


def test_a_number_leads_to_its_sentences(page: Browser) -> None:
    page.evaluate("document.querySelector('#table-idiolink_zero_shot button.way').click()")
    assert visible(page, "#dialog-title") == ["IdioLink, Table 2: SBERT, span, R-Precision = 50.00"]
    files = visible(page, "dialog .file code")
    assert files[:2] == [
        "results/metrics/idiolink/test/sbert/span/seed-0.json",
        "results/predictions/idiolink/test/sbert/span/seed-0.run.gz",
    ]
    queries = visible(page, "dialog details.sentence > summary")
    assert queries[0] == "The coach broke the ice. idiomatic, Sport; 2 of 3 relevant; q1"
    page.evaluate("document.querySelector('dialog details.sentence > summary').click()")
    documents = visible(page, "dialog details.sentence[open] li")
    assert documents[0].startswith("relevant A joke broke the ice <b>at</b> last.")
    assert documents[1].startswith("not relevant The ship broke the ice.")
    assert "broke the ice" in visible(page, "dialog details.sentence[open] li mark")


def test_an_original_beside_its_variants(page: Browser) -> None:
    page.evaluate("document.querySelector('#table-jam_drift button.way').click()")
    page.evaluate("document.querySelector('dialog details.sentence > summary').click()")
    told = visible(page, "dialog details.sentence[open] li")
    assert told == [
        "right original: They broke the ice. Answer: idiom: broke the ice",
        "wrong variant 1: The lake froze. They broke the ice. Answer: no idiom",
    ]


def test_the_keyboard_is_enough(page: Browser) -> None:
    open_the_numbers(page)
    page.evaluate("document.querySelector('#table-idiots_detection button.way').focus()")
    page.press("Enter", code=ENTER, text="\r")
    assert page.evaluate("document.querySelector('dialog').open")
    assert "Answer: unparseable: no object" in visible(page, "dialog li.sentence")[1]
    page.press("Tab", code=TAB)
    assert page.evaluate("document.querySelector('dialog').contains(document.activeElement)")
    page.press("Escape", code=ESCAPE)
    assert not page.evaluate("document.querySelector('dialog').open")
    assert page.evaluate("document.activeElement.className") == "way"


def luminance(window: Browser, selector: str, of: str) -> float:
    """Relative luminance (0 to 1) of a colour of an element."""
    colour = window.evaluate(f"getComputedStyle(document.querySelector('{selector}'))['{of}']")
    parts = [int(part) / 255 for part in colour[colour.index("(") + 1 : -1].split(",")[:3]]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(window: Browser, selector: str) -> float:
    pair = [luminance(window, selector, of) for of in ("color", "background-color")]
    return (max(pair) + 0.05) / (min(pair) + 0.05)


def test_both_themes_can_be_read(page: Browser) -> None:
    for theme, is_dark in (("light", False), ("dark", True)):
        page.prefer(theme)  # type: ignore[arg-type]
        assert (luminance(page, "body", "background-color") < 0.2) is is_dark
        for selector in ("body", ".badge.holds", ".badge.fails", ".badge.not-run", "#theme"):
            assert contrast(page, selector) >= 4.5, (theme, selector)
    page.prefer("light")
    page.evaluate("document.querySelector('#theme').click()")
    assert luminance(page, "body", "background-color") < 0.2
    page.evaluate("document.querySelector('#theme').click()")
    assert luminance(page, "body", "background-color") > 0.8


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_on_a_phone(page: Browser, theme: str) -> None:
    page.prefer(theme)  # type: ignore[arg-type]
    page.resize(*PHONE, phone=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
    open_the_numbers(page)
    # Nothing of a row lies beyond the edge of the screen; the papers' layouts scroll by themselves.
    beyond = page.evaluate(
        "[...document.querySelectorAll('.list tbody td, .layout, .claim summary')]"
        ".filter((element) => element.offsetParent)"
        f".filter((element) => element.getBoundingClientRect().right > {PHONE[0]}).length"
    )
    assert beyond == 0
    page.evaluate("document.querySelector('#table-idiolink_zero_shot button.way').click()")
    width = page.evaluate("document.querySelector('dialog').getBoundingClientRect().width")
    assert width <= PHONE[0]
    assert visible(page, "dialog details.sentence > summary")


def test_the_tests_would_notice_trouble(window: Browser, tmp_path: Path) -> None:
    broken = tmp_path / "broken.html"
    broken.write_text(
        "<!DOCTYPE html><title>x</title><img src='http://127.0.0.1:9/x.png'>"
        "<script>console.error('trouble'); missing();</script>",
        encoding="utf-8",
    )
    window.problems.clear()
    window.requests.clear()
    window.open(broken)
    assert any("trouble" in problem for problem in window.problems)
    assert any("missing is not defined" in problem for problem in window.problems)
    assert "http://127.0.0.1:9/x.png" in window.requests
