"""Majority votes and agreement with reviewers."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from construction_cases import judge, scripted, text

from pieline.llm.questions import Question
from pieline.studies.idiolink.datasets.assembly import agreement
from pieline.studies.idiolink.variants.validation import majority, validate

FIRST, SECOND = "007_s08_lit_01", "007_s08_lit_02"
TEXTS = [text(FIRST), text(SECOND, sentence="A man spilled the beans in the kitchen.")]
GOOD = {"fluent": True, "unambiguous": True, "on_domain": True, "span_fits": True}


@pytest.mark.parametrize(
    ("votes", "label"),
    [
        (["valid", "valid", "valid"], "valid"),
        (["valid", "invalid", "valid"], "valid"),
        (["invalid", "valid", "invalid"], "invalid"),
        (["valid", "valid", "unparseable"], "valid"),
        (["invalid", "refused", "invalid"], "invalid"),
        (["valid", "invalid", "unparseable"], "undecided"),
        (["valid", "missing", "truncated"], "undecided"),
        (["unparseable"] * 3, "undecided"),
        (["valid", "invalid"], "undecided"),
        # Two of four votes are not a majority.
        (["valid", "valid", "invalid", "unparseable"], "undecided"),
    ],
)
def test_the_majority_counts_all_runs(votes: list[str], label: str) -> None:
    assert majority(votes) == label


def judgements(*broken: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer about the two texts, with these changes to the judgments."""
    items = [{"number": n, **GOOD, **changes} for n, changes in enumerate(broken, start=1)]
    return {"text": json.dumps({"judgements": items})}


def verdicts_of(*turns: Mapping[str, Any]) -> dict[str, Any]:
    ask = scripted(lambda question: turns[question.sample])
    return {verdict.id: verdict for verdict in validate(TEXTS, judge(len(turns)), ask)}


def test_two_to_one_with_one_unparseable_answer() -> None:
    verdicts = verdicts_of(
        judgements({}, {}),
        judgements({}, {"span_fits": False, "comment": "too long"}),
        {"text": "Both look fine."},
    )
    assert verdicts[FIRST].votes == ["valid", "valid", "unparseable"]
    assert verdicts[FIRST].label == "valid"
    assert not verdicts[FIRST].flagged
    assert verdicts[SECOND].votes == ["valid", "invalid", "unparseable"]
    assert verdicts[SECOND].label == "undecided"
    assert verdicts[SECOND].flagged
    assert verdicts[SECOND].failed == {"span_fits": 1}
    assert verdicts[SECOND].comments == ["too long"]
    assert len(set(verdicts[FIRST].answer_keys)) == 3


@pytest.mark.parametrize("criterion", GOOD)
def test_any_failed_criterion_makes_a_text_invalid(criterion: str) -> None:
    turn = judgements({criterion: False}, {})
    verdicts = verdicts_of(turn, turn, turn)
    assert verdicts[FIRST].label == "invalid"
    assert verdicts[FIRST].failed == {criterion: 3}
    assert verdicts[SECOND].label == "valid"


@pytest.mark.parametrize(
    ("turn", "votes"),
    [
        (judgements({}), ["valid", "missing"]),
        (judgements({}, {"number": 1}), ["unparseable", "unparseable"]),
        (judgements({}, {"number": 3}), ["unparseable", "unparseable"]),
        (judgements({}, {"fluent": "yes"}), ["unparseable", "unparseable"]),
        ({"text": '{"judgements"', "finish_reason": "length"}, ["truncated", "truncated"]),
        ({"text": None, "finish_reason": "content_filter"}, ["filtered", "filtered"]),
    ],
)
def test_a_missing_vote_is_neither_valid_nor_invalid(
    turn: dict[str, Any], votes: list[str]
) -> None:
    verdicts = verdicts_of(turn)
    assert [verdicts[FIRST].votes[0], verdicts[SECOND].votes[0]] == votes


def test_each_pair_and_run_has_one_question_with_marked_texts() -> None:
    asked: list[Question] = []

    def turns(question: Question) -> dict[str, Any]:
        asked.append(question)
        return judgements({}, {})

    elsewhere = text("007_s02_lit_01", subject="Sport")
    validate([*TEXTS, elsewhere], judge(), scripted(turns))
    assert len(asked) == 6
    assert sorted(question.sample for question in asked) == [0, 0, 1, 1, 2, 2]
    food = next(q for q in asked if "Domain: Food" in q.messages[-1].content).messages[-1].content
    assert "1. (literal) The cook [[spilled the beans]] on the floor." in food
    assert "2. (literal) A man [[spilled the beans]] in the kitchen." in food


def judged(cells: Sequence[tuple[bool, bool, int]]) -> tuple[dict[str, bool], dict[str, bool]]:
    """Return flags and human judgments of texts; a cell is (flagged, invalid, number of texts)."""
    flagged, invalid = {}, {}
    for flag, finding, number in cells:
        for _ in range(number):
            flagged[str(len(flagged))] = flag
            invalid[str(len(invalid))] = finding
    return flagged, invalid


def test_agreement_counts_both_kinds_of_error() -> None:
    flagged, invalid = judged(
        [(False, False, 6), (True, False, 2), (False, True, 1), (True, True, 1)]
    )
    result = agreement(flagged, invalid)
    assert result is not None
    assert (result.valid_judged_invalid, result.invalid_judged_valid) == (2, 1)
    assert result.accuracy == pytest.approx(0.7)
    assert result.valid_f1 == pytest.approx(12 / 15)
    assert result.invalid_f1 == pytest.approx(2 / 5)
    assert result.macro_f1 == pytest.approx((12 / 15 + 2 / 5) / 2)
    assert result.missed == pytest.approx(0.1)


def test_agreement_needs_texts_that_both_judged() -> None:
    assert agreement({"a": True}, {"b": True}) is None


def test_the_printed_agreement_is_the_f1_of_valid_texts() -> None:
    """Section 3.2.4: with 121 invalid texts, the accuracy 72.08% and 42 missed of 1,300 texts.

    No number of invalid texts makes the printed value the macro-averaged F1, which never exceeds
    the accuracy.
    """
    flagged, judged_invalid = judged(
        [(False, False, 858), (True, False, 321), (False, True, 42), (True, True, 79)]
    )
    result = agreement(flagged, judged_invalid)
    assert result is not None
    assert round(100 * result.accuracy, 2) == 72.08
    assert round(100 * result.valid_f1, 2) == 82.54
    assert round(100 * result.missed, 2) == 3.23
    assert round(100 * result.macro_f1, 2) == 56.43
