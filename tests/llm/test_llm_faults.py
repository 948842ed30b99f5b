"""Test runs with a provider that fails in every way, and runs killed at any moment."""

import itertools
import os
import random
import signal
import time
import zlib
from pathlib import Path

import pytest
from fault_server import FaultServer, Reply, Request, answer, echo
from llm_cases import questions_for, settings_for, spec_for, start
from support import wait_for

from pieline.llm.archive import verify
from pieline.llm.client import ask
from pieline.llm.recordings import read_answers, read_lines
from pieline.llm.spending import Ledger

CONCURRENCY = 32
RETRY_AFTER = 0.15
PRICES = {"input": 10.0, "output": 20.0}
EACH = 10 * 10e-6 + 5 * 20e-6
"""Cost of each answer, with 10 input tokens and 5 output tokens."""


def faulty(request: Request) -> Reply:
    """Fail by hash: 10% rate limits, 5% server errors, 3% broken bodies and 2% hangs."""
    draw = zlib.crc32(f"{request.text} {request.attempt}".encode()) % 1000 / 10
    if draw < 10:
        body = b'{"error": {"message": "slow down"}}'
        return Reply(429, body, {"Retry-After": str(RETRY_AFTER)})
    if draw < 15:
        return Reply(500, b"internal error")
    if draw < 18:
        return Reply(200, echo(request).body[:40])
    if draw < 20:
        return Reply(fault="hang")
    return echo(request)


def test_all_questions_are_answered_once_despite_faults(folder: Path) -> None:
    path = folder / "a.jsonl"
    with FaultServer(faulty) as server:
        spec = spec_for(server.api_base)
        settings = settings_for(folder, concurrency=CONCURRENCY, timeout_s=4, max_attempts=12)
        questions = questions_for(spec, 200)
        answers = ask(questions, spec, settings, path, progress=False)
        requests = server.requests
        assert server.most_in_flight <= CONCURRENCY
        good = {request.text for request in requests if faulty(request).body == echo(request).body}

    assert [answers[question.key].text for question in questions] == [
        f"echo {question.name}" for question in questions
    ]
    assert read_answers(path) == answers
    assert good == {question.name for question in questions}
    # All requests but the last of each question failed, so no successful one was repeated.
    expected = sum(
        next(
            n
            for n in itertools.count(1)
            if faulty(_nth(question.name, n)).body == _ok(question.name)
        )
        for question in questions
    )
    assert len(requests) == expected
    # After a rate limit, the question was not repeated before the requested wait.
    seen: dict[str, Request] = {}
    waits = []
    for request in requests:
        before = seen.get(request.text)
        if before and faulty(before).status == 429:
            waits.append(request.at - before.at)
        seen[request.text] = request
    assert len(waits) > 15
    assert min(waits) >= RETRY_AFTER


def _nth(text: str, attempt: int) -> Request:
    return Request(text, attempt, 0.0, {}, {})


def _ok(text: str) -> bytes:
    return echo(_nth(text, 1)).body


def _ask_all(api_base: str, folder: Path, path: Path, count: int, mode: str = "record") -> None:
    os.environ["TEST_LLM_KEY"] = "sk-testing-testing"
    spec = spec_for(api_base, prices=PRICES)
    settings = settings_for(folder, concurrency=16, mode=mode, max_cost_usd=100)
    ask(questions_for(spec, count), spec, settings, path, progress=False)


@pytest.mark.full
@pytest.mark.parametrize("mode", ["record", "fresh"])
def test_killed_runs_lose_only_requests_in_flight(folder: Path, mode: str) -> None:
    kills, count = (12, 600) if mode == "record" else (5, 250)
    path = folder / "sub" / "a.jsonl"
    collected = path if mode == "record" else path.with_name("a.jsonl.fresh")
    moments = random.Random(7)
    lost_in_all = 0
    with FaultServer(lambda request: answer(f"echo {request.text}", delay=0.02)) as server:
        for killed in range(1, kills + 1):
            answered, kept = server.answered.total(), len(read_answers(collected))
            process = start(_ask_all, server.api_base, folder, path, count, mode)
            wait_for(lambda answered=answered: server.answered.total() > answered)
            time.sleep(moments.uniform(0.0, 0.15))
            process.kill()
            process.join(180)
            assert process.exitcode == -signal.SIGKILL
            wait_for(lambda: server.in_flight == 0)
            lost = (server.answered.total() - answered) - (len(read_answers(collected)) - kept)
            assert 0 <= lost <= 16
            lost_in_all += lost
            # The ledger has every request that was sent, and those that a kill prevented.
            spending = Ledger(folder).spending()
            booked = sum(spending.requests.values()) + len(spending.reserved)
            assert len(server.requests) <= booked <= len(server.requests) + 16 * killed
        process = start(_ask_all, server.api_base, folder, path, count, mode)
        process.join(180)
        assert process.exitcode == 0
        assert server.answered.total() == count + lost_in_all
    answers = read_answers(path)
    assert sorted(str(answer.text) for answer in answers.values()) == sorted(
        f"echo q{i}" for i in range(count)
    )
    assert verify(path) == []
    keys = [line.value["key"] for line in read_lines(path)]
    assert keys == sorted(keys)
    left = {file.name for file in path.parent.iterdir()}
    assert left == {"a.jsonl", ".locks"}
    spending = Ledger(folder).spending()
    assert sum(spending.settled.values()) == pytest.approx(count * EACH)
    assert lost_in_all <= len(spending.reserved)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_keeps_all_answers_in_flight(folder: Path, number: signal.Signals) -> None:
    path = folder / "a.jsonl"
    with FaultServer(lambda request: answer("x", delay=0.3)) as server:
        process = start(_ask_all, server.api_base, folder, path, 200)
        wait_for(lambda: server.answered.total() > 0 and server.in_flight >= 8)
        os.kill(process.pid or 0, number)
        process.join(180)
        asked = len(server.requests)
        assert process.exitcode == (143 if number == signal.SIGTERM else 1)
    assert 8 <= asked < 200
    assert len(read_answers(path)) == asked
    assert [line.value["key"] for line in read_lines(path)] == sorted(read_answers(path))


def test_two_runs_of_one_provider_take_turns(folder: Path) -> None:
    with FaultServer(lambda request: answer("x", delay=0.02)) as server:
        runs = [
            start(_ask_tagged, server.api_base, folder, folder / f"{tag}.jsonl", tag)
            for tag in "ab"
        ]
        for run in runs:
            run.join(180)
            assert run.exitcode == 0
        tags = [request.text[0] for request in server.requests]
        assert server.most_in_flight <= 4
    assert [tag for tag, _ in itertools.groupby(tags)] in (["a", "b"], ["b", "a"])
    assert len(tags) == 80


def _ask_tagged(api_base: str, folder: Path, path: Path, tag: str) -> None:
    os.environ["TEST_LLM_KEY"] = "sk-testing-testing"
    spec = spec_for(api_base)
    settings = settings_for(folder, concurrency=4)
    ask(questions_for(spec, 40, tag), spec, settings, path, progress=False)
