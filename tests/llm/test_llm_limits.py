"""Test rate limits, waits and the spending cap, in virtual time or with a server."""

import asyncio
import email.utils
import itertools
import os
import re
import resource
import selectors
import signal
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from fault_server import FaultServer, Reply, Request, answer, echo
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from llm_cases import ask_server, questions_for, settings_for, spec_for, start

from pieline.core import progress
from pieline.core.errors import UserError
from pieline.llm import retries
from pieline.llm.answers import Answer
from pieline.llm.asking import QuestionRun
from pieline.llm.client import ask
from pieline.llm.questions import Question, make_question
from pieline.llm.recordings import read_answers, recording
from pieline.llm.retries import NotConnectedError
from pieline.llm.settings import LLMSettings
from pieline.llm.spending import Ledger
from pieline.models.llm import LLMEntry

# Each answer has 10 input tokens and 5 output tokens: $0.0002 at these prices.
PRICES = {"input": 10.0, "output": 20.0}
EACH = 10 * 10e-6 + 5 * 20e-6
# "q1" has 2 bytes, 8 tokens around it and 64 of a template; an answer has at most 20 tokens.
MOST = 74 * 10e-6 + 20 * 20e-6
PAID: dict[str, Any] = {"entry": {"prices": PRICES}, "max_cost_usd": 1}


class _JumpingSelector(selectors.DefaultSelector):
    """Selector that advances its clock instead of sleeping."""

    now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        events = super().select(0.002 if timeout is None else 0)
        if not events and timeout is not None:
            self.now += max(timeout, 1e-7)  # time also passes while callbacks run
        return events


class _VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.virtual = _JumpingSelector()
        super().__init__(self.virtual)

    def time(self) -> float:
        return self.virtual.now


def run_virtually(main: Coroutine[Any, Any, Any]) -> Any:
    loop = _VirtualLoop()
    try:
        return loop.run_until_complete(main)
    finally:
        loop.close()


class RateLimited(Exception):
    """Error that litellm raises for a 429."""

    def __init__(self, **headers: str) -> None:
        super().__init__("slow down")
        self.status_code = 429
        self.litellm_response_headers = headers


class FakeSender:
    """Sender that raises the planned failures, then answers after half a virtual second."""

    def __init__(self, failures: list[Exception] | None = None) -> None:
        self.sent: list[float] = []
        self.failures = list(failures or [])

    async def send(self, question: Question) -> Answer:
        self.sent.append(asyncio.get_running_loop().time())
        await asyncio.sleep(0.5)
        if self.failures:
            raise self.failures.pop(0)
        counts = {"input_tokens": 8 + len(question.messages[0].content) // 4, "output_tokens": 5}
        return Answer(key=question.key, text="x", returned_model="test-model", **counts)

    async def close(self) -> None:
        pass


def asked(
    spec: LLMEntry,
    settings: LLMSettings,
    questions: list[Question],
    sender: FakeSender,
    on_progress: Callable[[], object] = lambda: None,
) -> dict[str, Answer]:
    async def main() -> dict[str, Answer]:
        with recording(settings.recordings_folder / "a.jsonl") as recorder:
            return await QuestionRun(spec, settings, recorder, questions).run(sender, on_progress)

    answers: dict[str, Answer] = run_virtually(main())
    return answers


class SlowSender(FakeSender):
    """Sender that answers after 100 virtual seconds and calls `before` soon after sending."""

    def __init__(self, before: Callable[[Question], None]) -> None:
        super().__init__()
        self.before = before

    async def send(self, question: Question) -> Answer:
        await asyncio.sleep(0.5)
        self.before(question)
        await asyncio.sleep(99)
        return await super().send(question)


REFUSED = "cannot connect to http://127.0.0.1:1 (Connection refused)"


def test_a_refused_connection_fails_within_seconds(folder: Path) -> None:
    spec = spec_for(prices={"input": 1, "output": 1})
    settings = settings_for(folder, backoff_s=1.0, concurrency=1, max_cost_usd=1)
    sender = FakeSender([NotConnectedError(REFUSED)] * 9)
    with pytest.raises(UserError) as caught:
        asked(spec, settings, questions_for(spec, 2), sender)
    assert str(caught.value).startswith(f"Test model: {REFUSED}; start its server, or correct")
    assert len(sender.sent) == 3
    assert sender.sent[-1] < 5
    # A request that was not sent is not billed.
    assert not Ledger(folder, 1).spending().possibly_billed


def test_a_server_that_has_answered_may_restart(folder: Path) -> None:
    spec, settings = spec_for(), settings_for(folder, backoff_s=1.0, concurrency=1)
    sender = FakeSender()

    def stop_server() -> None:
        sender.failures += [NotConnectedError(REFUSED)] * 5 * (len(sender.sent) == 1)

    answers = asked(spec, settings, questions_for(spec, 2), sender, stop_server)
    assert (len(answers), len(sender.sent)) == (2, 7)


def test_a_failed_run_waits_for_requests_in_flight(folder: Path) -> None:
    def refuse_first(question: Question) -> None:
        if question.name == "q0":
            error = RateLimited()
            error.status_code = 401
            raise error

    spec, settings = spec_for(), settings_for(folder, timeout_s=200)
    with pytest.raises(UserError, match="the provider rejected the request"):
        asked(spec, settings, questions_for(spec, 2), SlowSender(refuse_first))
    assert len(read_answers(folder / "a.jsonl")) == 1


@pytest.mark.parametrize(
    ("number", "stop", "answers"),
    [(signal.SIGTERM, SystemExit, 0), (signal.SIGINT, KeyboardInterrupt, 1)],
)
def test_only_sigterm_has_a_grace_period(
    folder: Path, number: signal.Signals, stop: type[BaseException], answers: int
) -> None:
    sender = SlowSender(lambda _: os.kill(os.getpid(), number))
    spec, settings = spec_for(), settings_for(folder, concurrency=1, timeout_s=200)
    with pytest.raises(stop):
        asked(spec, settings, questions_for(spec, 2), sender)
    assert len(read_answers(folder / "a.jsonl")) == answers


def most_within(times: list[float], seconds: float) -> int:
    return max(sum(start <= at < start + seconds - 1e-6 for at in times) for start in times)


@pytest.mark.parametrize(("failures", "count"), [(0, 35), (20, 5)])
def test_requests_per_minute_include_repeated_attempts(
    folder: Path, failures: int, count: int
) -> None:
    spec, sender = spec_for(), FakeSender([RateLimited()] * failures)
    settings = settings_for(folder, limits={"requests_per_minute": 10}, max_attempts=30)
    asked(spec, settings, questions_for(spec, count), sender)
    assert len(sender.sent) == failures + count
    assert most_within(sender.sent, 60) == 10


def test_tokens_per_minute(folder: Path) -> None:
    spec, sender = spec_for(), FakeSender()
    settings = settings_for(folder, limits={"tokens_per_minute": 1000})
    # Each question is estimated at 100 + 8 input tokens and 92 output tokens.
    questions = [
        make_question(spec, [("user", f"{i:03}" + "x" * 357)], {"max_tokens": 92})
        for i in range(20)
    ]
    asked(spec, settings, questions, sender)
    assert most_within(sender.sent, 60) in (4, 5)
    assert sender.sent[-1] < 20 * 200 / 1000 * 60 * 1.3


def test_a_question_larger_than_the_burst_is_asked(folder: Path) -> None:
    spec, sender = spec_for(), FakeSender()
    settings = settings_for(folder, limits={"tokens_per_minute": 100})
    long = make_question(spec, [("user", "x" * 3600)], {"max_tokens": 20})
    assert len(asked(spec, settings, [long], sender)) == 1


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"retry-after": "7"}, 7),
        ({"Retry-After": "7.5"}, 7.5),
        ({"retry-after-ms": "6500"}, 6.5),
        ({"retry-after": email.utils.formatdate(1_000_030, usegmt=True)}, 30),
        ({"retry-after": "soon"}, 0),
        ({}, 0),
    ],
)
def test_the_wait_that_a_provider_requests(
    monkeypatch: pytest.MonkeyPatch, headers: dict[str, str], wait: float
) -> None:
    # tests/llm/test_llm_faults.py tests that runs wait.
    monkeypatch.setattr(time, "time", lambda: 1_000_000.0)
    assert retries.retry_after(RateLimited(**headers)) == wait


QUOTA = "You exceeded your current quota, please check your plan and billing details."


@pytest.mark.parametrize(
    ("message", "is_fatal", "wait"),
    [
        (QUOTA, True, 0),
        (f'{{"message": "{QUOTA}", "type": "insufficient_quota"}}', True, 0),
        (f'{{"message": "{QUOTA}", "details": [{{"retryDelay": "26s"}}]}}', False, 26),
        (f'{{\\"message\\": \\"{QUOTA}\\", \\n\\"retryDelay\\": \\"1.5s\\"}}', False, 1.5),
        ("slow down", False, 0),
    ],
)
def test_a_quota_per_minute_is_not_exhausted_credit(
    message: str, is_fatal: bool, wait: float
) -> None:
    error = RateLimited()
    error.args = (message,)
    assert (retries.is_fatal(error), retries.is_transient(error)) == (is_fatal, not is_fatal)
    assert retries.retry_after(error) == wait


def test_a_requested_wait_that_is_too_long_fails_the_question(folder: Path) -> None:
    sender, spec = FakeSender([RateLimited(**{"retry-after": "86400"})]), spec_for()
    with pytest.raises(UserError, match=r"1 of 2 questions got no answer \(1 × .*86400 s"):
        asked(spec, settings_for(folder), questions_for(spec, 2), sender)
    assert len(read_answers(folder / "a.jsonl")) == 1


def test_waits_grow_to_a_maximum(folder: Path) -> None:
    spec, sender = spec_for(), FakeSender([RateLimited()] * 9)
    settings = settings_for(folder, backoff_s=1, max_attempts=9)
    with pytest.raises(UserError, match=r"1 of 1 questions .*RateLimited: slow down\)"):
        asked(spec, settings, questions_for(spec, 1), sender)
    assert len(sender.sent) == 9
    assert read_answers(folder / "a.jsonl") == {}
    gaps = [
        after - before - 0.5 for before, after in zip(sender.sent, sender.sent[1:], strict=False)
    ]
    assert all(gap <= 2**n for n, gap in enumerate(gaps))


def test_a_stopped_run_reports_answers_and_possibly_billed_cost(folder: Path) -> None:
    message = (
        r"3 consecutive questions failed, the last with: InternalServerError.*; 1 of 9 are answered"
        rf" \(at most \${3 * MOST:.4f} more possibly billed without an answer\);"
        " check the state of the provider"
    )
    with (
        FaultServer(lambda sent: echo(sent) if sent.text == "q0" else Reply(500, b"no")) as server,
        pytest.raises(UserError, match=message),
    ):
        ask_server(folder, server.api_base, 9, concurrency=1, max_attempts=1, **PAID)


def test_rejection_of_every_question_suggests_changing_the_entry(folder: Path) -> None:
    message = r"6 consecutive questions .*; 0 of 90 are answered; change how it is asked"
    with (
        FaultServer(lambda _: Reply(400, b'{"error": {"message": "bad"}}')) as server,
        pytest.raises(UserError, match=message),
    ):
        ask_server(folder, server.api_base, 90, concurrency=2, **PAID)


@pytest.mark.parametrize("status", [401, 402, 403, 404])
def test_a_rejected_key_or_model_stops_the_run_without_retry(folder: Path, status: int) -> None:
    with FaultServer(lambda _: Reply(status, b'{"error": {"message": "no"}}')) as server:
        with pytest.raises(UserError, match=r"Test model: the provider rejected the req.*LLM_KEY"):
            ask_server(folder, server.api_base, 50, concurrency=4)
        assert len(server.requests) <= 4


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_bad_request_is_neither_repeated_nor_billed(folder: Path, status: int) -> None:
    def behave(request: Request) -> Reply:
        bad = request.text == "q3"
        return Reply(status, b'{"error": {"message": "bad"}}') if bad else echo(request)

    with FaultServer(behave) as server:
        for asked_now in (["q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7"], ["q3"]):
            server.requests.clear()
            with pytest.raises(UserError, match=r"1 of \d questions got no answer \(1 × [^)]*\);"):
                ask_server(folder, server.api_base, 8, **PAID)
            assert sorted(request.text for request in server.requests) == asked_now
    spending = Ledger(folder).spending()
    assert (spending.usd, spending.possibly_billed) == (pytest.approx(7 * EACH), {})


def test_a_slow_stream_of_bytes_times_out(folder: Path) -> None:
    def behave(request: Request) -> Reply:
        reply = echo(request)
        reply.fault = "drip" if request.attempt == 1 else None
        return reply

    with FaultServer(behave) as server:
        begun = time.monotonic()
        # The timeout of the provider takes precedence over that of `settings_for`, 60 s.
        (answer,) = ask_server(folder, server.api_base, limits={"timeout_s": 1})
        assert time.monotonic() - begun < 50
        assert answer.text == "echo q0"
        assert len(server.requests) == 2


TIMEOUTS: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any], float]] = [
    ({}, {}, {}, 120),
    ({"reasoning": True}, {}, {}, 900),
    ({"litellm_id": "gemini/m"}, {}, {}, 900),
    ({"reasoning": True}, {"timeout_s": 30}, {}, 30),
    ({}, {"timeout_s": 300}, {}, 300),
    ({"reasoning": True}, {"timeout_s": 30}, {"timeout_s": 2000}, 2000),
    ({}, {}, {"timeout_s": 15}, 15),
]


@pytest.mark.parametrize(("entry", "fields", "limits", "seconds"), TIMEOUTS)
def test_a_thinking_model_has_a_longer_default_timeout(
    entry: dict[str, Any], fields: dict[str, Any], limits: dict[str, Any], seconds: float
) -> None:
    spec = spec_for(**entry)
    for provider in ("tests", "default"):
        settings = LLMSettings.model_validate({"providers": {provider: limits}, **fields})
        assert settings.timeout(spec) == seconds


def test_progress_shows_answers_failures_and_cost_also_while_waiting(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "FIRST_S", 0.1)
    monkeypatch.setattr(progress, "EVERY_S", 0.1)

    def behave(request: Request) -> Reply:
        if request.text == "q1":
            return Reply(400, b'{"error": {"message": "no"}}')
        return answer("x", delay=1.0 if request.text == "q2" else 0.0)

    with (
        FaultServer(behave) as server,
        pytest.raises(UserError, match="1 of 3 questions got no answer"),
    ):
        ask_server(folder, server.api_base, 3, concurrency=1, progress=True, **PAID)
    lines = capsys.readouterr().err.splitlines()
    waiting = [
        line for line in lines if line.startswith("Test model: 2 of 3 questions, 1 failed, $0.0")
    ]
    assert len(waiting) > 3
    last = (
        r"Test model: 3 of 3 questions, 1 failed, \$0\.0004, .* questions/s,"
        r" \S+ elapsed, 00:00 left"
    )
    assert re.fullmatch(last, lines[-1])


@pytest.mark.parametrize("concurrency", [1, 16])
def test_the_cap_is_never_exceeded_and_raising_it_resumes(
    folder: Path, concurrency: int, capsys: pytest.CaptureFixture[str]
) -> None:
    path = folder / "a.jsonl"
    with FaultServer(lambda request: answer("x", delay=0.01)) as server:
        spec = spec_for(server.api_base, prices=PRICES)
        questions = questions_for(spec, 24)
        capped = settings_for(folder, concurrency=concurrency, max_cost_usd=0.003)
        with pytest.raises(UserError) as stopped:
            ask(questions, spec, capped, path)
        # Reported before the first question is asked.
        first = capsys.readouterr().err.splitlines()[0]
        assert re.search(
            r"24 to ask, at most about \S+ \(llm.max_cost_usd leaves \$0.0030\)", first
        )
        answered = server.answered.total()
        # Less than the maximum cost of one more answer can be left.
        assert 0.003 - MOST - EACH <= answered * EACH <= 0.003
        assert Ledger(folder).spending().usd == pytest.approx(answered * EACH)
        assert len(read_answers(path)) == answered
        text = str(stopped.value)
        assert f"${answered * EACH:.4f} of $0.0030 spent" in text
        assert f"; {24 - answered} of 24 questions are left to ask, for" in text
        assert "raise llm.max_cost_usd" in text

        raised = settings_for(folder, concurrency=concurrency, max_cost_usd=1)
        assert len(ask(questions, spec, raised, path)) == 24
        assert "max_cost_usd" not in capsys.readouterr().err
        assert server.answered.total() == 24
    spending = Ledger(folder).spending()
    assert spending.usd == pytest.approx(24 * EACH)
    assert spending.requests == {"openai/test-model": 24}
    assert spending.reserved == []


def test_nothing_that_costs_money_is_asked_by_default(folder: Path) -> None:
    message = r"it costs money and llm.max_cost_usd is 0; raise it: .*estimate_cost"
    with FaultServer() as server:
        with pytest.raises(UserError, match=message):
            ask_server(folder, server.api_base, 3, entry={"prices": PRICES})
        assert server.requests == []


def test_a_question_with_unbounded_cost_is_not_asked(folder: Path) -> None:
    spec = spec_for(prices=PRICES)
    question = make_question(spec, [("user", "x")], {})
    settings = settings_for(folder, max_cost_usd=1)
    with pytest.raises(UserError, match="max_output_tokens"):
        ask([question], spec, settings, folder / "a.jsonl", progress=False)


FAULTS = {
    "a timeout": Reply(fault="hang"),
    "429": Reply(429, b'{"error": {"message": "slow down"}}'),
    "500": Reply(500, b"no"),
    "a lost connection": Reply(fault="reset"),
    "a broken body": Reply(body=b'{"id": "chatcmpl-1", "choices": [{"mess'),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_request_without_an_answer_is_possibly_billed(
    folder: Path, fault: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with FaultServer(lambda sent: FAULTS[fault] if sent.attempt == 1 else echo(sent)) as server:
        ask_server(folder, server.api_base, 2, timeout_s=1, progress=True, **PAID)
    spending = Ledger(folder).spending()
    assert spending.usd == pytest.approx(2 * EACH)
    assert spending.possibly_billed == pytest.approx({"openai/test-model": 2 * MOST})
    assert spending.unanswered == {"openai/test-model": 2}
    assert spending.requests == {"openai/test-model": 4}
    text = capsys.readouterr().err
    assert (
        f"${2 * EACH:.4f} (at most ${2 * MOST:.4f} more possibly billed without an answer)" in text
    )


def test_possibly_billed_cost_does_not_use_up_the_cap(folder: Path) -> None:
    with (
        FaultServer(lambda sent: Reply(500, b"no") if sent.attempt == 1 else echo(sent)) as server,
        pytest.raises(UserError, match=r"plus at most \$0\.00\d\d possibly billed") as stopped,
    ):
        ask_server(folder, server.api_base, 9, concurrency=1, **PAID | {"max_cost_usd": MOST})
    assert f"${EACH:.4f} of ${MOST:.4f} spent" in str(stopped.value)


def test_a_model_without_prices_is_not_asked_whatever_the_cap(folder: Path) -> None:
    with FaultServer() as server:
        recorded = ask_server(folder, server.api_base, 2)
        with pytest.raises(UserError) as refused:
            ask_server(folder, server.api_base, 3, entry={"prices": None}, max_cost_usd=1000)
        assert str(refused.value) == (
            "Test model: it has no prices, so its cost is unknown;"
            " add prices to its entry, or `prices: free` if it costs nothing"
        )
        assert len(server.requests) == 2
        # Recorded answers need no prices.
        assert ask_server(folder, server.api_base, 2, entry={"prices": None}) == recorded
        ask_server(folder, server.api_base, 3, entry={"prices": None, "api_key_env": None})
        assert len(server.requests) == 3
    # Models without prices are not in the ledger.
    assert not (folder / "spending.sqlite").exists()


@given(
    requests=st.lists(
        st.tuples(st.integers(0, 2), st.floats(0, 0.5), st.none() | st.floats(0, 1)), max_size=30
    )
)
@hypothesis_settings(max_examples=40, deadline=None)
def test_several_runs_share_one_cap(
    tmp_path_factory: pytest.TempPathFactory,
    requests: list[tuple[int, float, float | None]],
) -> None:
    folder = tmp_path_factory.mktemp("ledger")
    ledgers = [Ledger(folder, 1.0) for _ in range(3)]
    known = 0.0
    for who, most, share in requests:
        reserved = ledgers[who].reserve("m", most)
        assert (reserved is None) == (known + most > 1.0 + 1e-9)
        if reserved is not None:
            known += most
            if share is not None:
                ledgers[who].settle(reserved, most * share)
                known -= most * (1 - share)
        assert ledgers[(who + 1) % 3].spending().usd == pytest.approx(known, abs=1e-7)
    assert known <= 1.0 + 1e-6


def _spend(folder: Path, usd: float) -> None:
    """Reserve until the cap is reached; a third of the requests cost it all, the others half."""
    ledger = Ledger(folder, 1.0)
    # Wait long enough between two statements that other processes could interfere.
    ledger._database.set_trace_callback(lambda _: time.sleep(0.0005))
    with (folder / "sent").open("ab", buffering=0) as sent:
        for number in itertools.count():
            reserved = ledger.reserve("m", usd)
            if reserved is None:
                return
            sent.write(b".")
            ledger.settle(reserved, usd / 2 if number % 3 else usd)


@pytest.mark.full
def test_concurrent_processes_cannot_exceed_the_cap(folder: Path) -> None:
    folder.mkdir()
    runs = [start(_spend, folder, 0.01) for _ in range(8)]
    for run in runs:
        run.join(180)
        assert run.exitcode == 0
    spending = Ledger(folder).spending()
    assert spending.reserved == []
    assert 1.0 - 8 * 0.01 < spending.usd <= 1.0 + 1e-9
    assert spending.requests == {"m": (folder / "sent").stat().st_size}


def test_reservations_of_a_killed_run_stay_until_released(folder: Path) -> None:
    folder.mkdir()
    first = Ledger(folder, 1.0)
    reserved = first.reserve("m", 0.7)
    assert reserved
    later = Ledger(folder, 1.0)
    assert later.reserve("m", 0.4) is None
    assert later.release() == 0.7
    assert later.reserve("m", 0.4) is not None
    # A reservation that was released by mistake counts again when it is settled.
    first.settle(reserved, 0.2)
    assert later.spending().usd == pytest.approx(0.6)


def test_the_next_run_settles_recorded_answers_of_a_killed_run(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folder / "sub" / "a.jsonl"
    with FaultServer() as server:
        spec = spec_for(server.api_base, prices=PRICES)
        settings = settings_for(folder, max_cost_usd=1)
        questions = questions_for(spec, 5)
        with monkeypatch.context() as killed:
            killed.setattr(Ledger, "settle", lambda *_: None)
            ask(questions[:2], spec, settings, path, progress=False)
        # It is unknown whether the third question was answered; the fourth is in another file.
        ledger = Ledger(folder, 1.0)
        for file, question in (("sub/a.jsonl", questions[2]), ("b.jsonl", questions[3])):
            assert ledger.reserve(spec.checkpoint, MOST, file=file, key=question.key)
        assert ledger.spending().settled == {}
        assert [item.usd for item in ledger.spending().reserved] == pytest.approx([MOST] * 4)

        ask(questions, spec, settings, path, progress=False)
        assert server.answered.total() == 5
    spending = ledger.spending()
    assert spending.settled == pytest.approx({spec.checkpoint: 5 * EACH})
    assert {(item.file, item.key) for item in spending.reserved} == {
        ("", questions[2].key),
        ("b.jsonl", questions[3].key),
    }


def test_an_unwritable_ledger_is_a_one_line_error(folder: Path) -> None:
    with pytest.raises(UserError, match=r"spending\.sqlite: .*unable to open.*check permissions"):
        Ledger(folder, 1.0)
    folder.mkdir()
    ledger = Ledger(folder, 1.0)
    reserved = ledger.reserve("m", 0.25)
    assert reserved
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, hard))  # as if the disk were full
        with pytest.raises(UserError, match=r"disk I/O error; free disk space"):
            ledger.settle(reserved, 0.125)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert ledger.spending().reserved == [reserved]
    (folder / "spending.sqlite").write_bytes(b"no database" * 100)
    with pytest.raises(UserError, match=r"not a database; restore or delete"):
        Ledger(folder)
