"""Test which responses are answers, in the formats of all providers."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fault_server import ASKED, FaultServer, Reply, Request, echo
from llm_cases import KEY, Respond, ask_server, questions_for, send, spec_for
from provider_server import CALL, ProviderServer, chat, generated, message, output, response

from pieline.core.errors import UserError
from pieline.llm.answers import Answer
from pieline.llm.bodies import answer_fields, is_filtered_error
from pieline.llm.parsing import answer_text
from pieline.llm.recordings import read_responses
from pieline.llm.spending import Ledger

Body = dict[str, Any]

CHAT, MESSAGES, RESPONSES = "/v1/chat/completions", "/v1/messages", "/v1/responses"
GENERATED = "/v1beta/models/m:generateContent"
TEXT = {"type": "text", "text": '["a"]'}


def said(content: Any = '["a"]', finish: Any = "stop", **choice: Any) -> Body:
    """Return a chat completion with this content and these fields of the choice."""
    body = chat({"role": "assistant", "content": content}, finish)
    body["choices"][0] |= choice
    return body


def outcome(path: str, body: Body) -> str:
    """Return the outcome of an answer; `ok` if it has a text to parse."""
    answer = Answer(key="", **answer_fields(path, body))
    unreadable = answer_text(answer)[1]
    return str(unreadable.outcome) if unreadable else "ok"


BROKEN = {"code": 502, "message": "upstream"}
FAILED: list[tuple[str, Body]] = [
    *((CHAT, said(finish=reason)) for reason in (
        "error", "insufficient_system_resource", "network_error", "abort", "cancelled", "timeout",
        "function_call_filter: MALFORMED_FUNCTION_CALL", "new_reason", 4, 0, False)),
    (CHAT, said("[]", native_finish_reason="error")),
    (CHAT, said("[]", native_finish_reason="MALFORMED_FUNCTION_CALL")),
    (CHAT, said("[]", error=BROKEN)),
    (CHAT, said("[]", error="upstream")),
    (CHAT, said("[]") | {"error": BROKEN}),
    (CHAT, said("[]") | {"errors": [BROKEN]}),
    (CHAT, said("[]") | {"base_resp": {"status_code": 1008, "status_msg": "no balance"}}),
    (CHAT, said(None, None)),
    (CHAT, chat({"role": "assistant", "content": "[]", "error": BROKEN})),
    (MESSAGES, message(TEXT, stop="error")),
    (MESSAGES, message(TEXT, stop="pause_turn")),
    (MESSAGES, {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}),
    *((GENERATED, generated({"text": "[]"}, finish=reason)) for reason in (
        "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "NEW",
        "FINISH_REASON_UNSPECIFIED")),
    (RESPONSES, response(output("[]"), status="failed", error={"code": "server_error"})),
    (RESPONSES, response(output("[]"), status="cancelled")),
    (RESPONSES, response(output("[]"), status="incomplete", incomplete_details=None)),
    (RESPONSES, response(output("[]"), status="incomplete", incomplete_details={"reason": "x"})),
]  # fmt: skip


@pytest.mark.parametrize(("path", "body"), FAILED)
def test_a_failed_generation_is_read_as_failed(path: str, body: Body) -> None:
    assert outcome(path, body) == "failed"
    fields = answer_fields(path, body)
    assert fields["error"] or fields["provider_reason"]
    if fields["input_tokens" if "usage" in body else "text"]:
        assert (fields["input_tokens"], fields["output_tokens"]) == (9, 3)


FINISHED: list[tuple[str, Body, str, str, str | None]] = [
    (CHAT, said(), "ok", "stop", None),
    (CHAT, said(finish="eos"), "ok", "stop", "eos"),
    (CHAT, said(finish="stop", native_finish_reason="end_turn"), "ok", "stop", "stop, end_turn"),
    (CHAT, said(finish="length"), "truncated", "length", None),
    (CHAT, said(finish="stop", native_finish_reason="MAX_TOKENS"), "truncated", "length",
     "stop, MAX_TOKENS"),
    (CHAT, said(finish="model_length"), "truncated", "length", "model_length"),
    *((CHAT, said(finish=reason), "truncated", "length", reason) for reason in (
        "FINISH_REASON_MAX_TOKENS", "token_limit", "max_completion_tokens", "context_length")),
    (CHAT, said(finish="FINISH_REASON_SAFETY"), "filtered", "content_filter",
     "FINISH_REASON_SAFETY"),
    (CHAT, {"choices": [{"finish_reason": "content_filter"}]}, "filtered", "content_filter", None),
    (CHAT, said() | {"errors": [], "base_resp": {"status_code": 0}}, "ok", "stop", None),
    (CHAT, chat({"content": None, "refusal": {"text": "No."}}), "refused", "stop", None),
    (CHAT, said(None, "content_filter"), "filtered", "content_filter", None),
    (CHAT, said("x", "content_filter: SAFETY"), "filtered", "content_filter",
     "content_filter: SAFETY"),
    (CHAT, said("", "sensitive"), "filtered", "content_filter", "sensitive"),
    (CHAT, said(None, "stop", error={"code": "content_filter"}), "filtered", "content_filter",
     None),
    (CHAT, said(finish="stop", native_finish_reason="refusal"), "refused", "refusal",
     "stop, refusal"),
    (CHAT, said(error={"code": "", "message": ""}), "ok", "stop", None),
    (CHAT, said() | {"error": None}, "ok", "stop", None),
    (CHAT, chat({"content": None, "tool_calls": [CALL]}), "tool_call", "tool_calls", "stop"),
    (MESSAGES, message(TEXT), "ok", "stop", "end_turn"),
    (MESSAGES, message(TEXT, stop="max_tokens"), "truncated", "length", "max_tokens"),
    (MESSAGES, message(stop="refusal"), "refused", "refusal", None),
    (MESSAGES, message(TEXT, stop="model_context_window_exceeded"), "truncated", "length",
     "model_context_window_exceeded"),
    *((GENERATED, generated(finish=reason), "filtered", "content_filter", reason) for reason in (
        "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII")),
    (GENERATED, generated({"text": "x"}, finish="MAX_TOKENS"), "truncated", "length",
     "MAX_TOKENS"),
    (GENERATED, generated({"text": "x"}), "ok", "stop", "STOP"),
    (GENERATED, {"promptFeedback": {"blockReason": "SAFETY"}}, "filtered", "content_filter", None),
    (RESPONSES, response(output("x")), "ok", "stop", "completed"),
    (RESPONSES, response(output("x"), status="incomplete",
                         incomplete_details={"reason": "max_output_tokens"}),
     "truncated", "length", "max_output_tokens"),
    (RESPONSES, response(output("No.", "refusal")), "refused", "stop", "completed"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "body", "expected", "finish", "provider"), FINISHED)
def test_the_reason_of_the_provider_determines_the_outcome(
    path: str, body: Body, expected: str, finish: str, provider: str | None
) -> None:
    fields = answer_fields(path, body)
    assert (fields["finish_reason"], fields["provider_reason"]) == (finish, provider)
    assert outcome(path, body) == expected


THINKING = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
PARTS: list[tuple[list[Any], tuple[str | None, str | None, str | None]]] = [
    ([THINKING, TEXT], ('["a"]', "hm", None)),
    ([{"type": "thinking", "thinking": "hm"}, TEXT], ('["a"]', "hm", None)),
    ([{"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}, TEXT],
     ('["a"]', "hm", None)),
    ([{"type": "reasoning", "text": "hm"}, {"type": "text", "text": ""}], ("", "hm", None)),
    ([{"type": "redacted_thinking", "data": "x"}, TEXT], ('["a"]', None, None)),
    ([{"type": "thought", "thought": "hm"}, TEXT], ('["a"]', "hm", None)),
    ([{"type": "reasoning_content", "reasoning_content": "hm"}, TEXT], ('["a"]', "hm", None)),
    ([{"type": "text", "text": '["'}, {"type": "text", "text": 'a"]'}], ('["a"]', None, None)),
    ([{"type": "output_text", "text": "x", "annotations": []}], ("x", None, None)),
    ([{"text": "x"}], ("x", None, None)),
    (["x", "y"], ("xy", None, None)),
    ([THINKING], (None, "hm", None)),
    ([{"type": "refusal", "refusal": "No."}], (None, None, "No.")),
    ([{"type": "text", "text": "No.", "refusal": True}], (None, None, "No.")),
]  # fmt: skip


@pytest.mark.parametrize(("parts", "kept"), PARTS)
def test_content_in_parts_is_joined(
    parts: list[Any], kept: tuple[str | None, str | None, str | None]
) -> None:
    fields = answer_fields(CHAT, said(parts))
    assert (fields["text"], fields["reasoning"], fields["refusal"]) == kept
    assert (outcome(CHAT, said(parts)) == "refused") == bool(kept[2])


@pytest.mark.parametrize(
    "part",
    [{"type": "image_url", "image_url": {"url": "x"}}, {"type": "audio"}, {"type": "new"}, 4,
     {"type": "text", "text": None}, {"inlineData": {"data": "x"}}, {}, {"type": ["text"]}],
)  # fmt: skip
@pytest.mark.parametrize("with_text", [True, False])
def test_unknown_content_is_unreadable(part: Any, *, with_text: bool) -> None:
    parts = [part, TEXT] if with_text else [part]
    bodies: list[tuple[str, Body]] = [(CHAT, said(parts)), (MESSAGES, message(*parts))]
    bodies += [(GENERATED, generated(*parts)), (CHAT, said({"parts": parts})), (CHAT, said(5))]
    choice = {"index": 0, "finish_reason": "stop"}
    bodies += [(CHAT, chat(choices=[{**choice, "delta": {"content": "[]"}}])), (CHAT, chat("[]"))]
    for path, body in bodies:
        assert outcome(path, body) == "unparseable"
        assert answer_fields(path, body)["unread"]


FULL: list[tuple[str, Body]] = [
    (CHAT, {
        **chat({"role": "assistant", "content": '["a"]', "reasoning_content": "hm",
                "refusal": None, "tool_calls": None, "annotations": [], "audio": None},
               system_fingerprint="fp", service_tier="x",
               usage={"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12, "cost": 0.1,
                      "prompt_tokens_details": {"cached_tokens": 1, "audio_tokens": None},
                      "completion_tokens_details": {"reasoning_tokens": 2}})}),
    (MESSAGES, message(TEXT, usage={"input_tokens": 9, "cache_read_input_tokens": 1,
                                    "cache_creation_input_tokens": 1, "output_tokens": 3,
                                    "output_tokens_details": {"thinking_tokens": 2}})),
    (GENERATED, generated({"text": '["a"]'}, createTime="x", usageMetadata={
        "promptTokenCount": 9, "candidatesTokenCount": 3, "thoughtsTokenCount": 2,
        "cachedContentTokenCount": 1, "totalTokenCount": 14,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 9}]})),
    (RESPONSES, response(output('["a"]'), usage={
        "input_tokens": 9, "output_tokens": 3, "total_tokens": 12,
        "input_tokens_details": {"cached_tokens": 1},
        "output_tokens_details": {"reasoning_tokens": 2}})),
]  # fmt: skip
FULL[0][1]["choices"][0] |= {"logprobs": {"content": []}, "native_finish_reason": "stop"}
DECISIVE = {
    *("choices", "message", "content", "finish_reason", "native_finish_reason", "error", "text"),
    *("stop_reason", "candidates", "parts", "finishReason", "output", "status", "type"),
}
"""Fields that decide whether a body is an answer, and which text it has."""
ODD: list[Any] = [
    *(None, float("nan"), float("inf"), -1, -1.5, 2.5, "9", "", "\ud800", [], [None], {}, True),
    *({"a": None}, {"a": {"b": [None]}}, 10**30, [{"x": float("nan")}]),
]


def mutated(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield the path of each field and a copy of the value in which it is odd or missing."""
    items: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))
    for name, inner in items:
        for odd in ODD:
            changed = copy.copy(value)
            changed[name] = odd
            yield (*at, name), changed
        if isinstance(value, dict):
            yield (*at, name), {key: item for key, item in value.items() if key != name}
        for path, part in mutated(inner, (name,)):
            changed = copy.copy(value)
            changed[name] = part
            yield (*at, *path), changed


@pytest.mark.parametrize(("path", "body"), FULL)
def test_malformed_secondary_fields_lose_no_text(path: str, body: Body) -> None:
    tried = 0
    for place, changed in mutated(body):
        names = {name for name in place if isinstance(name, str)}
        is_secondary = place[-1] not in DECISIVE and not isinstance(place[-1], int)
        if is_secondary or names & {"usage", "usageMetadata", "logprobs", "promptTokensDetails"}:
            answer = Answer(key="", **answer_fields(path, changed))
            assert answer.text == '["a"]', place
            assert Answer.model_validate_json(answer.model_dump_json()) == answer, place
            tried += 1
    assert tried > 100


def test_a_text_has_not_zero_tokens() -> None:
    for usage in ({"prompt_tokens": 9}, {"prompt_tokens": 9, "completion_tokens": 0}):
        assert answer_fields(CHAT, said() | {"usage": usage})["output_tokens"] is None
        assert answer_fields(CHAT, said("") | {"usage": usage})["output_tokens"] == 0


SECONDARY: list[Body] = [
    {"usage": {"prompt_tokens": float("nan"), "completion_tokens": float("inf")}},
    {"usage": {"prompt_tokens": "9", "completion_tokens": [3]}},
    {"usage": {"prompt_tokens": 9, "completion_tokens": 3, "completion_tokens_details": 4}},
    {"usage": 4},
    {"id": 4},
    {"created": "yesterday"},
    {"object": None},
    {"system_fingerprint": {"a": 1}},
]


@pytest.mark.parametrize("fields", SECONDARY)
def test_a_paid_answer_with_malformed_fields_is_an_answer(respond: Respond, fields: Body) -> None:
    respond(content=json.dumps({**said(), **fields}).encode())
    answer = send(questions_for(spec_for(), 1)[0])
    assert (answer.text, answer.finish_reason) == ('["a"]', "stop")


@pytest.mark.parametrize("body", [FAILED[0][1], FAILED[9][1], FAILED[11][1]])
def test_a_failed_generation_is_recorded_and_asked_again(folder: Path, body: Body) -> None:
    reply = Reply(body=json.dumps({**body, "model": ASKED}).encode())

    def behave(request: Request) -> Reply:
        return reply if request.text == "q0" or request.attempt == 1 else echo(request)

    priced = {"entry": {"prices": {"input": 1, "output": 1}}, "max_cost_usd": 1}
    with FaultServer(behave) as server:
        failed, answered = ask_server(folder, server.api_base, 2, max_attempts=3, **priced)
        assert sorted(request.text for request in server.requests) == ["q0"] * 3 + ["q1"] * 2
    assert (answered.text, answered.failure, failed.attempt) == ("echo q1", "", 2)
    assert failed.failure and failed.raw and json.loads(failed.raw)["choices"] == body["choices"]
    responses = read_responses(folder / "a.jsonl")
    assert sorted(map(len, responses.values())) == [2, 3]
    spending = Ledger(folder).spending()
    assert spending.unanswered == {}
    assert spending.usd == pytest.approx((4 * 12 + 15) / 1e6)


AZURE = {
    "message": "The response was filtered due to the prompt triggering Azure OpenAI's content"
    " management policy.",
    "type": None,
    "param": "prompt",
    "code": "content_filter",
    "status": 400,
    "innererror": {"code": "ResponsibleAIPolicyViolation"},
}
FILTERS: list[tuple[int, Any]] = [
    (400, {"error": AZURE}),
    (400, {"error": {**AZURE, "code": None, "message": "no"}}),
    (400, {"error": {"code": "content_policy_violation", "message": "no"}}),
    (400, {"error": {"type": "invalid_request_error",
                     "message": "Output blocked by content filtering policy"}}),
    (400, {"error": {"code": "invalid_prompt", "message":
                     "Your prompt was flagged as potentially violating our usage policy."}}),
    (400, {"error": {"code": "data_inspection_failed", "message": "inappropriate content"}}),
    (400, {"error": {"message": "Content Exists Risk", "type": "invalid_request_error"}}),
    (422, {"error": {"code": "content_filter", "message": "no"}}),
    (403, {"error": {"code": 403, "message": "flagged",
                     "metadata": {"reasons": ["sexual"], "flagged_input": "x"}}}),
    # Errors of a provider in those of a gateway, and other spellings.
    (400, {"error": {"message": "Provider returned error", "code": 400,
                     "metadata": {"raw": json.dumps({"error": AZURE}), "provider_name": "Azure"}}}),
    (400, {"error": {"code": "400", "innerError": {"code": "ResponsibleAIPolicyViolation"}}}),
    (400, {"error": {"message": "bad", "details": [{"code": "ContentFilter"}]}}),
    (400, {"error": json.dumps(AZURE)}),
    (400, [{"error": {"code": 400, "status": "PROHIBITED_CONTENT", "message": "no"}}]),
    (400, {"error": {"code": "InputTextSensitiveContentDetected", "message": "no"}}),
    (400, {"error": {"code": "1301", "message": "no"}}),
    (400, {"error": {"message": "input new_sensitive (1026)", "type": "bad_request_error"}}),
    (403, {"code": "The caller does not have permission", "error":
           "Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_CSAM"}),
]  # fmt: skip


@pytest.mark.parametrize(("status", "body"), FILTERS)
def test_an_error_of_a_filter_is_an_answer(respond: Respond, status: int, body: Any) -> None:
    respond(status, json=body)
    answer = send(questions_for(spec_for(), 1)[0])
    assert (answer.text, answer.finish_reason) == (None, "content_filter")


def test_a_filtered_question_does_not_block_the_others(folder: Path) -> None:
    filtered = Reply(400, json.dumps({"error": AZURE}).encode())
    with FaultServer(lambda sent: filtered if sent.text == "q1" else echo(sent)) as server:
        answers = ask_server(folder, server.api_base, 4)
        assert len(server.requests) == 4
    parsed = [answer_text(answer)[1] for answer in answers]
    assert [each and str(each.outcome) for each in parsed] == [None, "filtered", None, None]


@pytest.mark.parametrize(
    "body",
    [{"error": {"message": "The maximum content length is 9."}}, {"error": "bad"}, [], None,
     {"error": {"code": "invalid_prompt", "message": "no user turn"}}, {"message": KEY},
     {"error": {"code": "unknown_parameter", "message": "Unknown parameter: content_filter"}}],
)  # fmt: skip
def test_other_errors_are_not_filters(body: Any) -> None:
    assert not is_filtered_error(body)


def test_an_account_that_violated_a_policy_stops_the_run(folder: Path) -> None:
    error = {"error": {"message": "Your account was deactivated: usage policies.", "code": "x"}}
    with (
        ProviderServer(error, status=403) as server,
        pytest.raises(UserError, match="the provider rejected the request"),
    ):
        ask_server(folder, server.api_base, 9)
