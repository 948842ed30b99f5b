"""The prompt, the questions, and the parsing of answers."""

import hashlib
import json

import pytest
from idiots_cases import ROOT, answer, says, sentences
from jinja2.sandbox import SandboxedEnvironment

from pieline.core.errors import UserError
from pieline.core.outcomes import READABLE, OutcomeName
from pieline.llm.prompts import load_prompt
from pieline.models.llm import LLMEntry
from pieline.models.registry import load_registry
from pieline.studies.idiots.predictions import ANSWER_SCHEMA, detection_questions, read_prediction
from pieline.studies.idiots.records import DetectionPrediction

PROMPT = load_prompt(ROOT / "prompts/idiots/detect.jinja")
PARAMETERS = {"temperature": 0, "top_k": 40, "top_p": 0.95, "max_tokens": 800}


def entry(name: str) -> LLMEntry:
    model = load_registry(ROOT / "models.yaml")[name]
    assert isinstance(model, LLMEntry)
    return model


def test_prompt_is_the_papers_verbatim() -> None:
    system, user = PROMPT.messages(sentence="She was {{ playing }} it by ear. ")
    assert (system.role, user.role) == ("system", "user")
    assert user.content == "She was {{ playing }} it by ear. "
    lines = system.content.split("\n")
    # The prompt must contain all parts that section 4.2 quotes.
    assert lines[0].startswith(
        "You are a professional linguist specialising in figurative language"
    )
    assert "English sentences that may contain an idiom, also known as an idiomatic" in lines[0]
    assert lines[1] == "The response should be in strict JSON format including four fields:"
    assert [line.split(":")[0] for line in lines[2:]] == [
        "'hasIdiom'", "'idiom'", "'meaning'", "'explanation'",
    ]  # fmt: skip
    # Any changed character would be a different experiment.
    digest = hashlib.sha256(system.content.encode("utf-8")).hexdigest()
    assert digest == "0c290f84ce7a11e75a66435f608c16f882020fce4e533ef9d2c23f4d66d2f445"


def test_parameters_are_the_papers_if_the_provider_accepts_them() -> None:
    suite = sentences(1, 1)

    def sent(model: str, setting: str = "zero_shot") -> tuple[dict[str, object], tuple[str, ...]]:
        questions = detection_questions(
            suite, entry(model), PROMPT, PARAMETERS, setting=setting, seed=3
        )
        assert [question.name for question in questions] == [case.id for case in suite]
        assert questions[0].messages[-1].content == suite[0].sentence
        return dict(questions[0].parameters), questions[0].dropped

    everything = PARAMETERS | {"seed": 3}
    assert sent("llama-2-7b-chat") == (everything, ())
    without_top_k = {name: value for name, value in everything.items() if name != "top_k"}
    assert sent("gpt-4o-mini") == (without_top_k, ("top_k",))
    assert sent("o3-mini")[1] == ("temperature", "top_k", "top_p")
    assert sent("claude-4-sonnet")[1] == ("seed",)
    schema, _ = sent("smollm2-135m-instruct", "zero_shot_schema")
    assert schema == everything | {"response_format": ANSWER_SCHEMA}
    with pytest.raises(UserError, match=r"DeepSeek-R1: the provider enforces no form"):
        sent("deepseek-r1", "zero_shot_schema")


READ: list[tuple[str | None, dict[str, str], OutcomeName, bool | None, str | None]] = [
    (says(True, "break the ice"), {}, "ok", True, "break the ice"),
    (says(False), {}, "ok", False, ""),
    ('{"hasIdiom": "True", "idiom": null}', {}, "ok", True, None),
    # Keys that can only mean the decision.
    ('{"has_idiom": true, "idiom": "a b"}', {}, "ok", True, "a b"),
    ('{"is_idiomatic": false, "meaning": "x"}', {}, "ok", False, None),
    ('{"answer": "yes", "idiom": "a b"}', {}, "ok", True, "a b"),
    ('{"literal": true}', {}, "unparseable", None, None),
    ('{"meaning_known": true}', {}, "unparseable", None, None),
    ('{"has_idiom": true, "is_idiomatic": false}', {}, "unparseable", None, None),
    # JSON in a JSON string.
    ('"{\\"hasIdiom\\": true, \\"idiom\\": \\"a b\\"}"', {}, "ok", True, "a b"),
    ('{"hasIdiom": "false"}', {}, "ok", False, None),
    ('{"hasIdiom": true, "idiom": ["a bite", "a bark"]}', {}, "ok", True, "a bite; a bark"),
    ("```json\n" + says(True, "x y") + "\n```", {}, "ok", True, "x y"),
    ("{'hasIdiom': True, 'idiom': 'x y'}", {}, "repaired", True, "x y"),
    ('{"hasIdiom": "maybe", "idiom": "x"}', {}, "unparseable", None, None),
    ('{"hasIdiom": 1, "idiom": "x"}', {}, "unparseable", None, None),
    ('{"idiom": "x"}', {}, "unparseable", None, None),
    ("There is no idiom in the sentence.", {}, "unparseable", None, None),
    ("", {}, "empty", None, None),
    ('{"hasIdiom": true, "hasIdiom": false}', {}, "unparseable", None, None),
    (says(True, "x y") + ' Wait: {"hasIdiom": fal', {}, "unparseable", None, None),
    (says(True, "x y") + " Wait, " + says(False), {}, "ok", False, ""),
    (says(True, "x y") + "\nThere are no other idioms.", {}, "ok", True, "x y"),
    (says(True, "x y") + "\n" + says(True, "a b"), {}, "ok", True, "a b"),
    (says(True, "x y") + " or " + says(False), {}, "unparseable", None, None),
    (says(False) + " or " + says(True, "x y") + "\nThinking it over: " + says(True, "a b"), {},
     "ok", True, "a b"),
    (says(False) + "\n" + says(True, "x y")[:-1], {}, "unparseable", None, None),
    (f"[{says(True, 'x y')}, {says(False)}]", {}, "unparseable", None, None),
    (f'{{"a": {says(True, "x y")}, "b": {says(False)}}}', {}, "unparseable", None, None),
    (says(True, "x y") + "\nSorry, that was wrong.", {}, "unparseable", None, None),
    (says(True, "x y") + "\nThere is no idiom.", {}, "unparseable", None, None),
    (f"For example {says(True, 'x y')}. My answer: none.", {}, "unparseable", None, None),
    (says(False) + '\nHowever, "x y" is an idiom.', {}, "unparseable", None, None),
    (says(True, "none"), {}, "ok", True, "none"),
    (says(False, "break the ice"), {}, "ok", False, "break the ice"),
    ("{'a': ({'hasIdiom': True},)}", {}, "repaired", True, None),
    ('{"hasIdiom": true, "explanation": "There is no idiom."}', {}, "ok", True, None),
    (says(False), {"finish_reason": "length"}, "truncated", None, None),
    (None, {"refusal": "I will not"}, "refused", None, None),
    (None, {"finish_reason": "content_filter"}, "filtered", None, None),
    (None, {"finish_reason": "tool_calls"}, "tool_call", None, None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "fields", "outcome", "has_idiom", "idiom"), READ)
def test_an_answer_is_parsed_or_neither_yes_nor_no(
    text: str | None,
    fields: dict[str, str],
    outcome: OutcomeName,
    has_idiom: bool | None,
    idiom: str | None,
) -> None:
    prediction = read_prediction("idi001-sen01-id", answer("q", text, **fields))
    assert (prediction.outcome, prediction.has_idiom, prediction.idiom) == (
        outcome,
        has_idiom,
        idiom,
    )
    assert bool(prediction.reason) == (outcome not in READABLE)
    assert prediction.rule == ("object with hasIdiom" if outcome in READABLE else "")
    line = json.dumps(prediction.model_dump())
    assert DetectionPrediction.model_validate_json(line) == prediction


@pytest.mark.parametrize("idiom", ["None", "N/A", "no idiom"])
def test_true_alone_decides(idiom: str) -> None:
    assert read_prediction("a", answer("q", says(True, idiom))).has_idiom is True


def test_llama2_is_asked_in_the_printed_layout() -> None:
    """The template of the entry gives Figure 2's layout, which differs from that of the weights."""
    template = SandboxedEnvironment().from_string(str(entry("llama-2-7b-chat").chat_template))
    turns = [
        {"role": turn.role, "content": turn.content}
        for turn in PROMPT.messages(sentence="She was playing it by ear.")
    ]
    shown = template.render(messages=turns, bos_token="<s>", eos_token="</s>")
    system = turns[0]["content"]
    assert shown == f"<s>[INST] <<SYS>>\n{system}\n<</SYS>> She was playing it by ear. [/INST]"


def test_a_missing_answer_cannot_become_a_no() -> None:
    for outcome, has_idiom in (("unparseable", False), ("ok", None)):
        with pytest.raises(ValueError, match="has_idiom"):
            DetectionPrediction(
                id="a",
                outcome=outcome,
                has_idiom=has_idiom,
                answer_key="k",  # type: ignore[arg-type]
            )


def test_outcome_names_match_the_llm_layer() -> None:
    from typing import get_args

    from pieline.llm.parsing import Outcome

    assert set(get_args(OutcomeName)) == {outcome.value for outcome in Outcome}
    assert {outcome.value for outcome in Outcome if outcome.is_readable} == READABLE
