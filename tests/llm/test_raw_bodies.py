"""Test raw fields of entries (`body`), OpenAI's /responses, and entries of current models."""

import importlib.resources
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from llm_cases import KEY, Respond, send, settings_for, spec_for
from provider_server import SERVED, ProviderServer, chat, generated, message, output, response
from support import ROOT

from pieline.cli import command
from pieline.core.errors import UserError
from pieline.core.yamls import read_yaml
from pieline.llm.answers import Answer, ToolCall
from pieline.llm.archive import verify
from pieline.llm.client import ask
from pieline.llm.costs import max_input_tokens
from pieline.llm.questions import Question, make_question
from pieline.llm.recordings import read_lines
from pieline.llm.spending import Ledger
from pieline.llm.wire import difference, merge_fields, restore_body
from pieline.models.llm import LLMEntry
from pieline.models.registry import load_registry

EXAMPLES = ROOT / "examples/chat_models.yaml"
CURRENT = {
    name: entry for name, entry in load_registry(EXAMPLES).items() if isinstance(entry, LLMEntry)
}
# Not in alphabetical order: the model explains before it chooses.
SCHEMA = {
    "type": "object",
    "properties": {"why": {"type": "string"}, "idioms": {"type": "array"}},
    "required": ["why", "idioms"],
    "additionalProperties": False,
}
FORM = {"type": "json_schema", "json_schema": {"name": "x", "strict": True, "schema": SCHEMA}}
TURNS = [("system", "Be brief."), ("user", "Any idiom?")]
SAID = '{"why": "none", "idioms": []}'


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for entry in CURRENT.values():
        monkeypatch.setenv(str(entry.api_key_env), KEY)


def entry_of(name: str, **changes: Any) -> LLMEntry:
    """Return an example entry with changed fields, restored from its spec as in a job."""
    fields = {**read_yaml(EXAMPLES)[name], **changes}
    return LLMEntry.from_spec(LLMEntry.model_validate(fields).execution_spec(), label=name)


def asked(folder: Path, entry: LLMEntry, question: Question, **settings: Any) -> Answer:
    own = {"max_cost_usd": 1000, "max_attempts": 1, **settings}
    (answer,) = ask(
        [question], entry, settings_for(folder, **own), folder / "a.jsonl", progress=False
    ).values()
    return answer


CLAUDE = {
    "model": "claude-sonnet-5-5",
    "system": [{"type": "text", "text": "Be brief."}],
    "messages": [{"role": "user", "content": [{"type": "text", "text": "Any idiom?"}]}],
}
GEMINI = {
    "system_instruction": {"parts": [{"text": "Be brief."}]},
    "contents": [{"role": "user", "parts": [{"text": "Any idiom?"}]}],
}
PLAIN = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Any idiom?"}]
CONTROLS: list[tuple[str, dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    ("claude-sonnet-5.5", {"thinking": {"type": "adaptive"}, "output_config": {"effort": "max"}},
     {"max_tokens": 900},
     CLAUDE | {"max_tokens": 900, "thinking": {"type": "adaptive"},
               "output_config": {"effort": "max"}}),
    ("claude-sonnet-5.5",
     {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}}, {},
     CLAUDE | {"max_tokens": 16000,
               "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}}),
    ("claude-sonnet-5.5", {"output_config": {"effort": "low"}}, {"response_format": FORM},
     CLAUDE | {"max_tokens": 16000, "output_config": {"effort": "low"},
               "output_format": {"type": "json_schema", "schema": SCHEMA}}),
    ("claude-haiku-4.5", {"thinking": {"type": "enabled", "budget_tokens": 1024}}, {},
     CLAUDE | {"model": "claude-haiku-4-5-20251001", "max_tokens": 8000,
               "thinking": {"type": "enabled", "budget_tokens": 1024}}),
    ("gemini-3.8-flash", {"generationConfig": {"thinkingConfig": {"thinkingLevel": "high"}}},
     {"max_tokens": 9, "seed": 3},
     GEMINI | {"generationConfig": {"max_output_tokens": 9, "seed": 3,
                                    "thinkingConfig": {"thinkingLevel": "high"}}}),
    ("gpt-5.4-mini", {"reasoning_effort": "xhigh", "verbosity": "low"}, {"max_tokens": 50},
     {"model": "gpt-5.4-mini-2026-03-17", "messages": PLAIN, "max_completion_tokens": 50,
      "reasoning_effort": "xhigh", "verbosity": "low"}),
    ("gpt-6-sol", {"reasoning": {"effort": "none"}}, {"max_tokens": 50, "response_format": FORM},
     {"model": "gpt-6-sol", "input": PLAIN, "max_output_tokens": 50,
      "reasoning": {"effort": "none"},
      "text": {"format": {"type": "json_schema", **FORM["json_schema"]}}}),
    ("gpt-6-sol", {"text": {"verbosity": "low"}}, {"response_format": FORM},
     {"model": "gpt-6-sol", "input": PLAIN,
      "text": {"verbosity": "low", "format": {"type": "json_schema", **FORM["json_schema"]}}}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "body", "parameters", "expected"), CONTROLS)
def test_raw_fields_are_sent_as_written_and_recorded(
    folder: Path, name: str, body: dict[str, Any], parameters: dict[str, Any], expected: Any
) -> None:
    entry = entry_of(name, body=body)
    question = make_question(entry, TURNS, parameters)
    with ProviderServer() as server:
        served = server.play(entry)
        answer = asked(folder, served, question)
        assert asked(folder, served, question, mode="replay") == answer
        (request,) = server.requests
        # A recorded answer is used only for a question with the same raw fields.
        for other in (None, {**body, "x": 1}):
            another = served.model_copy(update={"body": other})
            with pytest.raises(UserError, match=r"1 answer of .* is not recorded"):
                asked(folder, another, make_question(another, TURNS, parameters), mode="replay")
    assert request.body == expected
    if '"properties"' in json.dumps(expected):
        assert '"properties": {"why"' in json.dumps(request.body)
    assert answer.sent and restore_body(question, answer.sent) == expected
    assert verify(folder / "a.jsonl") == []
    (line,) = read_lines(folder / "a.jsonl")
    assert line.question() == question and json.loads(line.value["question"]["body"]) == body


def test_the_order_of_raw_fields_is_part_of_the_key() -> None:
    keys = {
        make_question(spec_for(body={"s": order}), TURNS, {}).key
        for order in ({"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": 1.0, "b": 2})
    }
    assert len(keys) == 2
    assert max_input_tokens(make_question(spec_for(body={"s": "é"}), TURNS, {})) == (
        max_input_tokens(make_question(spec_for(), TURNS, {})) + len('{"s": "\\u00e9"}')
    )


def test_a_conflict_with_a_parameter_is_a_one_line_error(folder: Path) -> None:
    body = {"generationConfig": {"responseMimeType": "text/plain"}}
    with ProviderServer() as server:
        entry = server.play(entry_of("gemini-3.8-flash", body=body))
        question = make_question(entry, TURNS, {"response_format": FORM})
        with pytest.raises(
            UserError,
            match="already has response_mime_type, so body cannot set generationConfig",
        ):
            asked(folder, entry, question)
        assert server.requests == []


def test_fields_are_merged_without_loss() -> None:
    ours = {"a": {"b": 1}, "c": 2}
    assert merge_fields(ours, {"a": {"d": {"e": 3}}, "f": [4]}) == {
        "a": {"b": 1, "d": {"e": 3}}, "c": 2, "f": [4],
    }  # fmt: skip
    assert ours == {"a": {"b": 1}, "c": 2}
    for clash in ({"c": 2}, {"a": 1}, {"a": {"b": 1}}, {"A": {"d": 3}}, {"a": {"B_": 1}}):
        with pytest.raises(ValueError, match="so body cannot set"):
            merge_fields(ours, clash)
    question = make_question(spec_for(body={"c": {"d": 1}}), [("user", "x")], {})
    sent = {"model": "test-model", "messages": [{"role": "user", "content": "x"}]}
    path = "/v1/chat/completions"
    assert difference(question, path, sent) == 'has c none, but the question has {"d": 1}'
    assert difference(question, path, {**sent, "c": {"d": 1}}) is None


def test_a_rejected_field_is_reported_with_the_provider_message(folder: Path) -> None:
    refused = {"error": {"message": "Unknown name 'thinkinConfig'", "code": 400}}
    with ProviderServer(refused, status=400) as server:
        for name in ("gemini-3.8-flash", "gpt-6-sol", "claude-haiku-4.5"):
            entry = server.play(entry_of(name, body={"thinkinConfig": 1}))
            with pytest.raises(UserError, match="Unknown name 'thinkinConfig'") as error:
                asked(folder, entry, make_question(entry, TURNS, {"max_tokens": 9}))
            assert "\n" not in str(error.value)
        assert len(server.requests) == 3
    assert Ledger(folder).spending().usd == 0


def test_structured_output_of_claude_is_an_answer(folder: Path) -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    with ProviderServer(message(thought, {"type": "text", "text": SAID})) as server:
        form = {"type": "json_schema", "schema": SCHEMA}
        for body, wanted in (
            ({"output_config": {"format": form}}, {}),
            ({"output_config": {"effort": "low"}}, {"response_format": FORM}),
        ):
            entry = server.play(entry_of("claude-sonnet-5.5", body=body))
            answer = asked(folder, entry, make_question(entry, TURNS, wanted))
            assert (answer.text, answer.reasoning, answer.tool_calls) == (SAID, "hm", None)
            assert answer.finish_reason == "stop"


CACHED = {"cached_tokens": 60, "cache_write_tokens": 30}
USAGES: list[tuple[str, dict[str, Any], float]] = [
    # 60 of 100 input tokens were cached, 30 written; 20 of 30 output tokens are reasoning tokens.
    ("gpt-5.4-mini", chat(usage={
        "prompt_tokens": 100, "completion_tokens": 30, "total_tokens": 130,
        "prompt_tokens_details": CACHED, "completion_tokens_details": {"reasoning_tokens": 20}}),
     10 * 1 + 60 * 0.5 + 30 * 1.5 + 30 * 4),
    ("gpt-6-sol", response(output("hi"), usage={
        "input_tokens": 100, "output_tokens": 30, "total_tokens": 130,
        "input_tokens_details": CACHED, "output_tokens_details": {"reasoning_tokens": 20}}),
     10 * 1 + 60 * 0.5 + 30 * 1.5 + 30 * 4),
    ("claude-sonnet-5.5", message({"type": "text", "text": "hi"}, usage={
        "input_tokens": 10, "cache_read_input_tokens": 60, "cache_creation_input_tokens": 30,
        "output_tokens": 30, "output_tokens_details": {"thinking_tokens": 20}}),
     10 * 1 + 60 * 0.5 + 30 * 1.5 + 30 * 4),
    ("gemini-3.8-flash", generated({"text": "hi"}, usageMetadata={
        "promptTokenCount": 100, "cachedContentTokenCount": 60, "candidatesTokenCount": 10,
        "thoughtsTokenCount": 20, "totalTokenCount": 130}),
     40 * 1 + 60 * 0.5 + 30 * 4),
]  # fmt: skip


@pytest.mark.parametrize(("name", "reply", "micro_usd"), USAGES)
def test_the_ledger_prices_what_the_usage_reports(
    folder: Path, name: str, reply: dict[str, Any], micro_usd: float
) -> None:
    prices = {"input": 1, "cached_input": 0.5, "cache_write": 1.5, "output": 4}
    with ProviderServer(reply) as server:
        entry = server.play(entry_of(name, prices=prices))
        answer = asked(folder, entry, make_question(entry, TURNS, {"max_tokens": 40}))
        assert Ledger(folder).spending().usd == micro_usd / 1e6
    assert (answer.input_tokens, answer.output_tokens, answer.reasoning_tokens) == (100, 30, 20)
    assert answer.cached_tokens == 60


CALLED = {"type": "function_call", "name": "look_up", "arguments": '{"pie": 1}', "call_id": "c"}
THOUGHT = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}
RESPONSES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (response(THOUGHT, output("a"), output("b")), {"text": "ab", "reasoning": "hm"}),
    (response(THOUGHT, status="incomplete", incomplete_details={"reason": "max_output_tokens"}),
     {"text": None, "finish_reason": "length"}),
    (response(output("x"), incomplete_details={"reason": "content_filter"}),
     {"text": "x", "finish_reason": "content_filter"}),
    (response(output("No.", "refusal")), {"text": None, "refusal": "No."}),
    (response(CALLED), {"finish_reason": "tool_calls",
                        "tool_calls": (ToolCall(name="look_up", arguments='{"pie": 1}'),)}),
    (response(), {"text": None, "finish_reason": "stop"}),
    ({"output": "odd", "usage": {"input_tokens": 9, "output_tokens": 3}, "model": SERVED},
     {"text": None}),
]  # fmt: skip


@pytest.mark.parametrize(("reply", "kept"), RESPONSES)
def test_billed_output_of_responses_is_an_answer(
    respond: Respond, reply: dict[str, Any], kept: dict[str, Any]
) -> None:
    respond(json=reply)
    entry = entry_of("gpt-6-sol", api_base="http://127.0.0.1:1/v1")
    answer = send(make_question(entry, TURNS, {}), entry)
    expected = {"finish_reason": answer.finish_reason, "input_tokens": 9, "output_tokens": 3}
    for field, value in (expected | kept).items():
        assert getattr(answer, field) == value, field


def test_failures_of_responses_are_handled_as_for_any_provider(folder: Path) -> None:
    for status, reply, message_pattern in (
        (429, {"error": {"message": "slow down"}}, "RateLimitError: .*slow down"),
        (500, {"error": {"message": "oops"}}, "InternalServerError"),
        (
            401,
            {"error": {"message": f"wrong key {KEY}"}},
            r"the provider rejected the request: .*OPENAI_API_KEY\]",
        ),
        (200, {"error": {"message": "later"}}, "MalformedResponseError"),
    ):
        with ProviderServer(reply, status=status) as server:
            entry = server.play(entry_of("gpt-6-sol"))
            with pytest.raises(UserError, match=message_pattern):
                asked(folder, entry, make_question(entry, TURNS, {}), max_attempts=2)
            assert len(server.requests) == (1 if status == 401 else 2)


def test_a_model_that_only_supports_responses_has_a_hint(folder: Path) -> None:
    with ProviderServer() as server:
        entry = server.play(entry_of("gpt-5.4-mini", litellm_id="openai/gpt-5.5-pro", body=None))
        with pytest.raises(UserError, match=r"/responses, .* as openai/responses/<name>"):
            asked(folder, entry, make_question(entry, TURNS, {}))
        assert server.requests == []


def test_example_entries_work_at_the_stated_prices(folder: Path) -> None:
    table = importlib.resources.files("litellm") / "model_prices_and_context_window_backup.json"
    known = json.loads(table.read_text(encoding="utf-8"))
    values = {"temperature": 0, "top_p": 0.5, "top_k": 4, "max_tokens": 90, "seed": 1}
    assert len({entry.provider for entry in CURRENT.values()}) >= 4 and len(CURRENT) >= 6
    for name, entry in CURRENT.items():
        wire = entry.litellm_id.replace("responses/", "")
        facts = known.get(wire) or known[wire.partition("/")[2]]
        assert entry.paid
        stated = {
            "input": "input_cost_per_token",
            "output": "output_cost_per_token",
            "cached_input": "cache_read_input_token_cost",
            "cache_write": "cache_creation_input_token_cost",
        }
        thinking = facts.get("output_cost_per_reasoning_token", facts["output_cost_per_token"])
        assert entry.paid.output == pytest.approx(thinking * 1e6), name
        for field, key in stated.items():
            usd = facts.get(key)
            wanted = None if usd is None else pytest.approx(usd * 1e6)
            assert getattr(entry.paid, field) == wanted, (name, field)
        assert entry.max_output_tokens == facts["max_output_tokens"]
        assert (str(entry.ends) if entry.ends else None) == facts.get("deprecation_date")
        with ProviderServer() as server:
            question = make_question(entry, TURNS, {**values, "response_format": FORM})
            assert not {"response_format"} & {*question.dropped}
            asked(folder, server.play(entry), question)
            (request,) = server.requests
        assert merge_fields({}, entry.body or {}).keys() <= request.body.keys()
    assert verify(folder / "a.jsonl") == []


def test_the_documented_entry_is_valid() -> None:
    block, *_ = re.findall(
        r"(?s)```yaml entry\n(.*?)```", (ROOT / "docs/chat_models.md").read_text("utf-8")
    )
    (entry,) = yaml.safe_load(block).values()
    assert LLMEntry.model_validate(entry).body == {"output_config": {"effort": "low"}}


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = 0
    try:
        command(["ask", *arguments])
    except SystemExit as error:
        code = int(error.code or 0)
    return code, *capsys.readouterr()


def test_one_question_from_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    fields = read_yaml(EXAMPLES)["claude-haiku-4.5"]
    usage = {"input_tokens": 10, "cache_read_input_tokens": 90, "output_tokens": 30}
    reply = message({"type": "text", "text": f"yes {KEY}"}, usage=usage)
    Path("config.yaml").write_text("studies: [jam]\n")
    Path("cap.yaml").write_text("llm: {max_cost_usd: 1}\n")
    with ProviderServer(reply) as server:
        entry = {**fields, "api_base": server.address}
        models = {"claude": entry, "bm25": {"kind": "bm25", "label": "b", "licence": "none"}}
        Path("models.yaml").write_text(json.dumps(models))
        line = ("--model", "claude", "--configfile", "cap.yaml", "Any idiom?")

        code, out, err = run(capsys, "--model", "claude", "Any idiom?")
        assert (code, out) == (2, "") and err.startswith("error: Claude Haiku 4.5: it costs money")
        assert run(capsys, "--model", "bm25", "x")[2].startswith(
            "error: --model: unknown chat model"
        )
        code, out, err = run(capsys, "--parameters", '{"maxtokens": 1}', *line)
        assert code == 2 and "error: --parameters: maxtokens" in err
        code, out, err = run(capsys, "--parameters", '{"max_tokens": "9"}', *line)
        assert code == 2 and "error: --parameters: max_tokens: Input should be a valid int" in err
        monkeypatch.setenv("ANTHROPIC_API_KEY", "")
        assert "ANTHROPIC_API_KEY is not set" in run(capsys, *line)[2]
        assert server.requests == []

        monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
        code, out, err = run(capsys, "--parameters", '{"max_tokens": 3000, "seed": 1}', *line)
        again = run(capsys, "--parameters", '{"max_tokens": 3000, "seed": 1}', *line)
        (request,) = server.requests
    assert code == 0 and "unsupported parameters, not sent: seed" in err
    head, _, rest = out.partition("\nanswer: ")
    assert head.startswith("sent to /v1/messages:\n")
    assert json.loads(head.partition("\n")[2]) == request.body
    assert request.body["thinking"] == fields["body"]["thinking"]
    assert rest.splitlines() == [
        "yes [ANTHROPIC_API_KEY]",
        f"answered by claude-haiku-4-5-20251001 at {server.address}, finish reason stop (end_turn)",
        "tokens: 100 in, 90 read from the cache, 30 out",
        f"cost: ${(10 * 1 + 90 * 0.1 + 30 * 5) / 1e6:.6f}",
        "recorded in recordings/ask/claude.jsonl",
    ]
    assert KEY not in out + err and again[1].endswith(
        "already recorded in recordings/ask/claude.jsonl\n"
    )
    assert Ledger(Path("recordings")).spending().usd == pytest.approx(169e-6)
