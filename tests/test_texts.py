"""Comparison of texts, and detection of damaged and implausible ones."""

import re
import unicodedata
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from pieline.core.errors import UserError, suggest_name
from pieline.core.records import Record, load_jsonl, validated
from pieline.core.texts import check_texts, damage, quote_both, refuse_above, text_key
from pieline.languages.matching import same_pie
from pieline.languages.near_duplicates import warn_of_near_duplicates

SENTENCE = "Der Ball rollte auf die Straße, unter die Räder."


@pytest.mark.parametrize(
    "same",
    [
        unicodedata.normalize("NFD", SENTENCE),
        f"{SENTENCE} ",
        SENTENCE.replace(" ", "  "),
        SENTENCE.replace(" ", "\u00a0"),
        SENTENCE.upper(),
        SENTENCE.replace("Ball", "Ba\u200bll"),
        SENTENCE.replace("Ball", "Ba\x00ll"),
        SENTENCE.replace("ä", "&auml;"),
        SENTENCE.removesuffix("."),
    ],
)
def test_equal_texts_have_the_same_key(same: str) -> None:
    assert same != SENTENCE
    assert text_key(same) == text_key(SENTENCE)


def test_other_texts_have_another_key() -> None:
    keys = {text_key(text) for text in (SENTENCE, SENTENCE.replace("ä", "a"), "a b", "?", "!", "")}
    assert len(keys) == 6


@pytest.mark.parametrize(
    ("one", "other", "quoted"),
    [
        ("Rad", "Rat", ("'Rad'", "'Rat'")),
        ("Räder", "Ra\u0308der", (r"'R\xe4der'", r"'Ra\u0308der'")),
        ("cold", "c\u043eld", ("'cold'", r"'c\u043eld'")),
        ("über", "Unter", ("'über'", "'Unter'")),
        ("a b", "a\u00a0b", ("'a b'", r"'a\xa0b'")),
        ("a b", "a  b", ("'a b'", r"'a \x20b'")),
    ],
)
def test_texts_that_look_alike_are_escaped(one: str, other: str, quoted: tuple[str, str]) -> None:
    assert quote_both(one, other) == quoted


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("Größe – „so“ … R&D, AT&T; 5 € — naïve\tx\n", ""),
        ("a\x00b", "the control character U+0000"),
        ("a\x85b", "the control character U+0085"),
        ("Stra\ufffde", "the replacement character U+FFFD"),
        ("AT&amp;T", "the HTML entity &amp;"),
        ("it&#39;s", "the HTML entity &#39;"),
        ("StraÃŸe", "UTF-8 that was read in another encoding"),
        ("itâ€™s", "UTF-8 that was read in another encoding"),
    ],
)
def test_damaged_texts(text: str, problem: str) -> None:
    assert damage(text) == problem


def test_findings_are_rejected_above_a_share_with_three_examples() -> None:
    findings = [(f"a.csv:{number}", f"'{number}'") for number in range(2, 7)]
    refuse_above(0.05, findings, 100, "rows are odd", hint="correct them")
    refuse_above(0.05, findings[:1], 2, "rows are odd", fewest=2, hint="correct them")
    message = r"^a\.csv:2: 5 of 99 rows are odd, such as '2', '3', '4'; correct them$"
    with pytest.raises(UserError, match=message):
        refuse_above(0.05, findings, 99, "rows are odd", hint="correct them")


def test_repeated_texts_name_both_places() -> None:
    rows = [(f"a.tsv:{number}", f"Sentence {number}.") for number in range(1, 51)]
    check_texts(rows)
    message = r"^a\.tsv:51: 1 of 51 texts are repeated, such as 'sentence 7' \(also a\.tsv:7\);"
    with pytest.raises(UserError, match=message):
        check_texts([*rows, ("a.tsv:51", "sentence  7")])
    check_texts([*rows, ("a.tsv:51", "sentence  7")], repeated=False)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("drop the ball", "drop ball", True),
        ("to drop the ball", "dropping a ball", True),
        ("behind someone's back", "behind your back", True),
        ("pearl of wisdom", "pearls of wisdom", True),
        ("get stuck in", "in the sticks", False),
        ("hot water", "in hot water", False),
        ("on the ball", "drop the ball", False),
        ("that's that", "this is it", False),
    ],
)
def test_forms_of_a_pie(one: str, other: str, same: bool) -> None:
    assert same_pie(one, other, language="english") == same
    assert same_pie(other, one, language="english") == same


def test_near_duplicates_of_the_same_label_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    text = "The committee spilled the beans about the new budget"
    texts = [
        ("a", text, "idiomatic"),
        ("b", f"{text} (17)", "idiomatic"),
        ("c", text.replace("new", "big"), "idiomatic"),
        # Texts of another label may differ only in the idiom.
        ("d", f"{text} (18)", "literal"),
        ("e", "Nobody else said a word about any of it.", "idiomatic"),
    ]
    warn_of_near_duplicates(texts, "indexes.json")
    assert capsys.readouterr().err == (
        "warning: indexes.json: 3 of 5 texts are nearly equal to another one of the same label,"
        f" such as a and b ({text!r}); each counts\n"
    )
    warn_of_near_duplicates(texts[2:], "indexes.json")
    assert not capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "question"),
    [
        ("has_idiom", " (is it 'hasIdiom'?)"),
        ("id", " (is it 'sentence_id'?)"),
        ("tokens", ""),
    ],
)
def test_the_column_that_was_probably_meant(name: str, question: str) -> None:
    assert suggest_name(name, ["sentence_id", "hasIdiom", "note"]) == question


class _One(Record):
    x: int


class _Other(Record):
    y: list[int]


@pytest.mark.parametrize("value", ["a", {}, {"x": "a"}, {"y": [{}]}, {"x": {}, "y": _One(x=1)}])
def test_no_error_shows_a_class(value: object) -> None:
    with pytest.raises(UserError) as caught:
        validated(TypeAdapter(_One | _Other), value, where="here", hint="correct it")
    assert re.match(
        r"here: (x: |y: |Input should be an object with named fields)", str(caught.value)
    )
    assert not re.search(r"_One|_Other|instance of|dictionary", str(caught.value))


def test_an_array_instead_of_lines_is_named(tmp_path: Path) -> None:
    path = tmp_path / "tuples.jsonl"
    path.write_text('[\n{"x": 1}\n]\n', encoding="utf-8")
    with pytest.raises(UserError, match=r"tuples\.jsonl: a JSON array instead of lines; write one"):
        load_jsonl(path, _One)
