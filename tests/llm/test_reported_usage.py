"""Test how answers with missing, impossible or too high token counts are booked."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from fault_server import FaultServer, Request, answer
from llm_cases import ask_server, questions_for, settings_for, spec_for

from pieline.core.errors import UserError
from pieline.llm.answers import Answer
from pieline.llm.costs import MOST_TOKENS, answer_usd, max_attempt_usd
from pieline.llm.recordings import read_answers, record
from pieline.llm.spending import Budget, Ledger, remaining_usd
from pieline.llm.stopping import Stop

PRICES = {"input": 1, "output": 10}
MODEL = "openai/test-model"
NORMAL = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
NORMAL_USD = (10 * 1 + 5 * 10) / 1e6


def served(folder: Path, usage: Any, capsys: pytest.CaptureFixture[str]) -> str:
    """Ask four questions, the second of which has this usage; return what is printed."""

    def behave(request: Request) -> Any:
        return answer("yes", usage=usage if request.text == "q1" else NORMAL)

    priced = {"entry": {"prices": PRICES}, "max_cost_usd": 0.01}
    with FaultServer(behave) as server:
        ask_server(folder, server.api_base, 4, concurrency=1, progress=True, **priced)
    return capsys.readouterr().err


def most() -> float:
    spec = spec_for(prices=PRICES)
    return max_attempt_usd(questions_for(spec, 2)[1], spec)


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": 10, "completion_tokens": 10**15, "total_tokens": 10**15 + 10},
        {"prompt_tokens": 10**15, "completion_tokens": 5, "total_tokens": 10**15 + 5},
        {"prompt_tokens": MOST_TOKENS + 1, "completion_tokens": 5, "total_tokens": 5},
    ],
)
def test_impossible_counts_are_booked_at_the_maximum_of_the_request(
    folder: Path, usage: dict[str, int], capsys: pytest.CaptureFixture[str]
) -> None:
    printed = served(folder, usage, capsys)
    spending = Ledger(folder).spending()
    booked = 3 * NORMAL_USD + most()
    assert (spending.usd, spending.excess) == (pytest.approx(booked), {})
    assert (
        "Test model: 1 answer with impossible token counts (up to"
        f" {max(usage['prompt_tokens'], usage['completion_tokens'])}), booked at the maximum of"
        f" their requests (${most():.4f})\n"
    ) in printed
    assert f"out, ${booked:.4f}\n" in printed
    # The recording keeps what the provider reported.
    reported = {answer.input_tokens for answer in read_answers(folder / "a.jsonl").values()}
    assert reported == {10, usage["prompt_tokens"]}


@pytest.mark.parametrize(
    "usage", [None, {}, {"prompt_tokens": 10, "completion_tokens": -5, "total_tokens": 5}]
)
def test_the_summary_and_the_ledger_agree_without_token_counts(
    folder: Path, usage: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    printed = served(folder, usage, capsys)
    booked = 3 * NORMAL_USD + most()
    assert Ledger(folder).spending().usd == pytest.approx(booked)
    assert f"out, ${booked:.4f}\n" in printed
    assert (
        "Test model: 1 answer without token counts, booked at the maximum of their requests"
        f" (${most():.4f})"
    ) in printed


def test_a_cost_above_the_maximum_uses_up_the_cap(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # 40,000 tokens for $0.40, although the request allows 20 and the cap is $0.01.
    usage = {"prompt_tokens": 10, "completion_tokens": 40_000, "total_tokens": 40_010}
    with pytest.raises(UserError) as error:
        served(folder, usage, capsys)
    spending = Ledger(folder).spending()
    excess = 0.40001 - most()
    assert spending.usd == pytest.approx(NORMAL_USD + most())
    assert spending.usd <= 0.01
    assert spending.excess == {MODEL: pytest.approx(excess)}
    assert f"(plus ${excess:.4f} reported above the maximum of requests); 2 of 4" in str(
        error.value
    )
    assert (
        "Test model: 1 answer reported to cost more than the maximum of their requests:"
        f" ${most():.4f} booked, ${excess:.4f} more counted toward the cap"
    ) in capsys.readouterr().err
    assert remaining_usd(settings_for(folder, max_cost_usd=0.01)) == 0
    assert len(read_answers(folder / "a.jsonl")) == 2


def test_a_small_excess_within_the_cap_stops_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 60, "total_tokens": 70}
    printed = served(folder, usage, capsys)
    assert "1 answer reported to cost more" in printed
    assert len(read_answers(folder / "a.jsonl")) == 4
    assert sum(Ledger(folder).spending().excess.values()) == pytest.approx(610 / 1e6 - most())


def test_a_long_limit_of_the_entry_raises_what_is_possible() -> None:
    counted = Answer(key="k", text="x", input_tokens=10, output_tokens=MOST_TOKENS + 10)
    assert answer_usd(counted, spec_for(prices=PRICES)) is None
    long = spec_for(prices=PRICES, max_output_tokens=MOST_TOKENS * 2)
    assert answer_usd(counted, long) == pytest.approx((10 + 10 * (MOST_TOKENS + 10)) / 1e6)


def test_a_recovered_reservation_is_settled_by_the_same_rule(folder: Path) -> None:
    spec = spec_for(prices=PRICES)
    questions = questions_for(spec, 2)
    folder.mkdir()
    ledger = Ledger(folder, 1)
    for question in questions:
        ledger.reserve(MODEL, max_attempt_usd(question, spec), file="a.jsonl", key=question.key)
    counts = (40_000, 10**15)
    pairs = [
        (item, Answer(key=item.key, text="x", input_tokens=10, output_tokens=count))
        for item, count in zip(questions, counts, strict=True)
    ]
    record(folder / "a.jsonl", pairs)

    async def begin() -> None:
        Budget(spec, settings_for(folder, max_cost_usd=1), folder / "a.jsonl", Stop())

    asyncio.run(begin())
    spending = ledger.spending()
    assert spending.settled == {MODEL: pytest.approx(2 * most())}
    assert spending.excess == {MODEL: pytest.approx(0.40001 - most())}
