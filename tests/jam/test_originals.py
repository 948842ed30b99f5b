"""Test filtering by recorded decisions, and deriving decisions from the release."""

import json

import pytest
from jam_cases import SAMPLE, sample_originals, write
from support import MIRROR, needs_mirror, released_row

from pieline.core.errors import UserError
from pieline.studies.jam.bio import Span, tags_of
from pieline.studies.jam.originals import (
    Decision,
    apply_decisions,
    decide_by_tags,
    derive_decisions,
    filtering_report,
    load_decisions,
    oddities,
    read_released_originals,
    save_decisions,
)
from pieline.studies.jam.raw.id10m import TaggedSentence, read_id10m
from pieline.studies.jam.records import load_sentences
from pieline.studies.jam.variants.projection import tokenize

HEADER = "sentence_id\tdecision\treason\tpie\ttext\ttokens\ttags\n"
RAW = "He \tO\nkept \tB-IDIOM\nmum\tI-IDIOM\n.\tO\n\nShe \tO\nkept \tO\nbees\tO\n.\tO\n"
TYPO = '["He ", "keeps ", "mum", "."]\t["O", "B-IDIOM", "I-IDIOM", "O"]'


@pytest.fixture
def raw(tmp_path):
    """Return two raw sentences."""
    return read_id10m(write(tmp_path / "raw.tsv", RAW), split="test")


def filtered(tmp_path, raw, rows):
    """Return the originals that these rows of a decision file keep."""
    path = write(tmp_path / "decisions.tsv", HEADER + rows)
    return apply_decisions(raw, load_decisions(path), language="english", where=path)


def test_keep_drop_and_fix(tmp_path, raw):
    rows = f"test-0001\tfix\ttypo\tkeeps mum\tHe keeps mum.\t{TYPO}\n"
    (only,) = filtered(tmp_path, raw, rows + "test-0002\tdrop\tambiguous\t\t\t\t\n")
    assert (only.id, only.sentence, only.pies) == ("test-0001", "He keeps mum.", ("keeps mum",))
    assert only.is_figurative and only.was_fixed
    rows = "test-0001\tkeep\t\tkept mum\t\t\t\ntest-0002\tkeep\t\tkept bees\t\t\t\n"
    figurative, literal = filtered(tmp_path, raw, rows)
    assert (figurative.is_figurative, figurative.true_idioms) == (True, ("kept mum",))
    # Literal sentences have only O tags, so the decision names the PIE.
    assert (literal.is_figurative, literal.true_idioms) == (False, ())
    assert literal.pies == ("kept bees",)


def test_at_least_one_sentence_must_be_kept(tmp_path, raw):
    rows = "test-0001\tdrop\tambiguous\t\t\t\t\ntest-0002\tdrop\tambiguous\t\t\t\t\n"
    with pytest.raises(UserError, match="none of the 2 sentences of the raw file is kept; tag"):
        filtered(tmp_path, raw, rows)
    with pytest.raises(UserError, match=r"empty\.jsonl: the file has no sentences; create it"):
        load_sentences(write(tmp_path / "empty.jsonl", ""))


REST = "test-0002\tdrop\tambiguous\t\t\t\t\n"


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ("test-0001\tkeep\t\tkept mum\t\t\t\n", "no decision for test-0002"),
        (f"{REST}test-0001\tkeep\t\tkept mum\t\t\t\ntest-0003\tdrop\ttypo\t\t\t\t\n", "test-0003"),
        (f"{REST}test-0001\tkeep\t\tspilled beans\t\t\t\n", "PIE 'spilled beans' is not in"),
        (f"{REST}test-0001\tkeep\ttypo\tkept mum\t\t\t\n", ":3: .*not allowed for kept ones"),
        (f"{REST}test-0001\tdrop\t\t\t\t\t\n", ":3: .*reason is required"),
        (f"{REST}test-0001\tdrop\tugly\t\t\t\t\n", ":3: reason"),
        (f"{REST}test-0001\tkeep\t\t\t\t\t\n", ":3: .*pie is required"),
        (f"{REST}test-0001\tfix\ttypo\tkeeps mum\tHe keeps mum.\t\t\n", ":3: .*tokens is required"),
        (f"{REST}test-0001\tfix\ttypo\tkeeps mum\tHe keeps mum!\t{TYPO}\n", "do not add up to"),
        (f"{REST}test-0001\tfix\ttypo\tkeeps mum\tHe keeps mum.\t[1,\t[]\n", ":3: tokens is not"),
        (f"{REST}test-0001\tkeep\t\tkept mum\n", ":3: 4 cells instead of 7"),
        (f"{REST}{REST}", "duplicate id 'test-0002'"),
    ],
)
def test_a_wrong_decision_is_named(tmp_path, raw, rows, problem):
    with pytest.raises(UserError, match=problem) as caught:
        filtered(tmp_path, raw, rows)
    assert "decisions.tsv" in str(caught.value)


def test_a_figurative_sentence_without_tags_needs_its_idiom(raw):
    first = Decision(sentence_id="test-0001", decision="drop", reason="ambiguous")
    fields = {"sentence_id": "test-0002", "decision": "keep", "pie": "kept bees"}
    fields |= {"is_figurative": True}

    def applied(**more):
        decisions = [first, Decision(**fields, **more)]
        return apply_decisions(raw, decisions, language="english", where="decisions.tsv")

    with pytest.raises(UserError, match=r"decisions\.tsv: test-0002: is_figurative is true"):
        applied()
    (only,) = applied(true_idioms=("kept bees",))
    assert only.true_idioms == ("kept bees",)


def test_a_wrong_header_is_named(tmp_path):
    path = write(tmp_path / "decisions.tsv", HEADER.replace("reason", "why"))
    with pytest.raises(UserError, match=r"decisions\.tsv:1: no column 'reason'"):
        load_decisions(path)


def test_decisions_survive_writing_and_reading(tmp_path):
    decisions = [
        Decision(sentence_id="test-0001", decision="keep", pie="a\u2028b", is_figurative=True),
        Decision(sentence_id="test-0002", decision="drop", reason="not_recorded"),
        Decision(
            sentence_id="test-0003",
            decision="fix",
            reason="typo",
            pie="kept mum",
            text='"kept mum"',
            tokens=('"', "kept ", "mum", '"'),
            tags=("O", "B-IDIOM", "I-IDIOM", "O"),
            true_idioms=("kept  mum",),
        ),
    ]
    save_decisions(tmp_path / "x.tsv", decisions)
    assert load_decisions(tmp_path / "x.tsv") == decisions


@pytest.mark.parametrize(
    ("language", "counts", "drop", "fix"),
    [
        (
            "english",
            {"raw_sentences": 46, "kept": 36, "fixed": 6, "dropped": 4, "literal": 12},
            {"ambiguous": 2, "several_pies": 1, "wrong_label": 1},
            {"several_pies": 1, "typo": 3, "wrong_label": 2},
        ),
        (
            "german",
            {"raw_sentences": 34, "kept": 23, "fixed": 7, "dropped": 4, "literal": 9},
            {"ambiguous": 2, "several_pies": 1, "wrong_label": 1},
            {"several_pies": 1, "translation_appended": 3, "typo": 2, "wrong_label": 1},
        ),
        (
            "italian",
            {"raw_sentences": 14, "kept": 12, "fixed": 1, "dropped": 1, "literal": 4},
            {"ambiguous": 1},
            {"typo": 1},
        ),
        (
            "spanish",
            {"raw_sentences": 15, "kept": 13, "fixed": 1, "dropped": 1, "literal": 5},
            {"several_pies": 1},
            {"translation_appended": 1},
        ),
    ],
)
def test_the_samples_decisions(language, counts, drop, fix):
    raw = read_id10m(SAMPLE / f"test_{language}.tsv", split="test")
    decisions = load_decisions(SAMPLE / "decisions" / f"{language}.tsv")
    report = filtering_report(raw, decisions, sample_originals(language))
    assert counts.items() <= report.items()
    assert report["reasons"] == {"drop": drop, "fix": fix}
    assert report["oddities"] == []


RELEASED = [
    (
        "english",
        {"originals": 178, "figurative": 158, "literal": 20, "fixed": 8, "dropped": 22},
        {
            "pie_spelling": 6,
            "true_idiom_spelling": 6,
            "true_idiom_absent": 3,
            "figurative_without_tags": 4,
        },
    ),
    (
        "german",
        {"originals": 137, "figurative": 129, "literal": 8, "fixed": 9, "dropped": 63},
        {"pie_spacing": 55, "pie_spelling": 3},
    ),
]


@needs_mirror
@pytest.mark.parametrize(("language", "counts", "odd"), RELEASED)
def test_derived_decisions_give_the_released_originals_back(tmp_path, language, counts, odd):
    """Check that every field of every row is exactly equal, in order.

    This includes nine English rows whose true_idioms are not in their sentence. Filtering returns
    them as released, and the report lists them; `matches_pie` handles the six that differ only in
    spelling.
    """
    rows = MIRROR / "id10m-jam" / f"{language}.json"
    raw = read_id10m(MIRROR / "id10m" / f"test_{language}.tsv", split="test")
    path = tmp_path / "decisions.tsv"
    save_decisions(path, derive_decisions(raw, read_released_originals(rows), where=rows))
    decisions = load_decisions(path)
    originals = apply_decisions(raw, decisions, language=language, where=path)
    released = json.loads(rows.read_text(encoding="utf-8"))
    assert [released_row(item) for item in originals] == released
    report = filtering_report(raw, decisions, originals)
    assert counts.items() <= report.items()
    kinds = [item["kind"] for item in report["oddities"]]
    assert {kind: kinds.count(kind) for kind in kinds} == odd
    absent = [
        item for item in originals if any(text not in item.sentence for text in item.true_idioms)
    ]
    assert len(absent) == (9 if language == "english" else 0)
    assert all(oddities(item) for item in absent)


def test_decisions_from_tags():
    def tagged(number, text, idiom=None):
        tokens = tuple(tokenize(text, elides=True))
        start = len(tokenize(text[: text.index(idiom)], elides=True)) if idiom else 0
        spans = [Span(start, start + len(tokenize(idiom, elides=True)))] if idiom else []
        return TaggedSentence(f"test-{number:04d}", tokens, tuple(tags_of(spans, len(tokens))))

    raw = [
        tagged(1, "Il teste ha vuotato il sacco.", "vuotato il sacco"),
        tagged(2, "Vuotammo in cantina il sacco delle noci."),
        tagged(3, "Vuotarono il sacco sul tavolo."),
        tagged(4, "Ha gettato l'ancora nel porto."),
        tagged(5, "Il treno parte alle sette."),
    ]
    two = TaggedSentence("test-0006", ("cede ", "e ", "molla"), ("B-IDIOM", "O", "B-IDIOM"))
    others = [tagged(7, "È ora di gettare l'ancora.", "gettare l'ancora")]
    decisions = decide_by_tags([*raw, two], others, language="italian")
    assert [(item.decision, item.pie or item.reason) for item in decisions] == [
        ("keep", "vuotato il sacco"),
        ("drop", "no_known_pie"),  # the words of the PIE are not consecutive
        ("keep", "Vuotarono il sacco"),
        ("keep", "gettato l'ancora"),
        ("drop", "no_known_pie"),
        ("drop", "several_pies"),
    ]
    originals = apply_decisions([*raw, two], decisions, language="italian", where="")
    assert [item.is_figurative for item in originals] == [True, False, False]


@needs_mirror
@pytest.mark.parametrize(
    ("language", "figurative", "literal", "reasons"),
    [
        ("italian", 149, 38, {"no_known_pie": 10, "several_pies": 3}),
        ("spanish", 133, 25, {"no_known_pie": 41}),
    ],
)
def test_the_real_test_splits_without_a_release(language, figurative, literal, reasons):
    raw, dev = (
        read_id10m(MIRROR / "id10m" / f"{split}_{language}.tsv", split=split)
        for split in ("test", "dev")
    )
    decisions = decide_by_tags(raw, dev, language=language)
    report = filtering_report(
        raw, decisions, apply_decisions(raw, decisions, language=language, where="")
    )
    assert (report["figurative"], report["literal"]) == (figurative, literal)
    assert report["reasons"] == {"drop": reasons, "fix": {}}
    assert report["oddities"] == []


def row(sentence, pie="kept mum", **fields):
    """Return a row of a released file."""
    values = {"true_idioms": [pie], "is_figurative": True, "tokens": [sentence]}
    values |= {"tags": ["B-IDIOM"], "tag_ids": [1], "was_fixed": True}
    return {"sentence": sentence, "PIE": [pie], **values, **fields}


def test_unmatched_released_row_is_rejected(tmp_path, raw):
    path = write(tmp_path / "x.json", json.dumps([row("Something else was kept mum.")]))
    with pytest.raises(UserError, match=r"x\.json: record 1: .*no raw sentence"):
        derive_decisions(raw, read_released_originals(path), where=path)


def test_released_rows_must_keep_the_raw_order(tmp_path, raw):
    rows = [row("She kept bees.", "kept bees"), row("He kept mum.")]
    path = write(tmp_path / "x.json", json.dumps(rows))
    with pytest.raises(UserError, match=r"x\.json: record 2"):
        derive_decisions(raw, read_released_originals(path), where=path)


def test_a_damaged_release_is_named(tmp_path):
    path = write(tmp_path / "x.json", json.dumps([{"sentence": "He kept mum."}]))
    with pytest.raises(UserError, match=r"x\.json: record 1: PIE"):
        read_released_originals(path)
