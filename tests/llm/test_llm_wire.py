"""Test for each API model that requests match their questions and billed answers are kept."""

import json
import socket
import threading
from contextlib import suppress
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llm_cases import KEY, settings_for
from provider_server import CALL, SERVED, ProviderServer, chat, generated, message
from support import ROOT

from pieline.core.errors import UserError
from pieline.core.files import canonical_json
from pieline.llm.answers import Answer, SentRequest, ToolCall
from pieline.llm.archive import verify
from pieline.llm.client import ask
from pieline.llm.keys import api_base
from pieline.llm.obstacles import obstacles
from pieline.llm.questions import Message, Question, make_question
from pieline.llm.recordings import read_lines, record
from pieline.llm.settings import LLMSettings
from pieline.llm.spending import Ledger
from pieline.llm.wire import restore_body, shorten_request
from pieline.models.llm import LLMEntry
from pieline.models.registry import load_registry

REGISTRY = load_registry(ROOT / "models.yaml")
API = {
    name: entry
    for name, entry in REGISTRY.items()
    if isinstance(entry, LLMEntry) and entry.source == "api"
}
FIELDS = {"why": {"type": "string"}, "idioms": {"type": "array"}}
SCHEMA = {"type": "object", "properties": FIELDS, "required": [*FIELDS]}
VALUES = {
    "temperature": 0.25,
    "top_p": 0.5,
    "top_k": 7,
    "max_tokens": 100,
    "seed": 3,
    "reasoning_effort": "low",
}
FORM = {
    "type": "json_schema",
    "json_schema": {"name": "idioms", "strict": True, "schema": SCHEMA},
}
FEW_SHOT = [
    ("system", "Name the idioms. "),
    ("user", "She spilled the beans."),
    ("assistant", "idioms: [spilled the beans]"),
    ("user", "Er hat den Löffel abgegeben.\n"),
    ("assistant", "idioms: []"),
    ("user", "user"),
]


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for entry in API.values():
        monkeypatch.setenv(str(entry.api_key_env), KEY)


def asked(folder: Path, entry: LLMEntry, *questions: Question) -> list[Answer]:
    settings = settings_for(folder, concurrency=1, max_cost_usd=1000, max_attempts=1)
    return [*ask(questions, entry, settings, folder / "a.jsonl", progress=False).values()]


SPOKEN = [{"role": role, "content": text} for role, text in FEW_SHOT]
SAMPLED = {"temperature": 0.25, "top_p": 0.5}
BODIES: dict[str, dict[str, Any]] = {
    "gpt-4o": {
        "model": "gpt-4o-2024-08-06", "messages": SPOKEN, **SAMPLED, "max_tokens": 100, "seed": 3,
        "response_format": FORM,
    },
    "o3-mini": {
        "model": "o3-mini-2025-01-31", "messages": [SPOKEN[0] | {"role": "user"}, *SPOKEN[1:]],
        "max_completion_tokens": 100, "seed": 3, "reasoning_effort": "low", "response_format": FORM,
    },
    "llama-4-scout": {
        "model": "meta-llama/Llama-4-Scout-17B-16E-Instruct", "messages": SPOKEN, **SAMPLED,
        "top_k": 7, "max_tokens": 100, "seed": 3, "response_format": FORM,
    },
    "claude-4-sonnet": {
        "model": "claude-sonnet-4-20250514", "system": [{"type": "text", "text": FEW_SHOT[0][1]}],
        "messages": [
            {"role": role, "content": [{"type": "text", "text": text}]}
            for role, text in FEW_SHOT[1:]
        ],
        **SAMPLED, "top_k": 7, "max_tokens": 100,
    },
    "gemini-2.5-pro": {
        "system_instruction": {"parts": [{"text": FEW_SHOT[0][1]}]},
        "contents": [
            {"role": {"assistant": "model"}.get(role, role), "parts": [{"text": text}]}
            for role, text in FEW_SHOT[1:]
        ],
        "generationConfig": {
            **SAMPLED, "top_k": 7, "max_output_tokens": 100, "seed": 3,
            "response_mime_type": "application/json", "response_json_schema": SCHEMA,
        },
    },
}  # fmt: skip
"""The complete body in each provider's format, with every parameter that the entry accepts."""


@pytest.mark.parametrize("name", API)
def test_the_provider_gets_only_the_question(folder: Path, name: str) -> None:
    values = VALUES | {"response_format": FORM}
    accepted = {parameter: values[parameter] for parameter in API[name].accepts}
    questions = [
        make_question(API[name], turns, parameters)
        for turns, parameters in (([("user", "Any idiom?")], {}), (FEW_SHOT, accepted))
    ]
    with ProviderServer() as server:
        entry = server.play(API[name])
        answers = asked(folder, entry, *questions)
        bodies = [request.body for request in server.requests]
        assert any(KEY in value for value in server.requests[0].headers.values())
    for question, answer, body in zip(questions, answers, bodies, strict=True):
        assert (answer.text, answer.input_tokens, answer.output_tokens) == ("hi", 9, 3)
        assert answer.sent and restore_body(question, answer.sent) == body
    assert bodies[1] == BODIES.get(name, bodies[1])
    if "response_format" in accepted:
        # In a different order, the model would choose before it explains.
        assert '"properties": {"why": {"type": "string"}, "idioms"' in json.dumps(bodies[1])
    kept = (folder / "a.jsonl").read_text()
    assert verify(folder / "a.jsonl") == []
    assert KEY not in kept and kept.count("127.0.0.1") == kept.count('"address"')
    assert kept.count("Any idiom?") == 1


GATEWAY = {"anthropic": "/anthropic", "gemini": "/gemini/v1beta"}
"""Paths in `llm.api_bases` of providers that do not use OpenAI's format."""
ASKED_AT = {
    "openai": "/openai/v1/chat/completions",
    "anthropic": "/anthropic/v1/messages",
    "gemini": "/gemini/v1beta/models/{}:generateContent",
    "together_ai": "/together_ai/v1/chat/completions",
}


@pytest.mark.parametrize("name", ["gpt-4o", "claude-4-sonnet", "gemini-2.5-pro", "llama-4-scout"])
def test_a_gateway_gets_the_same_body_at_its_own_path(folder: Path, name: str) -> None:
    entry = API[name]
    question = make_question(entry, FEW_SHOT, {"max_tokens": 60})
    with ProviderServer() as server:
        bases = {
            entry.provider: server.address + GATEWAY.get(entry.provider, f"/{entry.provider}/v1")
        }
        settings = settings_for(folder, max_cost_usd=1000, api_bases=bases)
        at_gateway = ask([question], entry, settings, folder / "a.jsonl", progress=False)
        direct = asked(folder / "direct", server.play(entry), question)
        received = [request.body for request in server.requests]
    model = entry.litellm_id.partition("/")[2]
    assert server.requests[0].path == ASKED_AT[entry.provider].format(model)
    assert received[0] == received[1]
    (answer,) = at_gateway.values()
    assert answer.sent and direct[0].sent and answer.sent.body == direct[0].sent.body
    assert verify(folder / "a.jsonl") == []


def test_the_address_of_an_entry_takes_precedence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = LLMSettings(api_bases={"openai": "https://gateway.example.org/v1"})
    monkeypatch.setenv("OWN", "https://own.example.org/v1")
    entry = API["gpt-4o"]
    bases = [
        api_base(entry.model_copy(update=own), settings)
        for own in ({}, {"api_base": "$OWN"}, {"api_base": "https://other.example.org"})
    ]
    assert bases == [
        "https://gateway.example.org/v1", "https://own.example.org/v1", "https://other.example.org",
    ]  # fmt: skip
    assert api_base(API["claude-4-sonnet"], settings) == "https://api.anthropic.com"


def test_a_retired_checkpoint_can_be_asked_through_a_gateway() -> None:
    entry, cap = API["o3-mini"], {"max_cost_usd": 1.0}
    for settings, hindered in (
        (LLMSettings(**cap), True),
        (LLMSettings(**cap, api_bases={"gemini": "https://gateway.example.org"}), True),
        (LLMSettings(**cap, api_bases={"openai": "https://gateway.example.org"}), False),
    ):
        # In jobs, entries have no `ends`; the settings list the checkpoints.
        of_job = LLMEntry.from_spec(entry.execution_spec(), label=entry.label)
        for_job = settings.for_jobs(Path(), REGISTRY.values())
        for problems in (obstacles(entry, settings), obstacles(of_job, for_job)):
            assert [problem.what for problem in problems] == [
                *(["the checkpoint is retired"] if hindered else [])
            ]
    own = LLMSettings(
        **cap, api_bases={"openai": "http://x"}, retired={entry.checkpoint: "not wanted"}
    )
    assert next(obstacles(entry, own)).what == "not wanted"


def test_after_its_end_a_model_is_asked_only_through_a_gateway(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "key")
    entry, cap = API["gemini-2.5-pro"], {"max_cost_usd": 1.0}
    today = date.today()
    for ends, why in (
        (today + timedelta(1), []),
        (today, [f"the model ended on {today}"]),
        (today - timedelta(400), [f"the model ended on {today - timedelta(400)}"]),
    ):
        ending = entry.model_copy(update={"ends": ends})
        settings = LLMSettings(**cap)
        # In jobs, entries have no `ends`; the settings list the checkpoints.
        of_job = LLMEntry.from_spec(ending.execution_spec(), label=entry.label)
        for_job = settings.for_jobs(Path(), [ending])
        for problems in (obstacles(ending, settings), obstacles(of_job, for_job)):
            assert [problem.what for problem in problems] == why
        through = LLMSettings(**cap, api_bases={"gemini": "https://gateway.example.org"})
        assert [*obstacles(ending, through)] == []
        assert [*obstacles(of_job, through.for_jobs(Path(), [ending]))] == []


def test_the_end_of_a_model_depends_on_the_day() -> None:
    entry = API["gpt-4o"]
    assert entry.ends == date(2027, 1, 14)
    assert entry.end_reason(date(2027, 1, 13)) == ""
    assert entry.end_reason(date(2027, 1, 14)) == "the model ended on 2027-01-14"


def test_an_address_for_an_unknown_provider_is_a_one_line_error() -> None:
    settings = LLMSettings(api_bases={"opnai": "https://gateway.example.org/v1"})
    with pytest.raises(
        UserError, match=r"llm.api_bases: no model .* 'opnai'; did you mean 'openai'"
    ):
        settings.for_jobs(Path(), REGISTRY.values())


@pytest.mark.parametrize(
    ("name", "changes", "turns", "parameters", "expected"),
    [
        ("claude-4-sonnet", {"defaults": None}, FEW_SHOT, {},
         "max_tokens 128000, but the question has none"),
        ("o3-mini", {"system_role": None}, FEW_SHOT, {},
         'messages.0.role "user", but the question has "system"'),
        ("gemini-2.5-pro", {"accepts": frozenset({"reasoning_effort"})}, FEW_SHOT,
         {"reasoning_effort": "low"},
         'generationConfig.reasoning_effort none, but the question has "low"'),
        ("claude-4-sonnet", {"accepts": frozenset({"response_format"})}, FEW_SHOT,
         {"response_format": FORM}, "output_format none, but the question has {"),
        ("claude-4-sonnet", {}, [("user", "a"), ("system", "b"), ("user", "c")], {}, "messages ["),
        ("claude-4-sonnet", {}, [("user", "a"), ("user", "b")], {}, "messages ["),
    ],
)  # fmt: skip
def test_a_body_that_is_not_the_question_is_not_sent(
    folder: Path,
    name: str,
    changes: dict[str, Any],
    turns: list[tuple[str, str]],
    parameters: dict[str, Any],
    expected: str,
) -> None:
    with ProviderServer() as server:
        entry = server.play(API[name], **changes)
        with pytest.raises(UserError) as refused:
            asked(folder, entry, make_question(entry, turns, parameters))
        assert server.requests == []
    line = str(refused.value)
    assert line.startswith(f"{entry.label}: the request has ") and expected in line
    assert "; nothing was sent; declare it in the entry in models.yaml" in line
    assert (folder / "a.jsonl").read_bytes() == b""
    assert Ledger(folder).spending().usd == 0


CALLED = (ToolCall(name="look_up", arguments='{"pie": 1}'),)
BILLED: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("gpt-4o", chat({"role": "assistant", "content": None, "tool_calls": [CALL]}, "tool_calls"),
     {"tool_calls": CALLED, "finish_reason": "tool_calls"}),
    ("gpt-4o", chat({"role": "assistant", "content": None}, "length"), {"finish_reason": "length"}),
    ("gpt-4o", chat({"role": "assistant", "content": None, "refusal": "No."}), {"refusal": "No."}),
    ("gpt-4o", chat(choices=[]), {"returned_model": "gpt-4o-2024-08-06"}),
    ("gpt-4o", chat(choices=None), {}),
    ("llama-4-scout", {"usage": chat()["usage"], "model": SERVED}, {}),
    ("claude-4-sonnet",
     message({"type": "tool_use", "id": "t", "name": "look_up", "input": {"pie": 1}},
             stop="tool_use"),
     {"tool_calls": CALLED, "finish_reason": "tool_calls"}),
    ("claude-4-sonnet", message(stop="refusal"), {"finish_reason": "refusal"}),
    ("claude-4-sonnet", message(content=None), {}),
    ("gemini-2.5-pro", generated({"functionCall": {"name": "look_up", "args": {"pie": 1}}}),
     {"tool_calls": CALLED, "finish_reason": "tool_calls"}),
    ("gemini-2.5-pro", generated(candidates=[], promptFeedback={"blockReason": "SAFETY"}),
     {"finish_reason": "content_filter"}),
    ("gemini-2.5-pro", generated(candidates=None), {}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "reply", "kept"), BILLED)
def test_billed_responses_are_answers_and_asked_once(
    folder: Path, name: str, reply: dict[str, Any], kept: dict[str, Any]
) -> None:
    question = make_question(API[name], [("user", "Any idiom?")], {"max_tokens": 9})
    with ProviderServer(reply) as server:
        entry = server.play(API[name])
        (answer,) = asked(folder, entry, question)
        assert asked(folder, entry, question) == [answer]
        assert len(server.requests) == 1
    assert (answer.text, answer.input_tokens, answer.output_tokens) == (None, 9, 3)
    assert {field: getattr(answer, field) for field in kept} == kept
    assert verify(folder / "a.jsonl") == []
    assert entry.prices
    usd = (9 * entry.prices.input + 3 * entry.prices.output) / 1e6
    assert Ledger(folder).spending().usd == pytest.approx(usd)


@pytest.mark.parametrize("name", ["gpt-4o", "claude-4-sonnet", "gemini-2.5-pro", "qwen2.5-72b"])
def test_a_failed_connection_is_not_retried_by_litellm(folder: Path, name: str) -> None:
    # litellm itself resends requests that may already have been received and billed.
    arrived: list[bytes] = []
    done = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(0.05)

        def fail() -> None:
            while not done.is_set():
                with suppress(TimeoutError):
                    connection, _ = listening.accept()
                    arrived.append(connection.recv(10))
                    # The connection is reset.
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, bytes([1] + [0] * 7))
                    connection.close()

        thread = threading.Thread(target=fail)
        thread.start()
        base = f"http://127.0.0.1:{listening.getsockname()[1]}"
        entry = API[name].model_copy(update={"api_base": base, "ends": None})
        with pytest.raises(UserError, match="1 of 1 questions got no answer"):
            asked(folder, entry, make_question(entry, [("user", "x")], {"max_tokens": 9}))
        done.set()
        thread.join()
    assert len(arrived) == 1


def test_an_unchecked_request_is_an_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pieline.llm import transport

    async def nothing(_: object) -> None:
        pass

    monkeypatch.setattr(transport, "_check_request", nothing)
    with ProviderServer() as server:
        entry = server.play(API["gpt-4o"])
        questions = [make_question(entry, [("user", str(i))], {}) for i in range(5)]
        with pytest.raises(UserError, match="cannot be checked"):
            asked(folder, entry, *questions)
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        (("body", "temperature"), 0.7, "temperature 0.7, but the question has 0.25"),
        (("body", "stream"), True, "stream true, but the question has none"),
        (("body", "model"), "gpt-4", 'model "gpt-4", but the question has "gpt-4o-2024-08-06"'),
        (("body", "messages"), [{"role": "user", "content": {"question": 1}}], "messages ["),
        (("body", "messages"), {"question": 0}, 'messages "Name the idioms. "'),
        (("body", "messages"), {"question": 9}, "refers to something"),
        (("body", "messages"), {"question": [0]}, "refers to something"),
        (("path",), "/v1/messages", "messages ["),
        (("path",), "/v1/completions", "goes to /v1/completions"),
    ],
)  # fmt: skip
def test_verify_detects_a_changed_body(
    folder: Path, field: tuple[Any, ...], value: Any, expected: str
) -> None:
    question = make_question(API["gpt-4o"], FEW_SHOT, {"temperature": 0.25})
    path = folder / "a.jsonl"
    messages = [turn._asdict() for turn in question.messages]
    body = {"model": "gpt-4o-2024-08-06", "messages": messages, "temperature": 0.25}
    sent = shorten_request(question, "/v1/chat/completions", body)
    record(path, [(question, Answer(key=question.key, text="hi", sent=sent))])
    assert verify(path) == []
    (line,) = [line.value for line in read_lines(path)]
    place = line["answer"]["sent"]
    for name in field[:-1]:
        place = place[name]
    place[field[-1]] = value
    path.write_text(canonical_json(line) + "\n")
    (problem,) = verify(path)
    assert problem.startswith(f"{path}:1: the request body ") and expected in problem


TURNS = (Message("user", "a"), Message("user", "b"))
NAMES = st.sampled_from(["question", "x"])
JSON = st.recursive(
    st.none()
    | st.integers(0, 2)
    | st.sampled_from(["a", "b", "messages", FORM, [turn._asdict() for turn in TURNS]]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=2),
    max_leaves=8,
)


@given(st.dictionaries(NAMES, JSON))
def test_any_body_is_restored_unchanged(body: dict[str, Any]) -> None:
    question = Question("openai/m", TURNS, {"response_format": FORM})
    kept = shorten_request(question, "/v1/chat/completions", body)
    assert restore_body(question, SentRequest.model_validate_json(kept.model_dump_json())) == body
    assert not any(text in canonical_json(kept.body) for text in ('"a"', "user", "json_schema"))
