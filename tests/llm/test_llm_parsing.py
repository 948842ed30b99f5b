"""Test how typical answers of models are parsed."""

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

from pieline.core.files import canonical_json
from pieline.llm.answers import Answer
from pieline.llm.idioms import parse_idioms
from pieline.llm.parsing import Outcome, json_values, parse_object, without_thoughts


class Judgement(BaseModel):
    model_config = ConfigDict(extra="ignore")

    idiom: str
    figurative: bool
    why: str | None = None


def answer_with(text: str | None, **fields: object) -> Answer:
    return Answer.model_validate({"key": "k", "text": text, "finish_reason": "stop", **fields})


GOOD = '{"idiom": "lose face", "figurative": true}'
OBJECTS: list[tuple[str, str | None, Outcome, object]] = [
    ("plain", GOOD, Outcome.OK, ("lose face", True)),
    ("spaces", f"\n\n {GOOD} \n", Outcome.OK, ("lose face", True)),
    ("fence", f"```json\n{GOOD}\n```", Outcome.OK, ("lose face", True)),
    ("fence without a name", f"Sure!\n```\n{GOOD}\n```\nBye", Outcome.OK, ("lose face", True)),
    ("prose around", f"I think: {GOOD}. Right?", Outcome.OK, ("lose face", True)),
    (
        "prose with [1] and {2}",
        f"As [1] and {{2}} say, {GOOD} [3]",
        Outcome.OK,
        ("lose face", True),
    ),
    (
        "braces in a text",
        '{"idiom": "a {b} c", "figurative": false}',
        Outcome.OK,
        ("a {b} c", False),
    ),
    ("last of two", f'{GOOD} no: {{"idiom": "x", "figurative": false}}', Outcome.OK, ("x", False)),
    ("last with the keys", f'{GOOD} {{"note": 1}}', Outcome.OK, ("lose face", True)),
    ("nested", f'{{"result": {GOOD}}}', Outcome.OK, ("lose face", True)),
    (
        "in a list",
        f'[{{"idiom": "x", "figurative": false}}, {GOOD}]',
        Outcome.OK,
        ("lose face", True),
    ),
    (
        "outermost with the keys",
        '{"idiom": "x", "figurative": true, "old": {"idiom": "y", "figurative": false}}',
        Outcome.OK,
        ("x", True),
    ),
    ("other fields", '{"idiom": "x", "figurative": true, "sure": 0.9}', Outcome.OK, ("x", True)),
    ("escapes", '{"idiom": "\\u00e9\\n\\"q\\"", "figurative": true}', Outcome.OK, ('é\n"q"', True)),
    (
        "thoughts",
        f'<think>{{"idiom": "x", "figurative": false}}</think>{GOOD}',
        Outcome.OK,
        ("lose face", True),
    ),
    ("thoughts that only end", f'maybe "x"</think>{GOOD}', Outcome.OK, ("lose face", True)),
    (
        "python dict",
        "{'idiom': 'lose face', 'figurative': True}",
        Outcome.REPAIRED,
        ("lose face", True),
    ),
    (
        "python dict with an apostrophe",
        "{'idiom': \"don't\", 'figurative': False, 'why': None}",
        Outcome.REPAIRED,
        ("don't", False),
    ),
    ("trailing comma", '{"idiom": "x", "figurative": true,}', Outcome.REPAIRED, ("x", True)),
    ("bare keys", '{idiom: "x", figurative: true}', Outcome.REPAIRED, ("x", True)),
    ("comment", '{"idiom": "x", // the PIE\n "figurative": true}', Outcome.REPAIRED, ("x", True)),
    ("no comma", '{"idiom": "x"\n "figurative": true}', Outcome.REPAIRED, ("x", True)),
    ("curly quotes", "{“idiom”: “x”, “figurative”: true}", Outcome.REPAIRED, ("x", True)),
    (
        "a real line end in a text",
        '{"idiom": "x\ny", "figurative": true}',
        Outcome.REPAIRED,
        ("x\ny", True),
    ),
    ("no closing brace", '{"idiom": "x", "figurative": true', Outcome.REPAIRED, ("x", True)),
    (
        "no closing brace, fence",
        '```json\n{"figurative": true, "idiom": "x"\n```',
        Outcome.REPAIRED,
        ("x", True),
    ),
    (
        "a later one to repair",
        f"{GOOD} Better: {{'idiom': 'x', 'figurative': False}}",
        Outcome.REPAIRED,
        ("x", False),
    ),
    (
        "broken off within a text",
        '{"figurative": true, "idiom": "lose fa',
        Outcome.UNPARSEABLE,
        None,
    ),
    ("broken off after a key", '{"idiom": "x", "figurative', Outcome.UNPARSEABLE, None),
    ("prose", "There is no idiom here.", Outcome.UNPARSEABLE, None),
    ("prose with [1]", "As [1] says, it is literal.", Outcome.UNPARSEABLE, None),
    ("empty", "", Outcome.EMPTY, None),
    ("blank", " \n", Outcome.EMPTY, None),
    ("list", '["lose face", true]', Outcome.UNPARSEABLE, None),
    ("other keys", '{"phrase": "x", "figurative": true}', Outcome.UNPARSEABLE, None),
    ("NaN", '{"idiom": NaN, "figurative": true}', Outcome.UNPARSEABLE, None),
    ("text for a truth value", '{"idiom": "x", "figurative": "true"}', Outcome.UNPARSEABLE, None),
    ("number for a truth value", '{"idiom": "x", "figurative": 1}', Outcome.UNPARSEABLE, None),
    ("null for a text", '{"idiom": null, "figurative": true}', Outcome.UNPARSEABLE, None),
    ("only in thoughts", f"<think>{GOOD}", Outcome.EMPTY, None),
    ("deep nesting", '{"a":' * 20_000, Outcome.UNPARSEABLE, None),
    ("many braces", "{" * 20_000, Outcome.UNPARSEABLE, None),
    ("null", None, Outcome.EMPTY, None),
    ("a later one breaks off", f'{GOOD} No: {{"idiom": "x", "figur', Outcome.UNPARSEABLE, None),
    ("a later one ends in a quote", f'{GOOD} No: {{"idiom": "', Outcome.UNPARSEABLE, None),
    (
        "within one that breaks off",
        f'{{"first": {GOOD}, "second": "no',
        Outcome.UNPARSEABLE,
        None,
    ),
    (
        "a key twice",
        '{"idiom": "x", "figurative": true, "figurative": false}',
        Outcome.UNPARSEABLE,
        None,
    ),
    ("a key twice alike", f"{GOOD[:-1]}, {GOOD[1:]}", Outcome.OK, ("lose face", True)),
]


@pytest.mark.parametrize(
    ("text", "outcome", "value"), [case[1:] for case in OBJECTS], ids=[case[0] for case in OBJECTS]
)
def test_objects(text: str | None, outcome: Outcome, value: object) -> None:
    parsed = parse_object(answer_with(text), Judgement)
    values = parsed.value and (parsed.value.idiom, parsed.value.figurative)
    assert (parsed.outcome, values) == (outcome, value)
    assert bool(parsed.reason) == (value is None)


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (answer_with(GOOD, finish_reason="length"), Outcome.TRUNCATED),
        (answer_with(None, finish_reason="length"), Outcome.TRUNCATED),
        (answer_with(GOOD, finish_reason="content_filter"), Outcome.FILTERED),
        (answer_with(None, finish_reason="content_filter"), Outcome.FILTERED),
        (answer_with(None, refusal="I will not"), Outcome.REFUSED),
        (answer_with(None, finish_reason="refusal"), Outcome.REFUSED),
        (answer_with(None), Outcome.EMPTY),
        (answer_with(None, finish_reason="tool_calls"), Outcome.TOOL_CALL),
        (answer_with(" ", finish_reason="function_call"), Outcome.TOOL_CALL),
        (answer_with("", tool_calls=[{"name": "f", "arguments": "{}"}]), Outcome.TOOL_CALL),
        (answer_with(GOOD, finish_reason=None), Outcome.OK),
        (answer_with(GOOD, finish_reason="tool_calls"), Outcome.OK),
    ],
)
def test_answers_that_need_no_parsing(answer: Answer, outcome: Outcome) -> None:
    assert parse_object(answer, Judgement).outcome is outcome
    if outcome is not Outcome.OK:
        listed = parse_idioms(answer)
        assert (listed.outcome, listed.value, bool(listed.reason)) == (outcome, None, True)


def test_strict_types_that_json_supports() -> None:
    class Labelled(BaseModel):
        label: Literal["i", "l"]
        spans: tuple[tuple[int, int], ...]

    parsed = parse_object(answer_with('{"label": "i", "spans": [[0, 3]]}'), Labelled)
    assert parsed.value == Labelled(label="i", spans=((0, 3),))
    assert "label" in parse_object(answer_with('{"label": "x", "spans": []}'), Labelled).reason


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("no thoughts ", "no thoughts "),
        ("<think>a</think>x<think>b</think>y", "xy"),
        ("a</think>x<think>b", "x"),
        ("<think>a<think>b</think>c</think>x", "x"),
        ("<think>\n<think>a</think>x", "x"),
        ("a</think>b</think>x", "x"),
        ("<thinking>a<reflection>b</reflection>c", ""),
        ("<thinking>a<reflection>b</reflection>c</thinking>x", "x"),
        ("<seed:think>a</seed:think>x", "x"),
        ("<THOUGHT>a</THOUGHT>x", "x"),
        ('<reasoning effort="high">a</reasoning>x', "x"),
        ("◁think▷a◁/think▷x", "x"),
        ("[THINK]a[/THINK]x", "x"),
        ("a[/THINK]x", "x"),
        ("<|begin_of_thought|>a<|end_of_thought|><|begin_of_solution|>x<|end_of_solution|>", "x"),
        ("<|START_THINKING|>a<|END_THINKING|><|START_RESPONSE|>x<|END_RESPONSE|>", "x"),
        ("<|channel>thought\na<channel|>x<turn|>", "x"),
        ("<|channel|>analysis<|message|>a", ""),
        (
            "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final"
            "<|message|>x<|return|>",
            "x",
        ),
        (
            "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>commentary"
            "<|message|>b<|end|><|start|>assistant<|channel|>final <|constrain|>json<|message|>x",
            "x",
        ),
        ("analysisWe need a.assistantfinalx", "x"),
        ("Analysis: x", "Analysis: x"),
        ("analysis of x", "analysis of x"),
        ("Here is my thought process: a\nHere is my response:x", "x"),
        ("Here are my steps: a\n[BEGIN FINAL RESPONSE]x[END FINAL RESPONSE]\n<|end|>", "x"),
        ('<details type="reasoning" done="true"><summary>a</summary>b</details>x', "x"),
        ("x<|im_end|>", "x"),
        ("x<|eot_id|>y", "x"),
        ("x</s>", "x"),
        ("x<end_of_turn>\n", "x"),
        ("x<｜end▁of▁sentence｜>", "x"),
        ("<|im_start|>assistant\nx<|im_end|>\n<|im_start|>user\ny", "\nx"),
        ("<|start_header_id|>assistant<|end_header_id|>x<|eot_id|>", "x"),
        ("a</think>x<|im_end|><|im_start|>assistant\nb</think>y", "x"),
        ("x <|begin_of_box|>y<|end_of_box|>.", "x y."),
        # Other tags and brackets belong to the answer.
        ("<answer>x</answer>", "<answer>x</answer>"),
        ("x</b> [think] [/INSTALL] <y>", "x</b> [think] [/INSTALL] <y>"),
    ],
)
def test_reasoning_and_special_tokens_are_removed(text: str, answer: str) -> None:
    assert without_thoughts(text) == answer


QUOTES = {
    "['bull's eye']": ["bull's eye"],
    "['Achilles' heel']": ["Achilles' heel"],
    "['rock 'n' roll', 'x']": ["rock 'n' roll", "x"],
    "['don't', \"can't\", 'x']": ["don't", "can't", "x"],
    "['dogs' dinner', 'cats' pyjamas',]": ["dogs' dinner", "cats' pyjamas"],
    "[‘bull’s eye’, ‘x’]": ["bull’s eye", "x"],
    "[«a b», „c d“]": ["a b", "c d"],
    "['it\\'s what it's']": ["it's what it's"],
    "{'a': 'it's', b: 'x'}": {"a": "it's", "b": "x"},
    "{'a': 'l'asso', 'b': ['dell'acqua', 'c'è'], 'c': null}": {
        "a": "l'asso", "b": ["dell'acqua", "c'è"], "c": None,
    },
    '["a b" "c d"]': ["a b", "c d"],
    # Where the string ends is unclear.
    "['the boys', dogs']": None,
    "['a' 'b']": None,
    "['a''s']": None,
    "['bull's eye]": None,
    "{'a': 'he said 'no', then left', 'b': 'x'}": None,
}  # fmt: skip


@pytest.mark.parametrize("text", QUOTES)
def test_apostrophes_do_not_end_strings(text: str) -> None:
    (piece,) = json_values(text)
    expected = Outcome.UNPARSEABLE if QUOTES[text] is None else Outcome.REPAIRED
    assert (piece.value, piece.outcome) == (QUOTES[text], expected)


def test_the_reason_names_the_first_field_that_is_wrong() -> None:
    parsed = parse_object(answer_with('{"idiom": 3, "figurative": "no"}'), Judgement)
    assert parsed.reason == "idiom: Input should be a valid string"


@pytest.mark.parametrize("idiom", ['6" under', '6" and } 7" under'])
def test_an_inch_sign_does_not_leave_an_object_open(idiom: str) -> None:
    (item,) = json_values(f"So {{'idiom': '{idiom}', 'n': 2}} it is.")
    assert (item.value, item.outcome) == ({"idiom": idiom, "n": 2}, Outcome.REPAIRED)


def test_the_rule_names_the_object() -> None:
    assert parse_object(answer_with(GOOD), Judgement).rule == "object with figurative, idiom"
    assert parse_object(answer_with("prose"), Judgement).rule == ""


def test_values_are_outermost_and_not_references() -> None:
    text = 'See [1], {2} and [sic]: [{"a": [1]}] then {\'b\': None}; {"c": x y} [["d"'
    values = [(item.value, item.outcome) for item in json_values(text)]
    assert values == [
        ([{"a": [1]}], Outcome.OK),
        ({"b": None}, Outcome.REPAIRED),
        ({"c": "x y"}, Outcome.REPAIRED),
        (None, Outcome.TRUNCATED),
    ]


@given(
    st.text(), st.booleans(), st.text(), st.text(alphabet=st.characters(blacklist_characters="{}<"))
)
def test_any_strict_object_is_returned_unchanged(
    idiom: str, figurative: bool, before: str, after: str
) -> None:
    before = before.replace("{", "").replace("<", "")
    text = f"{before}{canonical_json({'idiom': idiom, 'figurative': figurative})}{after}"
    if without_thoughts(text) != text:
        return
    parsed = parse_object(answer_with(text), Judgement)
    cleaned = answer_with(idiom).text
    assert parsed.outcome is Outcome.OK
    assert parsed.value
    assert (parsed.value.idiom, parsed.value.figurative) == (cleaned, figurative)


@given(st.text(alphabet="{}[]\"':,idoms \n<think>/a1"))
def test_no_text_crashes_the_parsers(text: str) -> None:
    parsed = parse_object(answer_with(text), Judgement)
    assert (parsed.value is not None) == parsed.outcome.is_readable
    listed = parse_idioms(answer_with(text))
    assert (listed.value is not None) == listed.outcome.is_readable
