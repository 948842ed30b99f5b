"""Writers: questions, ids, marks, and accepted and rejected answers."""

import json
from typing import Any

import pytest
from construction_cases import PAIR, counts, good_texts, scripted, writer

from pieline.core.errors import UserError
from pieline.llm.questions import Question
from pieline.studies.idiolink.originals.pairs import Pair, pairs_of
from pieline.studies.idiolink.originals.pie_filter import FilterThresholds, filter_pies
from pieline.studies.idiolink.records import DOMAINS, TextId, parse_id
from pieline.studies.idiolink.variants.generation import (
    generate,
    generation_question,
    unmark,
)


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("001_s01_idiom_01", ("documents", 1, "Politics", "idiomatic", 1)),
        ("118_s10_lit_04", ("documents", 118, "Environment", "literal", 4)),
        ("045_s05_sim_02", ("documents", 45, "Medicine", "simplification", 2)),
        ("045_s08_sense_02", ("documents", 45, "Food", "sense", 2)),
        ("q_001_s01_lit_01", ("queries", 1, "Politics", "literal", 1)),
    ],
)
def test_ids_follow_the_released_format(name: str, parts: tuple[Any, ...]) -> None:
    assert tuple(parse_id(name)) == parts
    assert str(TextId(*parts)) == name


@pytest.mark.parametrize(
    "name",
    ["1_s01_lit_01", "001_s11_lit_01", "001_s01_lit_1", "001_s01_fig_01", "Q_001_s01_lit_01"],
)
def test_other_ids_are_rejected(name: str) -> None:
    with pytest.raises(UserError, match="is not in the released format"):
        parse_id(name)


def test_pairs_combine_kept_pies_and_all_domains_in_order() -> None:
    label_counts = {"a": counts(idiomatic=20, literal=20), "b": counts(idiomatic=1, literal=1)}
    pairs = pairs_of(filter_pies(label_counts, FilterThresholds(), "paper", {}), ["Sport", "Food"])
    assert [(pair.pie, pair.pie_number, pair.domain) for pair in pairs] == [
        ("a", 1, "Sport"),
        ("a", 1, "Food"),
    ]
    assert len(DOMAINS) == 10


@pytest.mark.parametrize(
    "marked",
    [
        "no mark at all",
        "two [[marks]] are one [[too many]]",
        "an empty [[ ]] mark",
        "a stray [[mark]] ]] here",
        "an open [[mark",
    ],
)
def test_a_text_needs_exactly_one_mark(marked: str) -> None:
    with pytest.raises(ValueError, match=r"marked spans|stray"):
        unmark(marked)


def test_unmark_returns_sentence_and_span() -> None:
    assert unmark("She  [[spilled the beans]].\n") == (
        "She spilled the beans.",
        "spilled the beans",
    )


def test_a_good_answer_gives_ten_texts_with_ids_and_spans() -> None:
    ask = scripted(lambda question: {"text": json.dumps(good_texts())})
    texts, report = generate([PAIR], writer(), "documents", ask)
    assert [text.id for text in texts] == [
        *(f"007_s08_idiom_{n:02d}" for n in (1, 2)),
        *(f"007_s08_lit_{n:02d}" for n in (1, 2, 3, 4)),
        *(f"007_s08_sense_{n:02d}" for n in (1, 2)),
        *(f"007_s08_sim_{n:02d}" for n in (1, 2)),
    ]
    assert all(text.span in text.sentence and "[[" not in text.sentence for text in texts)
    assert {text.answer_key for text in texts} == {ask.asked[0].key}
    assert report.answers == {"ok": 1}
    assert report.asked_again == []


def test_queries_are_one_literal_and_one_idiomatic() -> None:
    answer = {"literal": ["[[spilled the beans]] A."], "idiomatic": ["[[spilled the beans]] B."]}
    ask = scripted(lambda question: {"text": json.dumps(answer)})
    texts, _ = generate([PAIR], writer(), "queries", ask)
    assert [text.id for text in texts] == ["q_007_s08_idiom_01", "q_007_s08_lit_01"]


TOO_FEW = good_texts() | {"literal": good_texts()["literal"][:3]}
UNMARKED = good_texts() | {"sense": ["no mark", "[[no]] mark"]}


@pytest.mark.parametrize(
    ("turn", "outcome"),
    [
        ({"text": "I cannot."}, "unparseable"),
        ({"text": '{"literal": [', "finish_reason": "length"}, "truncated"),
        ({"text": None}, "empty"),
        ({"text": None, "refusal": "No."}, "refused"),
        ({"text": json.dumps(TOO_FEW)}, "unusable"),
        ({"text": json.dumps(UNMARKED)}, "unusable"),
    ],
)
def test_an_unusable_answer_is_requested_again(turn: dict[str, Any], outcome: str) -> None:
    ask = scripted(
        lambda question: turn if question.sample == 0 else {"text": json.dumps(good_texts())}
    )
    texts, report = generate([PAIR], writer(), "documents", ask)
    assert len(texts) == 10
    assert [question.sample for question in ask.asked] == [0, 1]
    assert report.answers == {outcome: 1, "ok": 1}
    assert report.asked_again == ["spill the beans / Food"]


def test_only_pairs_without_texts_are_requested_again() -> None:
    other = Pair(pie="spill the beans", pie_number=7, domain="Sport")

    def turns(question: Question) -> dict[str, Any]:
        is_food = "Domain: Food" in question.messages[-1].content
        return {"text": "no" if is_food and question.sample < 2 else json.dumps(good_texts())}

    ask = scripted(turns)
    texts, _ = generate([other, PAIR], writer(), "documents", ask)
    assert len(texts) == 20
    assert [question.sample for question in ask.asked] == [0, 0, 1, 2]


def test_a_pair_without_texts_after_all_attempts_is_an_error() -> None:
    ask = scripted(lambda question: {"text": "no"})
    with pytest.raises(UserError, match=r"1 of 1 pairs have no texts after 2 attempts"):
        generate([PAIR], writer(attempts=2), "documents", ask)
    assert len(ask.asked) == 2


def test_the_prompt_contains_pie_domain_and_numbers() -> None:
    question = generation_question(PAIR, writer(), "documents", attempt=0)
    user = question.messages[-1].content
    assert "PIE: spill the beans" in user
    assert "Domain: Food" in user
    assert "Write 4 literal, 2 idiomatic, 2 simplification, 2 sense texts." in user
    assert question.parameters == {"temperature": 1}
