"""Test where questions and keys go, and that the server that answered is recorded."""

import importlib.util
import re
from base64 import b32encode, b64encode, urlsafe_b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from fault_server import FaultServer, Reply, Request, answer
from llm_cases import KEY, Respond, ask_server, questions_for, send, settings_for, spec_for
from provider_server import ProviderServer, chat
from support import ROOT

from pieline.config import load_config
from pieline.core.errors import UserError
from pieline.core.records import validated
from pieline.llm.client import ask
from pieline.llm.keys import DEFAULT_ADDRESSES, api_base, api_key, origin, redact
from pieline.llm.questions import make_question
from pieline.llm.recordings import read_answers
from pieline.llm.settings import LLMSettings
from pieline.models.llm import LLMEntry
from pieline.models.registry import load_registry

REGISTRY = load_registry(ROOT / "models.yaml")
PATHS = {"anthropic": "/v1/messages", "gemini": "/models/test-model:generateContent"}


def variables() -> set[str]:
    """Return the environment variables in litellm and OpenAI's client that may be addresses."""
    names = {"OPENAI_BASE_URL", "OPENAI_API_BASE"}
    ending = re.compile(r"[A-Z][A-Z0-9_]*_(?:BASE|BASE_URL|URL|ENDPOINT|HOST|DOMAIN)\b")
    for package in ("litellm", "openai"):
        spec = importlib.util.find_spec(package)
        assert spec and spec.origin
        folder = Path(spec.origin).parent
        for place in ("llms", "litellm_core_utils", "main.py", "_client.py", "constants.py"):
            files = [folder / place] if place.endswith(".py") else (folder / place).rglob("*.*")
            for file in files:
                if file.suffix in {".py", ".json"} and file.exists():
                    names.update(ending.findall(file.read_text("utf-8")))
    return names


@pytest.fixture
def trap(monkeypatch: pytest.MonkeyPatch, respond: Respond) -> Iterator[ProviderServer]:
    """Return a server to which every variable with an address points, once litellm is loaded."""
    with ProviderServer(chat()) as server:
        found = variables()
        assert len(found) > 150 and {"ANTHROPIC_BASE_URL", "HOSTED_VLLM_API_BASE"} <= found
        for name in found:
            monkeypatch.setenv(name, f"{server.address}/v1")
        for name in ("ORGANIZATION", "ORG_ID", "PROJECT_ID", "PROJECT"):
            monkeypatch.setenv(f"OPENAI_{name}", "theirs")
        monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Theirs: theirs\nAuthorization: theirs")
        yield server


def test_no_variable_changes_where_a_question_goes(trap: ProviderServer, respond: Respond) -> None:
    arrived = respond(json=chat())
    for prefix, base in DEFAULT_ADDRESSES.items():
        parameters: dict[str, Any] = {"litellm_id": f"{prefix}/test-model", "accepts": []}
        spec = spec_for(None, defaults={"max_tokens": 9, "temperature": 1.0}, **parameters)
        assert api_base(spec, LLMSettings()) == base
        asked = spec.model_copy(update={"api_base": base})
        if prefix == "fireworks_ai":
            asked = asked.model_copy(update={"litellm_id": "fireworks_ai/accounts/f/models/m"})
        arrived.clear()
        received = send(make_question(asked, [("user", "x")], {}), asked)
        (request,) = arrived
        assert str(request.url) == base + PATHS.get(prefix, "/chat/completions")
        assert received.address == origin(base)
        values = [*request.headers.values()]
        assert any(KEY in value for value in values) and "theirs" not in values
    assert trap.requests == []


def test_the_proxy_of_litellm_is_not_used(
    trap: ProviderServer,
    respond: Respond,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    arrived = respond(json=chat())
    monkeypatch.setenv("USE_LITELLM_PROXY", "true")
    spec = spec_for("https://api.openai.com/v1")
    with pytest.raises(UserError, match=r"nothing was sent|cannot be checked") as refused:
        send(make_question(spec, [("user", "x")], {}), spec)
    assert "\n" not in str(refused.value)
    assert trap.requests == [] == arrived


def test_the_documented_ways_work_despite_variables(folder: Path, trap: ProviderServer) -> None:
    with FaultServer() as server:
        ask_server(folder, None, 2, api_bases={"tests": server.api_base})
        ask_server(folder, server.api_base, 3)
        assert len(server.requests) == 3
    assert trap.requests == []


def test_a_provider_without_a_known_address_needs_one(folder: Path) -> None:
    for name in ("hosted_vllm", "lm_studio", "custom_openai", "databricks"):
        with pytest.raises(UserError, match=f"the address of {name} is not known; set api_base"):
            ask_server(folder, None, entry={"litellm_id": f"{name}/m"})


def test_an_answer_from_elsewhere_is_rejected(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folder / "a.jsonl"
    with FaultServer() as server:
        spec = spec_for(server.api_base)
        questions = questions_for(spec, 2)
        answers = ask(questions, spec, settings_for(folder), path)
        assert f"2 answers from {server.address}, 20 tokens" in capsys.readouterr().err
    assert {answer.address for answer in answers.values()} == {server.address}
    for mode in ("record", "replay", "fresh"):
        settings = settings_for(folder, mode=mode)
        if mode == "fresh":
            path.rename(f"{path}.fresh")
        other = spec_for("http://127.0.0.1:1/v1")
        with pytest.raises(UserError) as refused:
            ask(questions, other, settings, path, progress=False)
        assert f"is asked at http://127.0.0.1:1, but {server.address} answered" in str(
            refused.value
        )
    Path(f"{path}.fresh").rename(path)
    gateway = settings_for(folder, mode="replay", api_bases={"tests": server.api_base})
    monkeypatch.delenv("ELSEWHERE", raising=False)
    replay = settings_for(folder, mode="replay")
    for accepting, settings in (
        (spec, replay),
        (spec_for(f"{server.address}/other/path/"), replay),
        (spec_for("http://127.0.0.1:1", answers_from=["http://127.0.0.1:*"]), replay),
        (spec_for(None), gateway),
        # It is not known where this model would be asked.
        (spec_for("$ELSEWHERE"), replay),
    ):
        assert ask(questions, accepting, settings, path, progress=False) == answers
    monkeypatch.setenv("ELSEWHERE", "https://user:password@node7:8000/v1?key=1")
    with pytest.raises(UserError, match="is asked at https://node7:8000, but") as refused:
        ask(questions, spec_for("$ELSEWHERE"), replay, path, progress=False)
    with pytest.raises(UserError, match=r"is asked at https://api\.openai\.com, but"):
        ask(questions, spec_for(None), replay, path, progress=False)


def test_the_origin_of_an_address() -> None:
    for url, expected in {
        "https://user:pw@API.Example.org:443/v1/?key=x#y": "https://api.example.org",
        "http://[::1]:8000/v1": "http://[::1]:8000",
        "http://localhost": "http://localhost",
        "http://h:443/": "http://h:443",
    }.items():
        assert origin(url) == expected


@pytest.mark.parametrize(
    ("host", "variable"),
    [
        ("127.0.0.1", "http_proxy"),
        ("localhost", "HTTP_PROXY"),
        ("localhost", "all_proxy"),
        ("LOCALHOST", "http_proxy"),
        ("0.0.0.0", "http_proxy"),
        ("[::ffff:127.0.0.1]", "http_proxy"),
    ],
)
def test_loopback_addresses_use_no_proxy(
    folder: Path, monkeypatch: pytest.MonkeyPatch, host: str, variable: str
) -> None:
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "example.org")
    with ProviderServer(status=403) as proxy, FaultServer() as server:
        monkeypatch.setenv(variable, proxy.address)
        assert ask_server(folder, f"http://{host}:{server.port}/v1")
        # The server is only at 127.0.0.1.
        with pytest.raises(UserError, match=r"cannot connect to http://127.0.0.2:") as refused:
            ask_server(folder / "other", f"http://127.0.0.2:{server.port}/v1")
        assert "proxy" not in str(refused.value)
        assert proxy.requests == []


@pytest.mark.parametrize("status", [301, 307])
def test_a_redirect_is_named_and_not_followed(folder: Path, status: int) -> None:
    with FaultServer() as other:
        location = {"Location": f"{other.api_base}/chat/completions"}
        with FaultServer(lambda _: Reply(status, headers=location)) as server:
            message = f"{server.address} redirects to {other.address} \\({status}\\); set the final"
            with pytest.raises(UserError, match=message):
                ask_server(folder, server.api_base)
        assert other.requests == []


@pytest.mark.parametrize(
    ("base", "variable", "status", "message"),
    [
        ("http://llm.invalid/v1", "http_proxy", 403,
         r"the provider rejected the request: .* \(through the proxy in http_proxy\); check the p"),
        ("http://llm.invalid/v1", "all_proxy", None,
         r"cannot connect to http://llm.invalid through the proxy in all_proxy \(Connection refu"),
        ("https://llm.invalid/v1", "https_proxy", 403,
         r"cannot connect to https://llm.invalid through the proxy in https_proxy \(.*"
         r"correct or unset https_proxy"),
    ],
)  # fmt: skip
def test_a_proxy_that_refuses_is_named(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    base: str,
    variable: str,
    status: int | None,
    message: str,
) -> None:
    with ProviderServer(chat(), status=status or 200) as proxy:
        monkeypatch.setenv(variable, proxy.address if status else "http://127.0.0.1:1")
        with pytest.raises(UserError, match=message):
            ask_server(folder, base)


@pytest.mark.parametrize(
    "address", ["127.0.0.1:11434/v1", "localhost:11434", "api.openai.com/v1", "//h/v1", "ftp://h",
                "http://", "http:/h/v1", "http://h :1/v1", "http://h:x/v1"],
)  # fmt: skip
def test_an_address_without_scheme_is_a_one_line_error(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    entry = {**spec_for().model_dump(), "api_base": address}
    message = "should be an address that starts with http:// or https://"
    with pytest.raises(UserError, match=f"api_base.*{message}") as refused:
        validated(LLMEntry, entry, where="models.yaml: m", hint="correct it")
    assert "\n" not in str(refused.value)
    with pytest.raises(UserError, match=rf"config\.yaml: llm\.api_bases\.openai: {message}"):
        load_config({"llm": {"api_bases": {"openai": address}}})
    monkeypatch.setenv("ELSEWHERE", address)
    with pytest.raises(UserError, match=f"variable ELSEWHERE {message}"):
        api_base(spec_for("$ELSEWHERE"), LLMSettings())


@pytest.mark.parametrize(
    "key", ["“sk-abcdefgh”", "sk-abc\ndefghij", "sk-abc defghij", "'sk-abcdefgh'", "ключ-abcdefgh",
            "sk-abc\u200bdefgh", "sk-abc\x1bdefgh", '"sk-abcdefgh"'],
)  # fmt: skip
def test_a_key_that_cannot_be_sent_is_a_one_line_error(
    monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setenv("TEST_LLM_KEY", key)
    with pytest.raises(UserError) as refused:
        api_key(spec_for())
    line = str(refused.value)
    assert "the environment variable TEST_LLM_KEY is not a key" in line
    assert "\n" not in line and "abc" not in line
    monkeypatch.setenv("TEST_LLM_KEY", f" {KEY}\n")
    assert api_key(spec_for()) == KEY


def forms(key: str) -> Iterator[str]:
    """Yield texts that reveal a key."""
    escaped = quote(key, safe="")
    yield from (key, escaped, re.sub("%..", lambda each: each[0].lower(), escaped))
    yield key.replace("/", r"\/")
    yield from (key.replace("/", "\\\\/").replace("+", r"\u002B"), key.replace("+", "&#43;"))
    yield "".join(f"%{byte:02X}" for byte in key.encode())
    yield from (key.encode().hex(), key.encode().hex().upper(), key.encode().hex(":"))
    yield from (quote(escaped, safe=""), str([*key.encode()]), key.encode("utf-16-le").hex())
    yield from ("".join(f"&#{byte};" for byte in key.encode()), b32encode(key.encode()).decode())
    yield "".join(rf"\u{byte:04x}" for byte in key.encode())
    yield b64encode(b64encode(f"user:{key}".encode())).decode()
    yield b64encode(key.encode("utf-16-le")).decode()
    packed = b64encode(key.encode()).decode()
    yield from (f"{packed[:9]}\n{packed[9:]}", rf"{packed[:9]}\r\n{packed[9:]}")
    for before in ("", "a", "ab", "abc", "Bearer ", "user:", "x-api-key: "):
        for after in ("", "\n", ":rest", ", and more"):
            raw = f"{before}{key}{after}".encode()
            for packed in (b64encode(raw).decode(), urlsafe_b64encode(raw).decode()):
                yield packed
                yield packed.rstrip("=")
                yield quote(packed, safe="")
                yield packed.replace("/", r"\/")


@pytest.mark.parametrize("key", [KEY, "sk-proj-1234567890abcdef", "k>>??~~k", "12345678"])
def test_a_key_is_redacted_in_every_encoding(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setenv("TEST_LLM_KEY", key)
    spec = spec_for()
    for form in forms(key):
        shown = redact(f"before {form} after", spec)
        assert "[TEST_LLM_KEY]" in shown, form
        assert shown.startswith("before ") and shown.endswith(" after"), form
        left = shown.replace("before ", "").replace(" after", "").replace("[TEST_LLM_KEY]", "")
        assert len(left) < 40, form
    # Other texts stay as they are.
    text = (ROOT / "README.md").read_text("utf-8") + b64encode(bytes(range(0, 256, 3))).decode()
    assert redact(text, spec) == text


def test_an_encoded_key_is_in_no_recording(folder: Path) -> None:
    echoed = [b64encode(f"{before}{KEY}".encode()).decode() for before in ("", "Bearer ", "u:")]

    def behave(request: Request) -> Reply:
        message = {"content": f"{echoed}", "reasoning_content": echoed[1]}
        if request.text == "q1":
            return Reply(400, f'{{"error": {{"message": "wrong {echoed[1]}"}}}}'.encode())
        return answer("", message=message)

    with (
        FaultServer(behave) as server,
        pytest.raises(UserError, match=r"wrong QmVhcmVyIH?\[TEST_LLM_KEY\]") as refused,
    ):
        ask_server(folder, server.api_base, 2)
    written = (folder / "a.jsonl").read_text("utf-8") + str(refused.value)
    core = b64encode(f"Bearer {KEY}".encode()).decode()[12:-4]
    assert core not in written and echoed[0][:-4] not in written
    (recorded,) = read_answers(folder / "a.jsonl").values()
    assert str(recorded.text).count("[TEST_LLM_KEY]") == 3
