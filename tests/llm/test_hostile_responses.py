"""Test that every response with a text or token counts is recorded, settled and asked once."""

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from fault_server import ASKED, FaultServer, Reply, Request, answer
from llm_cases import ask_server, questions_for, settings_for, spec_for

from pieline.core.errors import UserError
from pieline.llm.answers import Answer
from pieline.llm.archive import verify
from pieline.llm.client import ask
from pieline.llm.costs import answer_usd, max_attempt_usd
from pieline.llm.parsing import answer_text
from pieline.llm.recordings import read_answers, read_lines, read_responses
from pieline.llm.spending import Ledger

PRICES = {"input": 10.0, "output": 20.0}
PAID: dict[str, Any] = {"entry": {"prices": PRICES}, "max_cost_usd": 100}
ATTEMPTS = 3
COUNTS = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
INPUT_ONLY = {"prompt_tokens": 10, "completion_tokens": 0, "total_tokens": 10}


def body(content: Any = "yes", finish: Any = "stop", usage: Any = COUNTS, **fields: Any) -> bytes:
    """Return a chat completion; `message` and `choices` replace these parts."""
    message = fields.pop("message", {"role": "assistant", "content": content})
    choice = {"index": 0, "message": message, "finish_reason": finish}
    chat = {"id": "chatcmpl-1", "object": "chat.completion", "model": ASKED, "choices": [choice]}
    return json.dumps({**chat, "usage": usage, **fields}).encode()


def half(content: bytes, end: bytes = b'"finish_reason"') -> bytes:
    return content[: content.index(end)]


ERROR = {"error": {"message": "overloaded", "code": 500}}
REASONS = (
    *("error", "pause_turn", "abort", "network_error", "insufficient_system_resource"),
    *("cancelled", "timeout"),
)
HOSTILE: dict[str, tuple[bytes, str, float | None]] = {
    # Name: body, outcome of its question, and tokens' price in micro-dollars (None: not stated).
    "reason null": (body(finish=None), "ok", 200),
    **{f"reason {name}": (body(finish=name), "failed", 200) for name in REASONS},
    **{f"reason {name!r}": (body(finish=name), "failed", 200)
       for name in (4, 0, False, [], {}, " ")},
    **{f"reason {name}": (body(finish=name), "truncated", 200)
       for name in ("repetition", "repeat", "length", "MAX_TOKENS", "token_limit")},
    **{f"reason {name}": (body(finish=name), "filtered", 200) for name in ("SAFETY", "sensitive")},
    "reason empty": (body(finish=""), "ok", 200),
    "native reason": (body(choices=[{"finish_reason": "stop", "native_finish_reason": "error",
                                     "message": {"content": "[]"}}]), "failed", 200),
    "error beside text": (body(**ERROR), "failed", 200),
    "error text beside text": (body(error="busy"), "failed", 200),
    "errors beside text": (body(errors=[ERROR]), "failed", 200),
    "error in the choice": (body(choices=[{"finish_reason": "stop", "error": ERROR,
                                           "message": {"content": "[]"}}]), "failed", 200),
    "error with usage": (json.dumps({**ERROR, "usage": COUNTS}).encode(), "failed", 200),
    "error with usage of the prompt": (json.dumps({**ERROR, "usage": INPUT_ONLY}).encode(),
                                       "open", 100),
    "error alone": (json.dumps(ERROR).encode(), "open", 0),
    "error and no usage": (body(usage=None, **ERROR), "failed", None),
    "choices null": (body(choices=None, usage=INPUT_ONLY), "open", 100),
    "choices empty": (body(choices=[], usage=INPUT_ONLY), "open", 100),
    "choices empty, with output": (body(choices=[]), "failed", 200),
    "choices of null": (body(choices=[None], usage=INPUT_ONLY), "open", 100),
    "choices null, free": (body(choices=None, usage=None), "open", 0),
    "choices missing": (b'{"usage": {"prompt_tokens": 10}}', "open", 100),
    "message null": (body(message=None), "empty", 200),
    "message a text": (body(message="yes"), "unparseable", 200),
    "delta": (body(choices=[{"finish_reason": "stop", "delta": {"content": "yes"}}]),
              "unparseable", 200),
    "content null": (body(None), "empty", 200),
    "content null, no reason": (body(None, None), "failed", 200),
    "content null, no reason, free": (body(None, None, None), "open", 0),
    "content empty": (body(""), "empty", 200),
    "content a number": (body(5), "unparseable", 200),
    "parts null": (body([None, {"type": "text", "text": "yes"}]), "ok", 200),
    "parts of null only": (body([None]), "empty", 200),
    "part of null text": (body([{"type": "text", "text": None}]), "unparseable", 200),
    "part unknown": (body([{"type": "hologram"}, {"type": "text", "text": "yes"}]),
                     "unparseable", 200),
    "reasoning only": (body(message={"content": None, "reasoning_content": "hm"}), "empty", 200),
    "refusal": (body(message={"content": None, "refusal": "no"}), "refused", 200),
    "bad byte": (body("caf#").replace(b"#", b"\xe9"), "ok", 200),
    "bad bytes everywhere": (body("yes###").replace(b"#", b"\xff"), "ok", 200),
    "lone surrogate": (body("yes \ud83d"), "ok", 200),
    "byte order mark": (b"\xef\xbb\xbf" + body(), "ok", 200),
    "half": (half(body("a long answer")), "failed", None),
    "half in the text": (half(body("a long answer"), b"long"), "failed", None),
    "half before the text": (b'{"id": "chatcmpl-1", "choices": [{"mess', "open", 0),
    "half after the usage": (body()[:-1], "failed", 200),
    "no JSON": (b"<html>log in</html>", "open", 0),
    "nothing": (b"", "open", 0),
    "a list": (b"[]", "open", 0),
    "no usage": (body(usage=None), "ok", None),
    "usage of texts": (body(usage={"prompt_tokens": "10", "completion_tokens": "5"}), "ok", None),
    "usage negative": (body(usage={"prompt_tokens": -1, "completion_tokens": -5}), "ok", None),
    "reasoning beside": (body(usage={**COUNTS, "total_tokens": 20,
        "completion_tokens_details": {"reasoning_tokens": 5}}), "ok", 300),
    "reasoning beside, no total": (body(usage={"prompt_tokens": 10, "completion_tokens": 1,
        "completion_tokens_details": {"reasoning_tokens": 9}}), "ok", 300),
    "reasoning within": (body(usage={**COUNTS,
        "completion_tokens_details": {"reasoning_tokens": 4}}), "ok", 200),
    "no model": (body(model=None, **ERROR), "failed", 200),
    "id null": (body(id=None), "ok", 200),
    "id repeated": (body(id="chatcmpl-0123456789abcdef0123"), "ok", 200),
    "id repeated by another": (body("no", id="chatcmpl-0123456789abcdef0123"), "ok", 200),
    "fields added": (b'{"x": NaN, ' + body()[1:], "ok", 200),
    "repeated key": (body().replace(b'"content": ', b'"content": "no", "content": '), "ok", 200),
}  # fmt: skip
BILLED = {name for name, (_, _, cost) in HOSTILE.items() if cost != 0}


def outcome_of(given: Answer | None) -> str:
    """Return the outcome of an answer, `ok` for a text, or `open` if there is none."""
    if given is None:
        return "open"
    unreadable = answer_text(given)[1]
    return unreadable.outcome.value if unreadable else "ok"


def test_hostile_responses_are_recorded_and_settled_as_billed(folder: Path) -> None:
    assert len(HOSTILE) >= 60
    names = {f"q{number}": name for number, name in enumerate(HOSTILE)}
    billed: Counter[str] = Counter()

    def behave(request: Request) -> Reply:
        billed[request.text] += names[request.text] in BILLED
        return Reply(body=HOSTILE[names[request.text]][0])

    path = folder / "a.jsonl"
    runs = []
    with FaultServer(behave) as server:
        for _ in range(3):
            with pytest.raises(UserError, match="got no answer"):
                ask_server(folder, server.api_base, len(HOSTILE), max_attempts=ATTEMPTS, **PAID)
            runs.append(Counter(request.text for request in server.requests))
            server.requests.clear()
    spec = spec_for(prices=PRICES)
    questions = {question.key: question for question in questions_for(spec, len(HOSTILE))}
    # Each billed response is one line, with what it cost.
    lines = Counter(questions[line.key].name for line in read_lines(path))
    assert lines == +billed
    assert verify(path) == []
    expected = 0.0
    for key, own in read_responses(path).items():
        cost = HOSTILE[names[questions[key].name]][2]
        for item in own:
            usd = answer_usd(item, spec)
            assert usd == (None if cost is None else pytest.approx(cost / 1e6))
            expected += max_attempt_usd(questions[key], spec) if usd is None else usd
    spending = Ledger(folder).spending()
    assert spending.usd + sum(spending.excess.values()) == pytest.approx(expected)
    assert spending.reserved == []
    # Reading decides what they are worth.
    answers = read_answers(path, attempts=ATTEMPTS)
    read = {names[q.name]: outcome_of(answers.get(key)) for key, q in questions.items()}
    assert read == {name: wanted for name, (_, wanted, _) in HOSTILE.items()}
    # Failures are asked again as often as allowed over all runs, and everything else once.
    for text, name in names.items():
        _, wanted, cost = HOSTILE[name]
        retried = wanted in ("failed", "open")
        assert runs[0][text] == (ATTEMPTS if retried else 1), name
        again = ATTEMPTS if wanted == "open" and cost == 0 else 0
        assert runs[1][text] == runs[2][text] == again, name


def test_failures_are_counted_over_all_runs(folder: Path) -> None:
    fails = {"q0": 4}

    def behave(request: Request) -> Reply:
        is_failed = request.attempt <= fails.get(request.text, 0)
        return Reply(body=body(finish="error" if is_failed else "stop"))

    with FaultServer(behave) as server:
        (first, second) = ask_server(folder, server.api_base, 2, max_attempts=2, **PAID)
        assert (outcome_of(first), outcome_of(second)) == ("failed", "ok")
        assert ask_server(folder, server.api_base, 2, max_attempts=2, **PAID) == [first, second]
        assert len(server.requests) == 3
        # With a higher limit, only the missing attempts are made.
        (first, _) = ask_server(folder, server.api_base, 2, max_attempts=4, **PAID)
        assert (outcome_of(first), len(server.requests)) == ("failed", 5)
        # A replay asks nothing, although the limit is higher.
        replayed = ask_server(folder, server.api_base, 2, max_attempts=5, mode="replay", **PAID)
        assert (replayed[0], len(server.requests)) == (first, 5)
        (first, _) = ask_server(folder, server.api_base, 2, max_attempts=5, **PAID)
        assert (outcome_of(first), len(server.requests)) == ("ok", 6)
    own = read_responses(folder / "a.jsonl")[first.key]
    assert [item.attempt for item in own] == [None, 1, 2, 3, 4]
    assert Ledger(folder).spending().usd == pytest.approx(6 * 200e-6)


def test_a_killed_attempt_is_not_settled_with_an_earlier_failure(folder: Path) -> None:
    with FaultServer(lambda _: Reply(body=body(finish="error"))) as server:
        ask_server(folder, server.api_base, 1, max_attempts=1, **PAID)
        (question,) = questions_for(spec_for(prices=PRICES), 1)
        ledger = Ledger(folder, 100)
        # A run was killed after it had sent the second attempt.
        ledger.reserve(question.model, 0.5, file="a.jsonl", key=f"{question.key}#1")
        ask_server(folder, server.api_base, 1, max_attempts=2, **PAID)
    spending = ledger.spending()
    assert math.fsum(spending.settled.values()) == pytest.approx(2 * 200e-6)
    assert [(item.usd, item.file) for item in spending.reserved] == [(0.5, "")]


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (body(finish="pause_turn"), "none of 20 answers is readable"),
        (HOSTILE["reasoning only"][0], "none of 20 answers is readable"),
        (body(usage={"prompt_tokens": 50, "completion_tokens": 3}),
         "seems to cut the prompts: it counts at most 50 tokens, but a prompt has about"),
    ],
)  # fmt: skip
def test_a_run_of_useless_answers_stops(folder: Path, reply: bytes, message: str) -> None:
    spec = spec_for(prices=PRICES)
    questions = questions_for(spec, 50, prefix="a long sentence " * 40 if "cut" in message else "q")
    with FaultServer(lambda _: Reply(body=reply)) as server:
        spec = spec_for(server.api_base, prices=PRICES)
        settings = settings_for(folder, concurrency=1, max_cost_usd=1)
        for _ in range(2):
            with pytest.raises(UserError, match=message):
                ask(questions, spec, settings, folder / "a.jsonl", progress=False)
            assert len(server.requests) in (10, 20)
        assert len([*read_lines(folder / "a.jsonl")]) == len(server.requests)
        off = settings.model_copy(update={"stop_when_cut": False, "max_attempts": 1})
        assert len(ask(questions, spec, off, folder / "a.jsonl", progress=False)) == 50


def test_prompts_of_different_lengths_with_the_same_count_are_cut(folder: Path) -> None:
    def asked(usage: int | None, factor: int) -> int:
        def behave(request: Request) -> Reply:
            tokens = usage or len(request.text) // 4
            return answer("yes", usage={"prompt_tokens": tokens, "completion_tokens": 3})

        with FaultServer(behave) as server:
            spec = spec_for(server.api_base)
            questions = [
                question
                for number in range(12)
                for question in questions_for(spec, 1, "word " * (100 + factor * number))
            ]
            path = folder / f"{usage}-{factor}.jsonl"
            ask(questions, spec, settings_for(folder, concurrency=1), path, progress=False)
            return len(server.requests)

    assert asked(None, 10) == 12
    assert asked(120, 0) == 1
    with pytest.raises(UserError, match="counts at most 128 tokens, but a prompt has about"):
        asked(128, 5)
