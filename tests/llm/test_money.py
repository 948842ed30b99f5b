"""Test costs, estimates, the ledger and the budget against manually computed amounts."""

import asyncio
import sqlite3
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from llm_cases import settings_for, spec_for

from pieline.core.errors import UserError
from pieline.llm.answers import Answer
from pieline.llm.costs import (
    Estimate,
    answer_usd,
    estimate,
    estimate_input_tokens,
    max_answer_tokens,
    max_attempt_usd,
    max_input_tokens,
    price,
)
from pieline.llm.estimates import (
    TaskEstimate,
    blocking_reasons,
    cap_warning,
    check,
    estimate_tasks,
    list_ending_models,
    notices,
)
from pieline.llm.parsing import Parsed
from pieline.llm.questions import Question, make_question
from pieline.llm.recordings import record
from pieline.llm.settings import LLMSettings
from pieline.llm.spending import Budget, CapReachedError, Ledger, Reserved, Spending
from pieline.llm.stopping import Stop, StoppedError
from pieline.llm.task import Ask, PaperSize, Task
from pieline.models.llm import LLMEntry

PRICES = {"input": 2, "output": 10}
PRICED = spec_for(prices=PRICES)
FREE = spec_for()
UNKNOWN = spec_for(prices=None)
MODEL = "openai/test-model"
# 37 bytes, with one two-byte letter.
TURNS = [("system", "x" * 20), ("user", "é" + "x" * 15)]


def asking(entry: LLMEntry = PRICED, /, **parameters: Any) -> Question:
    return make_question(entry, TURNS, parameters)


def answer(input_tokens: int | None, output_tokens: int | None, **fields: Any) -> Answer:
    tokens = {"input_tokens": input_tokens, "output_tokens": output_tokens}
    return Answer.model_validate({"key": "k", "text": "x", **tokens, **fields})


def test_estimated_and_maximum_tokens_of_a_question() -> None:
    # 37 / 3.6 is 10.3; each of the two turns adds 8, a chat template at most 64.
    assert estimate_input_tokens(asking()) == 11 + 2 * 8
    assert max_input_tokens(asking()) == 37 + 2 * 8 + 64
    formed = spec_for(accepts=["response_format"])
    form = {"type": "json_object"}  # 23 characters
    assert max_input_tokens(asking(formed, response_format=form)) == 37 + 23 + 2 * 8 + 64


def test_max_tokens_of_an_answer_come_from_the_request_or_the_model() -> None:
    long = spec_for(max_output_tokens=900)
    assert max_answer_tokens(asking(max_tokens=40), long) == 40
    assert max_answer_tokens(asking(), long) == 900
    assert max_answer_tokens(asking(), PRICED) is None


def test_one_attempt_costs_at_most_its_bounds() -> None:
    assert max_attempt_usd(asking(max_tokens=40), PRICED) == pytest.approx(
        (117 * 2 + 40 * 10) / 1e6
    )
    assert max_attempt_usd(asking(), FREE) == 0
    with pytest.raises(UserError, match=r"^Test model: the length of an answer is unbounded.*max_"):
        max_attempt_usd(asking(), PRICED)


def test_one_attempt_may_cost_the_highest_prices() -> None:
    prices = {**PRICES, "cached_input": 1, "cache_write": 2.5}
    entry = spec_for(prices=prices)
    assert max_attempt_usd(asking(max_tokens=40), entry) == pytest.approx(
        (117 * 2.5 + 40 * 10) / 1e6
    )
    cost = estimate([asking(max_tokens=40)], entry, likely_tokens=4)
    assert cost.usd == pytest.approx((27 * 2.5 + 40 * 10) / 1e6)
    assert cost.likely_usd == pytest.approx((27 * 2 + 4 * 10) / 1e6)


def test_cached_tokens_cost_as_input_without_a_separate_price() -> None:
    reported = answer(100, 30, cached_tokens=60, cache_write_tokens=30, reasoning_tokens=20)
    assert answer_usd(reported, PRICED) == answer_usd(answer(100, 30), PRICED) == 500 / 1e6
    # Inconsistent cache counts do not give a negative cost.
    odd = answer(10, 0, cached_tokens=60)
    assert answer_usd(odd, spec_for(prices={**PRICES, "cached_input": 1})) == 60 / 1e6


def test_prices_are_for_a_million_tokens() -> None:
    assert price(PRICED.paid, 1_000_000, 0) == 2
    assert price(PRICED.paid, 0, 100_000) == 1
    assert price(FREE.paid, 1_000_000, 1_000_000) == price(None, 1_000_000, 1_000_000) == 0


@pytest.mark.parametrize(
    ("reported", "entry", "usd"),
    [
        (answer(1000, 100), PRICED, 0.003),
        (answer(0, 100), PRICED, 0.001),
        (answer(1000, 0), PRICED, 0.002),
        (answer(None, 100), PRICED, None),
        (answer(1000, None), PRICED, None),
        (answer(1000, 100, origin="hand-written"), PRICED, 0),
        (answer(None, None), FREE, 0),
    ],
)
def test_the_cost_of_an_answer_follows_from_its_tokens(
    reported: Answer, entry: LLMEntry, usd: float | None
) -> None:
    assert answer_usd(reported, entry) == (usd if usd is None else pytest.approx(usd))


def test_an_estimate_counts_different_questions_that_are_not_recorded() -> None:
    questions = [asking(max_tokens=40, seed=seed) for seed in (1, 2, 3, 1)]
    estimated = estimate(questions, PRICED, {questions[1].key, "another"}, likely_tokens=25)
    assert estimated == Estimate(
        PRICED,
        questions=3,
        recorded=1,
        input_tokens=2 * 27,
        output_tokens=2 * 40,
        likely_output_tokens=2 * 25,
    )
    assert estimated.to_ask == 2
    assert estimated.usd == pytest.approx((54 * 2 + 80 * 10) / 1e6)
    assert estimated.likely_usd == pytest.approx((54 * 2 + 50 * 10) / 1e6)
    # The expected length is capped by the bound, and without a bound there is no maximum cost.
    assert estimate(questions, PRICED, likely_tokens=60).likely_output_tokens == 3 * 40
    open_ended = estimate([*questions, asking()], PRICED, likely_tokens=60)
    assert (open_ended.output_tokens, open_ended.likely_output_tokens) == (None, 3 * 40 + 60)
    assert open_ended.usd is None
    assert open_ended.likely_usd == pytest.approx((4 * 27 * 2 + 180 * 10) / 1e6)


@pytest.mark.parametrize(
    ("entry", "recorded", "usd"),
    [(FREE, 0, 0), (UNKNOWN, 0, None), (UNKNOWN, 1, None), (UNKNOWN, 2, 0), (PRICED, 2, 0)],
)
def test_nothing_left_to_ask_costs_nothing(
    entry: LLMEntry, recorded: int, usd: float | None
) -> None:
    estimated = Estimate(entry, 2, recorded, 10, 10, 10)
    assert (estimated.usd, estimated.likely_usd) == (usd, usd)


def test_estimates_of_one_model_add_up() -> None:
    one, other = Estimate(PRICED, 5, 1, 30, 40, 20), Estimate(PRICED, 7, 2, 300, 400, 200)
    assert one + other == Estimate(PRICED, 12, 3, 330, 440, 220)
    unbounded = Estimate(PRICED, 1, 0, 3, None, 2)
    assert (one + unbounded).output_tokens is (unbounded + one).output_tokens is None
    assert (one + unbounded).likely_output_tokens == 22


class Saying(Task):
    """Task that asks each of its texts."""

    texts: tuple[str, ...] = ("a", "b")
    likely: int = 30
    on_papers_data: int = 0

    def questions(self, entry: LLMEntry) -> list[Question]:
        return [make_question(entry, [("user", text)], {"max_tokens": 5000}) for text in self.texts]

    def likely_output_tokens(self) -> int:
        return self.likely

    def paper_size(self) -> PaperSize:
        return PaperSize(self.on_papers_data, 20, 500)

    def run(self, entry: LLMEntry, ask: Ask) -> None:
        raise NotImplementedError

    def reading(self, answer: Answer) -> Parsed[Any]:
        raise NotImplementedError


def saying(folder: Path, entry: LLMEntry = PRICED, *, file: str = "a", **fields: Any) -> Saying:
    usual = {"model": "m", "spec": entry.execution_spec(), "inputs": {}, "outputs": {}}
    return Saying.model_validate({**usual, "recordings": f"{folder}/{file}.jsonl", **fields})


def answered(task: Saying, counts: list[int | None], name: str = "old", **fields: Any) -> None:
    """Record answers with these token counts to questions that no test asks."""
    texts = tuple(f"{name} {number}" for number in range(len(counts)))
    old = task.model_copy(update={"texts": texts})
    pairs = zip(old.questions(old.entry()), counts, strict=True)
    answers = [
        (question, answer(1, count, key=question.key, **fields)) for question, count in pairs
    ]
    Path(task.recordings).parent.mkdir(exist_ok=True)
    record(Path(task.recordings), answers)


def likely_of(task: Saying, *others: Saying) -> tuple[int, tuple[str, ...]]:
    """Return the expected tokens of one answer of the first task's model, and their basis."""
    estimated = estimate_tasks([task, *others], LLMSettings())[0]
    return estimated.estimate.likely_output_tokens // estimated.estimate.to_ask, estimated.bases


def test_equal_questions_are_counted_once_for_each_file_of_answers(folder: Path) -> None:
    first = saying(folder)
    tasks = [
        first,
        saying(folder, texts=("b", "c", "c")),
        saying(folder, file="b", texts=("a",)),
        saying(folder, model="n", texts=("a",)),
    ]
    folder.mkdir()
    (question,) = tasks[-1].questions(first.entry())
    record(Path(first.recordings), [(question, answer(1, 1, key=question.key))])
    both = estimate_tasks(tasks, LLMSettings())
    assert [(each.kind, each.model) for each in both] == [("Saying", "m"), ("Saying", "n")]
    counted = both[0].estimate
    # a, b and c in one file, where a is recorded, and a in the other; one byte and one turn each.
    assert (counted.questions, counted.recorded, counted.to_ask) == (4, 1, 3)
    assert (counted.input_tokens, counted.output_tokens) == (3 * 9, 3 * 5000)
    assert counted.likely_output_tokens == 3 * 30
    assert both[0].bases == ("form",)
    assert (both[1].estimate.to_ask, both[1].bases) == (0, ())
    assert estimate_tasks(tasks, LLMSettings(mode="fresh"))[0].estimate.recorded == 0


def test_twenty_recorded_answers_predict_the_length_of_new_ones(folder: Path) -> None:
    task = saying(folder)
    answered(task, [10] * 19 + [None])
    assert likely_of(task) == (30, ("form",))
    answered(task, [24], "another")  # a mean of 10.7
    other = saying(folder, file="b", model="n")
    assert likely_of(task) == (11, ("own answers",))
    assert likely_of(other, task) == (11, ("others' answers",))
    answered(other, [5] * 21)
    assert likely_of(other, task) == (5, ("own answers",))
    # Answers in another format or of reasoning models do not count.
    longer = saying(folder, file="c", model="l", likely=31)
    assert likely_of(longer, task) == (31, ("form",))
    thinks = saying(folder, spec_for(prices=PRICES, litellm_id="gemini/m"), file="d", model="t")
    assert likely_of(thinks, task) == (1030, ("form and thinking",))


def test_hand_written_answers_do_not_predict_lengths(folder: Path) -> None:
    task = saying(folder)
    answered(task, [10] * 20, origin="hand-written")
    assert likely_of(task) == (30, ("form",))


def test_unknown_questions_are_listed_by_their_inputs(folder: Path) -> None:
    missing = {"second": f"{folder}/z", "first": f"{folder}/y"}
    here = {"third": str(folder.parent)}
    tasks = [saying(folder, inputs=missing | here), saying(folder)]
    (estimated,) = estimate_tasks(tasks, LLMSettings())
    assert isinstance(estimated, TaskEstimate)
    assert estimated.unknown == (f"{folder}/y", f"{folder}/z")
    assert estimated.estimate.questions == 2
    # Data that the run will recreate is from another configuration.
    tasks = [saying(folder, inputs=here), saying(folder, file="b")]
    assert estimate_tasks(tasks, LLMSettings())[0].estimate.questions == 4
    (estimated,) = estimate_tasks(tasks, LLMSettings(), {str(folder.parent)})
    assert (estimated.unknown, estimated.estimate.questions) == ((str(folder.parent),), 2)


def test_unknown_questions_count_as_those_of_the_papers_data_where_its_size_is_known(
    folder: Path,
) -> None:
    sized = saying(folder, inputs={"texts": f"{folder}/y"}, on_papers_data=1000)
    (one,) = estimate_tasks([sized], LLMSettings(), on_papers_data=True)
    assert (one.unknown, one.is_rough) == ((), True)
    cost = one.estimate
    assert (cost.to_ask, cost.input_tokens, cost.likely_output_tokens) == (1000, 20_000, 30_000)
    assert cost.output_tokens == 1000 * 500
    (plain,) = estimate_tasks([sized], LLMSettings())
    assert (plain.unknown, plain.is_rough) == ((f"{folder}/y",), False)
    # Another task of the model stays unknown.
    other = saying(folder, inputs={"texts": f"{folder}/z"}, file="b")
    (both,) = estimate_tasks([sized, other], LLMSettings(), on_papers_data=True)
    assert (both.unknown, both.is_rough) == ((f"{folder}/z",), True)


@pytest.mark.parametrize(
    ("cap", "spent", "warning_start"),
    [
        (0, 0, ""),
        (100.04, 0, ""),
        (
            100.03,
            0,
            "llm.max_cost_usd leaves $100.03, but the questions may cost more (likely $0.64, at"
            " most $100.04): a run stops at the cap and keeps all answers",
        ),
        (110, 9, ""),
        (110, 10, "llm.max_cost_usd leaves $100.00, but"),
    ],
)
def test_a_cap_below_the_bound_gives_a_warning(
    folder: Path, cap: float, spent: float, warning_start: str
) -> None:
    entry = spec_for(prices=COSTLY)
    if spent:
        folder.mkdir()
        ledger = Ledger(folder, spent)
        ledger.settle(ledger.reserve("m", spent), spent)
    settings = settings_for(folder, max_cost_usd=cap)
    task = saying(folder, entry)
    warning = cap_warning(
        estimate_tasks([task, saying(folder, FREE, model="f")], settings), settings
    )
    assert warning.startswith(warning_start)
    assert bool(warning) is bool(warning_start)
    assert notices([task], {"m": entry}, settings) == ([warning] if warning_start else [])
    assert folder.exists() is bool(spent)


TODAY = date(2026, 11, 21)
COSTLY = {"input": 2000, "output": 10_000}
# Two questions of 9 tokens, with answers of about 30 and at most 5000 tokens.
OTHER = "so only a gateway may serve it"
MISSING = "2 questions missing, likely $0.64, at most $100.04"


@pytest.mark.parametrize(
    ("ends", "expected_text"),
    [
        ("2027-02-20", None),
        ("2027-02-19", f"record now: m ends on 2027-02-19, in 90 days; Saying: {MISSING}"),
        ("2026-11-22", f"record now: m ends on 2026-11-22, in 1 day; Saying: {MISSING}"),
        ("2026-11-21", f"left out: m ended on 2026-11-21, {OTHER}; Saying: {MISSING}"),
        ("2025-01-31", f"left out: m ended on 2025-01-31, {OTHER}; Saying: {MISSING}"),
        (None, None),
    ],
)
def test_missing_answers_of_models_that_end_within_90_days_are_listed(
    folder: Path, ends: str | None, expected_text: str | None
) -> None:
    entry = spec_for(prices=COSTLY, ends=ends)
    task = saying(folder, entry)
    estimated = estimate_tasks([task], LLMSettings())
    assert list_ending_models(estimated, {"m": entry}, TODAY) == (
        [expected_text] if expected_text else []
    )
    # Models that ended on an unknown date and recorded answers are not listed.
    assert list_ending_models(estimated, {"m": spec_for(ends="past")}, TODAY) == []
    folder.mkdir()
    answers = [(one, answer(1, 1, key=one.key)) for one in task.questions(entry)]
    record(Path(task.recordings), answers)
    assert list_ending_models(estimate_tasks([task], LLMSettings()), {"m": entry}, TODAY) == []


def test_the_end_date_of_a_model_is_not_part_of_its_spec() -> None:
    ending = spec_for(ends="2026-12-01")
    assert ending.execution_spec() == spec_for().execution_spec()
    assert asking(ending).key == asking(spec_for()).key


def test_missing_answers_are_one_line_per_model(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    task, settings = saying(folder, UNKNOWN), settings_for(folder)
    why = "it has no prices, so its cost is unknown"
    assert blocking_reasons(UNKNOWN, settings) == [why]
    assert blocking_reasons(FREE, settings) == []
    later = {"inputs": {"x": f"{folder}/x"}}
    tasks = [task, saying(folder, UNKNOWN, file="b", **later), saying(folder, FREE, model="free")]
    two = [*tasks, saying(folder, UNKNOWN, model="n")]
    with pytest.raises(UserError, match=r"^2 language models cannot be asked for answers that are"):
        check(two, settings)
    assert capsys.readouterr().err == (
        f"m (nothing is recorded): {why}\nn (nothing is recorded): {why}\n"
    )
    folder.mkdir()
    (first, second) = task.questions(task.entry())
    record(Path(task.recordings), [(first, answer(1, 1, key=first.key))])
    with pytest.raises(UserError, match=r"^1 language model cannot be asked"):
        check(tasks, settings)
    assert "m (1 answer not recorded, nothing recorded for 1 run): " in capsys.readouterr().err
    record(Path(task.recordings), [(second, answer(1, 1, key=second.key))])
    check([task], settings)
    with pytest.raises(UserError):
        check([task], settings_for(folder, mode="fresh"))
    assert capsys.readouterr().err == f"m (all are asked again): {why}\n"
    check([saying(folder, UNKNOWN, file="c", texts=())], settings)


def test_a_model_that_has_ended_fails_the_check_only_if_a_run_was_begun(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = settings_for(folder, retired={FREE.checkpoint: "the checkpoint is retired"})
    task = saying(folder, FREE)
    check([task], settings)
    assert capsys.readouterr().err == (
        "warning: m (nothing is recorded): the checkpoint is retired\n"
    )
    folder.mkdir()
    first, second = task.questions(task.entry())
    record(Path(task.recordings), [(first, answer(1, 1, key=first.key))])
    with pytest.raises(UserError, match=r"^1 language model cannot be asked"):
        check([task], settings)
    record(Path(task.recordings), [(second, answer(1, 1, key=second.key))])
    capsys.readouterr()
    check([task, saying(folder, FREE, file="b", inputs={"x": f"{folder}/x"})], settings)
    assert capsys.readouterr().err.startswith("warning: m (nothing recorded for 1 run): ")


def test_a_ledger_sums_settled_amounts_by_model(folder: Path) -> None:
    folder.mkdir()
    ledger = Ledger(folder, 1.0)
    opened = [ledger.reserve(model, 0.125, file="f", key=model) for model in "mmnnno"]
    known = [reserved for reserved in opened if reserved]
    assert {reserved[1:] for reserved in known} == {
        (model, 0.125, "f", model) for model in ("m", "n", "o")
    }
    assert len({reserved.identity for reserved in known}) == 6
    for reserved, usd in zip(known, (0.0625, 0.03125, 0.0, None, None), strict=False):
        ledger.settle(reserved, usd)
    assert ledger.spending() == Spending(
        settled={"m": 0.09375, "n": 0},
        requests={"m": 2, "n": 3},
        reserved=[known[-1]],
        possibly_billed={"n": 0.25},
        unanswered={"n": 2},
    )
    assert (ledger.spending().held, ledger.spending().usd) == (0.125, 0.21875)
    assert ledger.open_reservations("f") == [known[-1]]
    assert ledger.open_reservations("g") == []
    assert ledger.release() == 0.125
    assert ledger.spending().reserved == []


@pytest.mark.parametrize(("usd", "fits"), [(0.5, True), (0.5 + 5e-10, True), (0.5 + 2e-9, False)])
def test_a_reservation_may_reach_but_not_exceed_the_cap(
    folder: Path, usd: float, fits: bool
) -> None:
    folder.mkdir()
    ledger = Ledger(folder, 1.0)
    settled = ledger.reserve("m", 0.5)
    assert settled
    ledger.settle(settled, 0.25)
    assert ledger.reserve("n", 0.25)
    assert (ledger.reserve("o", usd) is not None) is fits


def test_without_a_cap_nothing_is_reserved(folder: Path) -> None:
    folder.mkdir()
    assert Ledger(folder).reserve("m", 1e-6) is None
    assert Ledger(folder).reserve("m", 0.0) == Reserved(
        Ledger(folder).spending().reserved[0].identity, "m", 0.0
    )


def test_a_ledger_works_on_network_file_systems(folder: Path) -> None:
    folder.mkdir()
    path = Ledger(folder).path
    with sqlite3.connect(path) as database:
        assert database.execute("PRAGMA journal_mode").fetchall() == [("delete",)]


def budget(folder: Path, usd: float, stop: Stop, entry: LLMEntry = PRICED) -> Budget:
    folder.mkdir(exist_ok=True)
    settings = settings_for(folder, max_cost_usd=usd)
    return Budget(entry, settings, folder / "sub" / "a.jsonl", stop)


ONE = (117 * 2 + 40 * 10) / 1e6
"""Maximum cost of `asking(max_tokens=40)`."""


def test_waiting_for_the_budget_ends_with_a_stop(folder: Path) -> None:
    async def run() -> None:
        stop, question = Stop(), asking(max_tokens=40)
        spending = budget(folder, ONE, stop)
        await spending.reserve(question)
        asyncio.get_running_loop().call_later(0.01, stop.fail, ValueError())
        with pytest.raises(StoppedError):
            await asyncio.wait_for(spending.reserve(question), 10)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("earlier", "cost"),
    [
        # Each question has about 27 input tokens and at most 40 output tokens, $0.000454.
        ([0.5], "$0.5000 of $1.0000 spent; 2 of 5 questions are left to ask, for at most about"
                " $0.0009; raise llm.max_cost_usd (about 0.5009 is enough)"),
        ([0.5, "open"], "$0.7500 of $1.0000 spent, $0.2500 of it held by unfinished requests; 2 of"
                        " 5 questions are left to ask, for at most about $0.0009; raise"
                        " llm.max_cost_usd (about 0.7509 is enough)"),
        ([0.5, None], "$0.5000 of $1.0000 spent (plus at most $0.2500 possibly billed without an"
                      " answer); 2 of 5 questions are left to ask, for at most about $0.0009; raise"
                      " llm.max_cost_usd (about 0.5009 is enough)"),
    ],
)  # fmt: skip
def test_the_cap_error_states_spending_remaining_cost_and_a_sufficient_cap(
    folder: Path, earlier: list[Any], cost: str
) -> None:
    folder.mkdir()
    ledger = Ledger(folder, 1)
    for usd in earlier:
        reserved = ledger.reserve(MODEL, 0.5 if usd == 0.5 else 0.25)
        assert reserved
        if usd != "open":
            ledger.settle(reserved, usd)

    async def explained(usd: float, left: int) -> str:
        questions = [asking(max_tokens=40, seed=seed) for seed in range(left)]
        return str(budget(folder, 1, Stop()).explain(CapReachedError(usd), questions, 5))

    expected = f"Test model: the spending cap is reached: {cost}; recorded answers are not asked"
    assert asyncio.run(explained(1e-6, 2)) == f"{expected} again"
    # A single question can cost more than the estimate of all remaining ones.
    assert "for at most about $0.6000;" in asyncio.run(explained(0.6, 1))
