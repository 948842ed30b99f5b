"""Answers as models write them, and what becomes of each."""

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

from pieline.core.files import canonical_json
from pieline.llm.answers import Answer
from pieline.llm.parsing import Outcome, parse_list, parse_object, split_thoughts


class Judgement(BaseModel):
    model_config = ConfigDict(extra="ignore")

    idiom: str
    figurative: bool
    why: str | None = None


def said(text: str | None, **fields: object) -> Answer:
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
    ("empty", "", Outcome.UNPARSEABLE, None),
    ("list", '["lose face", true]', Outcome.UNPARSEABLE, None),
    ("other keys", '{"phrase": "x", "figurative": true}', Outcome.UNPARSEABLE, None),
    ("NaN", '{"idiom": NaN, "figurative": true}', Outcome.UNPARSEABLE, None),
    ("text for a truth value", '{"idiom": "x", "figurative": "true"}', Outcome.UNPARSEABLE, None),
    ("number for a truth value", '{"idiom": "x", "figurative": 1}', Outcome.UNPARSEABLE, None),
    ("null for a text", '{"idiom": null, "figurative": true}', Outcome.UNPARSEABLE, None),
    ("only in thoughts", f"<think>{GOOD}", Outcome.UNPARSEABLE, None),
    ("deep nesting", '{"a":' * 20_000, Outcome.UNPARSEABLE, None),
    ("many braces", "{" * 20_000, Outcome.UNPARSEABLE, None),
    ("null", None, Outcome.REFUSED, None),
]


@pytest.mark.parametrize(
    ("text", "outcome", "value"), [case[1:] for case in OBJECTS], ids=[case[0] for case in OBJECTS]
)
def test_objects(text: str | None, outcome: Outcome, value: object) -> None:
    parsed = parse_object(said(text), Judgement)
    found = parsed.value and (parsed.value.idiom, parsed.value.figurative)
    assert (parsed.outcome, found) == (outcome, value)
    assert bool(parsed.reason) == (value is None)


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (said(GOOD, finish_reason="length"), Outcome.TRUNCATED),
        (said(None, finish_reason="length"), Outcome.TRUNCATED),
        (said(GOOD, finish_reason="content_filter"), Outcome.REFUSED),
        (said(None, finish_reason="content_filter"), Outcome.REFUSED),
        (said(None, refusal="I will not"), Outcome.REFUSED),
        (said(GOOD, finish_reason=None), Outcome.OK),
        (said(GOOD, finish_reason="tool_calls"), Outcome.OK),
    ],
)
def test_answers_that_need_no_parsing(answer: Answer, outcome: Outcome) -> None:
    assert parse_object(answer, Judgement).outcome is outcome
    if outcome is not Outcome.OK:
        listed = parse_list(answer, "idioms")
        assert (listed.outcome, listed.value) == (outcome, None)


def test_strict_types_that_json_can_say() -> None:
    class Labelled(BaseModel):
        label: Literal["i", "l"]
        spans: tuple[tuple[int, int], ...]

    parsed = parse_object(said('{"label": "i", "spans": [[0, 3]]}'), Labelled)
    assert parsed.value == Labelled(label="i", spans=((0, 3),))
    assert "label" in parse_object(said('{"label": "x", "spans": []}'), Labelled).reason


def test_reasoning_is_kept_from_both_places() -> None:
    parsed = parse_object(said(f"<think> b </think>{GOOD}", reasoning="a"), Judgement)
    assert parsed.reasoning == "a\nb"
    assert parse_object(said(GOOD), Judgement).reasoning is None
    assert split_thoughts("<think>a</think>x<think>b</think>y") == ("xy", "a\nb")
    assert split_thoughts("no thoughts ") == ("no thoughts ", None)


LISTS: list[tuple[str, Outcome, list[str] | None]] = [
    ("idioms: [pissed off]", Outcome.OK, ["pissed off"]),
    ("Idioms: [lose face, piss off]", Outcome.OK, ["lose face", "piss off"]),
    ("idioms: []", Outcome.OK, []),
    ("idioms: [ ]", Outcome.OK, []),
    ('idioms: ["hook, line and sinker", "x"]', Outcome.OK, ["hook, line and sinker", "x"]),
    ("idioms: ['a b', 'c']", Outcome.OK, ["a b", "c"]),
    ("idioms: ['don't give up']", Outcome.OK, ["don't give up"]),
    ("idioms: [don't give up, o'clock]", Outcome.OK, ["don't give up", "o'clock"]),
    ('{"idioms": ["a b"]}', Outcome.OK, ["a b"]),
    ('```json\n{"idioms": []}\n```', Outcome.OK, []),
    ("**idioms:** [a b]", Outcome.OK, ["a b"]),
    ("Let me think.\nidioms: [x]\nFinal:\nidioms: [a b]", Outcome.OK, ["a b"]),
    ("<think>idioms: [x]</think>idioms: [a b]", Outcome.OK, ["a b"]),
    ("idioms:\n[a b]", Outcome.OK, ["a b"]),
    ("idioms: [a b, c", Outcome.REPAIRED, ["a b", "c"]),
    ("idioms: a b, c.", Outcome.REPAIRED, ["a b", "c"]),
    ('idioms: "a b"', Outcome.REPAIRED, ["a b"]),
    ("idioms:", Outcome.UNPARSEABLE, None),
    ("idioms: [", Outcome.UNPARSEABLE, None),
    ("idioms: [[a], [b]]", Outcome.UNPARSEABLE, None),
    ("I see no idioms here [1].", Outcome.UNPARSEABLE, None),
    ("nonidioms: [a]", Outcome.UNPARSEABLE, None),
    ("", Outcome.UNPARSEABLE, None),
]


@pytest.mark.parametrize(("text", "outcome", "value"), LISTS)
def test_lists(text: str, outcome: Outcome, value: list[str] | None) -> None:
    parsed = parse_list(said(text), "idioms")
    assert (parsed.outcome, parsed.value) == (outcome, value)


@given(
    st.text(), st.booleans(), st.text(), st.text(alphabet=st.characters(blacklist_characters="{}<"))
)
def test_any_strict_object_is_found_as_it_is(
    idiom: str, figurative: bool, before: str, after: str
) -> None:
    before = before.replace("{", "").replace("<", "")
    text = f"{before}{canonical_json({'idiom': idiom, 'figurative': figurative})}{after}"
    if "think>" in text:
        return
    parsed = parse_object(said(text), Judgement)
    cleaned = said(idiom).text
    assert parsed.outcome is Outcome.OK
    assert parsed.value
    assert (parsed.value.idiom, parsed.value.figurative) == (cleaned, figurative)


@given(st.text(alphabet="{}[]\"':,idoms \n<think>/a1"))
def test_no_text_breaks_the_parsers(text: str) -> None:
    parsed = parse_object(said(text), Judgement)
    assert (parsed.value is not None) == parsed.outcome.is_readable
    listed = parse_list(said(text), "idioms")
    assert (listed.value is not None) == listed.outcome.is_readable
