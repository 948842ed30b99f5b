"""The providers' stand-in: formats, faults, and agreement of bill, ledger and recordings."""

import json
import os
import random
import signal
import socket
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, get_args

import pytest
from llm.llm_cases import start
from support import ROOT, wait_for

from pieline.config import RehearsalSettings, load_config
from pieline.core.errors import UserError
from pieline.core.files import read_text, write_text
from pieline.core.yamls import read_yaml
from pieline.llm.answers import Answer
from pieline.llm.archive import verify
from pieline.llm.client import ask
from pieline.llm.questions import Question, make_question
from pieline.llm.recordings import read_answers
from pieline.llm.settings import LLMSettings
from pieline.llm.spending import Ledger
from pieline.models.llm import LLMEntry
from pieline.models.registry import load_registry
from rehearsal.bill import BILL, BILLED, Bill, Charge, Fault, read_bill
from rehearsal.formats import PROVIDERS, Asked, api_bases
from rehearsal.providers import THOUGHTS, FaultProfile, Providers
from rehearsal.reconcile import bill_matches, verdict
from rehearsal.rehearsal import Rehearsal

REGISTRY = load_registry(ROOT / "models.yaml")
MODELS = ("gpt-4o", "claude-4-sonnet", "gemini-2.5-pro", "llama-4-scout")
"""One model per format; none is treated as retired."""
FAULTS = get_args(Fault)
TURNS = [
    ("system", "Name the idioms."),
    ("user", "They buried the hatchet."),
    ("assistant", "idioms: [buried the hatchet]"),
]


def model(name: str) -> LLMEntry:
    entry = REGISTRY[name]
    assert isinstance(entry, LLMEntry)
    return entry


def answer_question(asked: Asked) -> str:
    """Return an answer that repeats the last message of a question."""
    return f"idioms: [{asked.turns[-1][1]}]"


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)


KEYS = {str(model(name).api_key_env): "stand-in-key" for name in (*MODELS, "o3-mini")}


def settings_for(address: str, folder: Path, **fields: Any) -> LLMSettings:
    usual = {
        "recordings_folder": folder,
        "api_bases": api_bases(address),
        "max_cost_usd": 1000,
        "timeout_s": 10,
        "backoff_s": 0.01,
        "providers": {"default": {"concurrency": 4}},
    }
    return LLMSettings.model_validate({**usual, **fields})


def questions_for(entry: LLMEntry, count: int, **parameters: Any) -> list[Question]:
    wanted = {"seed": 7, "max_tokens": 200, **parameters}
    return [
        make_question(entry, [*TURNS, ("user", f"Sentence {n}, über {entry.label}.")], wanted)
        for n in range(count)
    ]


def ask_all(address: str, folder: Path, name: str, count: int, **fields: Any) -> list[Answer]:
    entry = model(name).model_copy(update={"answers_from": ["http://127.0.0.1:*"]})
    settings, path = settings_for(address, folder, **fields), folder / f"{name}.jsonl"
    return [*ask(questions_for(entry, count), entry, settings, path, progress=False).values()]


def recordings_of(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the recorded answers by file name, without what differs between servers."""
    found: dict[str, list[dict[str, Any]]] = {}
    for path in sorted(folder.glob("*.jsonl")):
        found[path.name] = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        for line in found[path.name]:
            del line["answer"]["address"], line["answer"]["response_id"]
    return found


@pytest.mark.parametrize("name", [*MODELS, "o3-mini", "deepseek-r1"])
def test_questions_reach_the_stand_in_and_answers_are_parsed_and_billed(
    tmp_path: Path, name: str
) -> None:
    received: list[Asked] = []

    def listen(asked: Asked) -> str:
        received.append(asked)
        return answer_question(asked)

    entry = model(name)
    with Providers(listen, REGISTRY, tmp_path) as server:
        (answer,) = ask_all(server.address, tmp_path / "recordings", name, 1)
    (question,) = questions_for(entry, 1)
    seed = None if name == "claude-4-sonnet" else 7
    turns = tuple((turn.role, turn.content) for turn in question.messages)
    assert received == [Asked(entry.litellm_id.partition("/")[2], turns, seed)]
    text = answer_question(received[0])
    assert (answer.text or "").strip() == text
    assert (answer.finish_reason, answer.returned_model) == ("stop", received[0].model)
    tokens = sum(-(-len(content) // 4) for _, content in turns)
    thoughts = tokens if name in ("o3-mini", "gemini-2.5-pro") else 0
    shown = THOUGHTS if name == "deepseek-r1" else ""
    assert answer.input_tokens == tokens
    assert answer.output_tokens == -(-len(shown + text) // 4) + thoughts
    assert (answer.reasoning_tokens or 0) == thoughts
    assert (answer.reasoning or "").strip() in THOUGHTS and bool(answer.reasoning) == bool(shown)
    (charge,) = read_bill(tmp_path / BILL)
    assert entry.paid and charge.provider == entry.provider and charge.delivered
    usd = (tokens * entry.paid.input + (answer.output_tokens or 0) * entry.paid.output) / 1e6
    assert charge.usd == pytest.approx(usd)


@pytest.mark.parametrize("name", MODELS)
def test_an_answer_is_truncated_at_the_token_limit(tmp_path: Path, name: str) -> None:
    entry, folder = model(name), tmp_path / "recordings"
    with Providers(answer_question, REGISTRY, tmp_path) as server:
        (answer,) = ask(
            questions_for(entry, 1, max_tokens=3), entry, settings_for(server.address, folder),
            folder / "a.jsonl", progress=False,
        ).values()  # fmt: skip
    assert (answer.text, answer.finish_reason) == ("idioms: [Sen", "length")
    assert answer.output_tokens == 3


@pytest.mark.parametrize("fault", FAULTS)
def test_after_every_fault_the_question_is_asked_again(tmp_path: Path, fault: Fault) -> None:
    faults = FaultProfile(rates={fault: 1.0}, max_attempts=2, retry_after_s=0.1)
    folder = tmp_path / "recordings"
    with Providers(answer_question, REGISTRY, tmp_path, faults) as server:
        for name in MODELS:
            fields = {"max_attempts": 2, "timeout_s": 1 if fault in ("hang", "drip") else 10}
            assert len(ask_all(server.address, folder, name, 2, **fields)) == 2
    charges = read_bill(tmp_path / BILL)
    assert [charge.fault for charge in charges].count(fault) == 2 * len(MODELS)
    assert [charge.delivered for charge in charges].count(True) == 2 * len(MODELS)
    assert all((charge.usd > 0) == (charge.fault is None or fault in BILLED) for charge in charges)
    models = bill_matches(tmp_path / BILL, folder, REGISTRY)
    assert "the bill and the ledger agree: 8 recorded answers to 16 requests" in verdict(models)
    assert sum(Ledger(folder).spending().unanswered.values()) == 2 * len(MODELS)
    for item in models:
        half = item.billed_usd / 2 if fault in BILLED else 0.0
        assert item.lost_usd == pytest.approx(half)


def test_faults_are_reproducible_and_limited_per_question(
    tmp_path: Path,
) -> None:
    rates: dict[Fault, float] = {"429": 0.2, "500": 0.2, "reset": 0.2, "broken": 0.2}
    faults = FaultProfile(seed=5, rates=rates, max_attempts=3, retry_after_s=0.01)
    met = []
    for run in ("a", "b"):
        with Providers(answer_question, REGISTRY, tmp_path / run, faults) as server:
            ask_all(server.address, tmp_path / run / "recordings", "gpt-4o", 20, max_attempts=3)
        charges = read_bill(tmp_path / run / BILL)
        met.append(
            {
                question: [charge.fault for charge in charges if charge.question == question]
                for question in {charge.question for charge in charges}
            }
        )
    assert met[0] == met[1]
    assert max(map(len, met[0].values())) == 3
    assert {fault for faults in met[0].values() for fault in faults} == {None, *rates}


def post(url: str, body: object) -> tuple[int, dict[str, Any]]:
    request = urllib.request.Request(url, json.dumps(body).encode(), method="POST")
    try:
        with urllib.request.urlopen(request) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


CHAT = {"model": "gpt-4o-2024-08-06", "messages": [{"role": "user", "content": "never heard"}]}


def test_unanswerable_requests_get_the_providers_errors(tmp_path: Path) -> None:
    def refuse(asked: Asked) -> str:
        raise KeyError(asked.turns[-1][1])

    with Providers(refuse, REGISTRY, tmp_path) as server:
        bases = api_bases(server.address)
        assert list(bases) == [provider.name for provider in PROVIDERS]
        unknown = post(f"{bases['openai']}/chat/completions", CHAT)
        no_model = post(f"{bases['openai']}/chat/completions", {**CHAT, "model": "gpt-1"})
        no_question = post(f"{bases['anthropic']}/v1/messages", {"model": "x"})
        gemini = post(f"{bases['gemini']}/models/gemini-2.5-pro:generateContent", {"contents": 3})
        nowhere = post(f"{server.address}/v1/chat/completions", CHAT)
    assert unknown == (
        400,
        {
            "error": {
                "message": "KeyError: 'never heard'",
                "type": "invalid_request_error",
                "param": None,
                "code": None,
            }
        },
    )
    assert (no_model[0], no_model[1]["error"]["code"]) == (404, "model_not_found")
    assert no_question[0] == 400 and no_question[1]["error"]["type"] == "invalid_request_error"
    assert gemini[0] == 400 and gemini[1]["error"]["status"] == "INVALID_ARGUMENT"
    assert nowhere[0] == 404
    assert read_bill(tmp_path / BILL) == []


def test_a_bill_truncated_at_any_byte_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / BILL
    charges = [Charge("openai", "openai/m", f"q{n}", n, 1, 0.5) for n in range(3)]
    bill = Bill(path)
    for number in map(bill.add, charges):
        bill.delivered(number)
    bill.close()
    content = path.read_bytes()
    for length in range(len(content) + 1):
        path.write_bytes(content[:length])
        bill = Bill(path)
        kept = len(bill.charges)
        assert bill.charges == charges[:kept]
        assert bill.add(charges[0]) == kept
        bill.close()
        assert read_bill(path) == [*charges[:kept], charges[0]]
    path.write_bytes(b'{"delivered": 9}\n')
    with pytest.raises(UserError, match=r"bill\.jsonl:1: not a line of a bill"):
        Bill(path)


def test_a_restarted_server_continues(tmp_path: Path) -> None:
    faults, attempts = FaultProfile(rates={"500": 1.0}, max_attempts=3), []
    for _ in range(3):  # The third attempt must succeed, although the server was restarted.
        with Providers(answer_question, REGISTRY, tmp_path, faults) as server:
            attempts.append(post(f"{server.address}/openai/v1/chat/completions", CHAT)[0])
    assert attempts == [500, 500, 200]
    assert len(read_bill(tmp_path / BILL)) == 3


# Bill, ledger and recordings.


@pytest.fixture
def asked(tmp_path: Path) -> Path:
    """Create a folder whose recordings and bill agree."""
    with Providers(answer_question, REGISTRY, tmp_path) as server:
        ask_all(server.address, tmp_path / "recordings", "gpt-4o", 5)
    return tmp_path


def verdict_on(folder: Path) -> str:
    return verdict(bill_matches(folder / BILL, folder / "recordings", REGISTRY))


def ask_again(folder: Path) -> None:
    with Providers(answer_question, REGISTRY, folder) as server:
        ask_all(server.address, folder / "recordings", "gpt-4o", 5)


def test_a_repeated_question_is_reported(asked: Path) -> None:
    assert verdict_on(asked).startswith(
        "the bill and the ledger agree: 5 recorded answers to 5 requests"
    )
    ask_again(asked)
    assert len(read_bill(asked / BILL)) == 5
    path = asked / "recordings" / "gpt-4o.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))
    ask_again(asked)
    assert "disagree" in verdict_on(asked)
    assert "1 question answered again, 0 killed and 0 failed" in verdict_on(asked)
    assert "billed for recorded answers" in verdict_on(asked)


def test_a_lost_answer_is_reported(asked: Path) -> None:
    path = asked / "recordings" / "gpt-4o.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    assert "disagree (4 recorded answers to 5 requests" in verdict_on(asked)


def test_an_unbilled_answer_is_reported(asked: Path) -> None:
    path = asked / BILL
    lines = [line for line in path.read_bytes().splitlines(keepends=True) if b"model" in line]
    path.write_bytes(b"".join(lines[:-1]))
    assert "1 recorded answer not on the bill" in verdict_on(asked)


def test_different_token_counts_are_reported(asked: Path) -> None:
    path = asked / BILL
    path.write_bytes(path.read_bytes().replace(b'"output_tokens":', b'"output_tokens":1', 1))
    assert "1 recorded answer with different token counts" in verdict_on(asked)


def test_a_lost_reply_missing_in_the_ledger_is_reported(asked: Path) -> None:
    bill = Bill(asked / BILL)
    bill.add(Charge("openai", "openai/gpt-4o-2024-08-06", "q", 10, 10, 0.25, "cut"))
    bill.close()
    assert "$0.250000 billed for lost replies, $0.000000 held for them" in verdict_on(asked)


def test_a_rehearsal_answers_from_its_own_process(tmp_path: Path) -> None:
    write_text(tmp_path / "models.yaml", read_text(ROOT / "models.yaml"))
    config = load_config(read_yaml(ROOT / "config/paper.yaml"))
    rehearsal = Rehearsal(RehearsalSettings(), ROOT, tmp_path)
    rehearsal.start(config, REGISTRY)
    status, body = post(f"http://{rehearsal.address}/openai/v1/chat/completions", CHAT)
    assert status == 400
    assert "unknown question to gpt-4o-2024-08-06 (seed None)" in body["error"]["message"]
    with pytest.raises(UserError, match=r"cannot listen at .* stop the other rehearsal"):
        rehearsal.start(config, REGISTRY)


# Clients and server are killed at random times.

COUNT, KILLS = 60, 5
STORM: dict[Fault, float] = {
    "429": 0.06, "500": 0.03, "502": 0.02, "503": 0.02, "529": 0.02, "hang": 0.005, "reset": 0.03,
    "cut": 0.03, "broken": 0.03, "empty": 0.03, "drip": 0.005,
}  # fmt: skip


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


def serves(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def _serve(state: Path, port: int, faults: FaultProfile) -> None:
    with Providers(answer_question, REGISTRY, state, faults, port):
        time.sleep(600)


def _ask(address: str, folder: Path, name: str) -> None:
    os.environ.update(KEYS)
    ask_all(address, folder, name, COUNT, timeout_s=1, max_attempts=8)


def test_no_answer_is_lost_and_the_bill_equals_the_ledger_after_faults_and_kills(
    tmp_path: Path,
) -> None:
    calm, storm = tmp_path / "calm", tmp_path / "storm"
    with Providers(answer_question, REGISTRY, calm) as server:
        for name in MODELS:
            ask_all(server.address, calm / "recordings", name, COUNT)

    moments, port = random.Random(19), free_port()
    faults = FaultProfile(seed=19, latency_s=0.02, rates=STORM, retry_after_s=0.05, max_attempts=6)
    address = f"http://127.0.0.1:{port}"
    killed = 0
    server_process = start(_serve, storm / "state", port, faults)
    for turn in range(20):
        wait_for(lambda: serves(port))
        runs = [start(_ask, address, storm / "recordings", name) for name in MODELS]
        if turn < KILLS:
            requests = len(read_bill(storm / "state" / BILL))
            wait_for(lambda n=requests: len(read_bill(storm / "state" / BILL)) > n + 10)
            time.sleep(moments.uniform(0.0, 0.15))
            everything = [*runs, server_process] if turn % 2 else runs
            moments.shuffle(everything)
            for process in everything:
                process.kill()
        for run in runs:
            run.join(120)
        codes = [run.exitcode for run in runs]
        killed += codes.count(-signal.SIGKILL)
        if turn % 2 and turn < KILLS:
            server_process.join(10)
            server_process = start(_serve, storm / "state", port, faults)
        if codes == [0] * len(runs):
            break
    server_process.kill()
    server_process.join(10)

    assert codes == [0] * len(MODELS)
    assert killed >= KILLS
    assert recordings_of(storm / "recordings") == recordings_of(calm / "recordings")
    for name in MODELS:
        path = storm / "recordings" / f"{name}.jsonl"
        assert len(read_answers(path)) == COUNT and verify(path) == []
    bill = storm / "state" / BILL
    assert {charge.fault for charge in read_bill(bill)} >= {None, "429", "500", "cut", "broken"}
    models = bill_matches(bill, storm / "recordings", REGISTRY)
    assert [item.faults for item in models] == [[]] * len(MODELS), models
    assert [(item.questions, item.recorded) for item in models] == [(COUNT, COUNT)] * len(MODELS)
    spending = Ledger(storm / "recordings").spending()
    calmly = Ledger(calm / "recordings").spending()
    assert spending.settled == pytest.approx(calmly.settled, abs=1e-9)
