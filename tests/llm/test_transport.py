"""Test sending a question through litellm and reading the answer, with a stand-in network."""

import asyncio
import json
import zlib
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import httpx
import pytest
from llm_cases import KEY, Respond, send, spec_for
from provider_server import CALL, chat

from pieline.llm import transport
from pieline.llm.answers import ToolCall
from pieline.llm.bodies import token_counts
from pieline.llm.questions import make_question
from pieline.llm.retries import MalformedResponseError, NotConnectedError, NotSentError

SPEC = spec_for()
QUESTION = make_question(SPEC, [("system", "Be brief."), ("user", "Any idiom?")], {"max_tokens": 9})
BODY = {
    "model": "test-model",
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Any idiom?"},
    ],
    "max_tokens": 9,
}


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        (chat({"role": "assistant", "content": None, "tool_calls": [CALL]}, "tool_calls"),
         {"tool_calls": (ToolCall(name="look_up", arguments='{"pie": 1}'),), "text": None}),
        (chat({"role": "assistant", "content": None, "refusal": "No."}), {"refusal": "No."}),
        # litellm replaces missing usage with zeros; negative counts are dropped.
        (chat(usage=None), {"input_tokens": None, "output_tokens": None, "text": "hi"}),
        (chat(usage={"prompt_tokens": 0, "completion_tokens": 3, "total_tokens": 3}),
         {"input_tokens": 0, "output_tokens": 3}),
        (chat(usage={"prompt_tokens": 9, "completion_tokens": -3, "total_tokens": 6}),
         {"input_tokens": 9, "output_tokens": None, "text": "hi"}),
        # Fractional counts: billed answers must not be asked again.
        (chat(usage={"prompt_tokens": 9.0, "completion_tokens": 2.5, "total_tokens": 11.5,
                     "completion_tokens_details": {"reasoning_tokens": 1.5}}),
         {"input_tokens": 9, "output_tokens": 3, "reasoning_tokens": 2, "text": "hi"}),
        (chat(model=4), {"returned_model": None, "text": "hi"}),
        # Billed responses that litellm does not accept as answers.
        ({"usage": {"prompt_tokens": 9, "completion_tokens": 3}},
         {"input_tokens": 9, "output_tokens": 3, "text": None}),
        (chat(choices=[]), {"input_tokens": 9, "output_tokens": 3, "text": None}),
    ],
)  # fmt: skip
def test_fields_of_the_response_are_kept(respond: Respond, body: dict[str, Any], kept: Any) -> None:
    respond(json=body)
    received = send(QUESTION)
    assert {name: getattr(received, name) for name in kept} == kept


@pytest.mark.parametrize(
    "body",
    [
        *("{}", "[]", '{"usage": {}}', '{"error": {"message": "later"}}'),
        *('{"usage": "none"}', '{"usage": {"input_tokens": 0}}', '{"detail": "no"}'),
        json.dumps(chat(choices=[], usage=None)),
        '{"usage": {"prompt_tok',
    ],
)
def test_an_empty_unbilled_response_is_malformed(respond: Respond, body: str) -> None:
    respond(text=body)
    with pytest.raises(MalformedResponseError):
        send(QUESTION)


def test_a_response_that_decompresses_to_gigabytes_is_abandoned(respond: Respond) -> None:
    unpacked = 0
    packed = zlib.compressobj(wbits=31)
    pieces = [packed.compress(bytes(1 << 24)) for _ in range(8)]

    async def stream() -> AsyncIterator[bytes]:
        nonlocal unpacked
        for piece in pieces:
            unpacked += 1 << 24
            yield piece

    respond(headers={"content-encoding": "gzip"}, content=stream())
    with pytest.raises(MalformedResponseError, match="exceeds 32 MB"):
        send(QUESTION)
    assert unpacked < 100 << 20


def test_a_local_model_has_no_response_id(respond: Respond) -> None:
    respond(json=chat())
    local = spec_for(None, source="folder", path="m.gguf", api_key_env=None, prices=None)
    received = send(make_question(local, [("user", "x")], {}), local.model_copy(update={
        "api_base": SPEC.api_base}))  # fmt: skip
    assert (received.text, received.response_id) == ("hi", None)


def test_a_different_body_is_not_sent_and_reveals_no_key(
    respond: Respond, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrived = respond(json=chat())
    monkeypatch.setattr(transport, "difference", lambda *_: f"has {KEY} in it")
    monkeypatch.setenv("TEST_LLM_KEY", KEY)
    with pytest.raises(NotSentError, match=r"the request has .* in it; nothing") as refused:
        send(QUESTION)
    assert KEY not in str(refused.value)
    assert arrived == []


def test_an_address_with_query_parameters_is_rejected(respond: Respond) -> None:
    arrived = respond(json=chat())
    with pytest.raises(NotSentError, match="the request has query parameters in its address"):
        send(QUESTION, spec_for(api_base="http://127.0.0.1:1/v1?key=1"))
    assert arrived == []


@pytest.mark.parametrize("provider", ["openai", "together_ai"])
def test_a_refused_connection_names_its_address(provider: str) -> None:
    refused = r"cannot connect to http://127\.0\.0\.1:1 \(Connection refused\)"
    with pytest.raises(NotConnectedError, match=refused):
        send(QUESTION, spec_for(litellm_id=f"{provider}/test-model"))


def test_litellm_must_not_resend_a_question() -> None:
    # tests/llm/test_llm_wire.py tests that it does not try to.
    async def twice() -> None:
        transport._EXCHANGE.set(transport._Exchange(QUESTION))
        request = httpx.Request("POST", "http://x/v1/chat/completions", json=BODY)
        await transport._check_request(request)
        with pytest.raises(httpx.ConnectError):
            await transport._check_request(request)

    asyncio.run(twice())


def test_every_request_to_every_provider_is_checked(
    respond: Respond, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrived, passed, check = respond(json=chat()), [], transport._check_request

    async def watched(request: httpx.Request) -> None:
        await check(request)
        passed.append(request)

    monkeypatch.setattr(transport, "_check_request", watched)
    # Two providers have no key, but a login over the network.
    for provider in sorted(transport.CHECKED_PROVIDERS - {"chatgpt", "github_copilot"}):
        spec = spec_for(litellm_id=f"{provider}/test-model")
        with suppress(Exception):
            send(make_question(spec, [("user", "x")], {"max_tokens": 5}), spec)
        assert arrived == passed, provider
    assert len(arrived) > 70


@pytest.mark.parametrize("name", ["cohere/m", "cloudflare/m", "no_such_provider/m"])
def test_a_provider_whose_requests_cannot_be_checked_is_not_asked(
    respond: Respond, name: str
) -> None:
    arrived = respond(json=chat())
    spec = spec_for(litellm_id=name)
    with pytest.raises(NotSentError, match="litellm does not know the provider, or its requests"):
        send(make_question(spec, [("user", "x")], {}), spec)
    assert arrived == []


@pytest.mark.parametrize(
    ("body", "counts"),
    [
        ({"usage": {"prompt_tokens": 9, "completion_tokens": 3}}, (9, 3)),
        ({"usage": {"input_tokens": 9}}, (9, 0)),
        ({"usage": {"output_tokens": 3}}, (0, 3)),
        ({"usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 3,
                            "thoughtsTokenCount": 40}}, (9, 43)),
        ({"usage": None, "usageMetadata": {"thoughtsTokenCount": 4}}, (0, 4)),
        ({"usage": {"prompt_tokens": "9", "completion_tokens": None}}, None),
        ({"usage": {"prompt_tokens": 0}}, None),
        ({"usage": "none"}, None),
        ({}, None),
    ],
)  # fmt: skip
def test_token_counts_are_read_in_every_provider_format(
    body: dict[str, Any], counts: tuple[int, int] | None
) -> None:
    names = ("input_tokens", "output_tokens")
    counted = token_counts(body)
    assert {name: counted[name] for name in names if name in counted} == (
        {} if counts is None else dict(zip(names, counts, strict=True))
    )
