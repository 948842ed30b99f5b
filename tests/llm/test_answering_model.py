"""Test for each API model in models.yaml that answers of other models are detected."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fault_server import FaultServer, Reply, Request, answer
from llm_cases import KEY, questions_for, settings_for, spec_for
from provider_server import REPLIES, SERVED, ProviderServer, chat
from support import ROOT

from pieline.core.errors import UserError
from pieline.llm.answers import Answer
from pieline.llm.archive import recording_files, verify
from pieline.llm.client import ask
from pieline.llm.questions import Question, make_question
from pieline.llm.recordings import read_answers, record
from pieline.llm.spending import Ledger, Reserved
from pieline.models.llm import LLMEntry
from pieline.models.registry import load_registry

API = {
    name: entry
    for name, entry in load_registry(ROOT / "models.yaml").items()
    if isinstance(entry, LLMEntry) and entry.source == "api"
}
ENDS_OF_PATHS = {"anthropic": "/v1/messages", "gemini": ":generateContent"}


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for entry in API.values():
        monkeypatch.setenv(str(entry.api_key_env), KEY)


def wire_name(entry: LLMEntry) -> str:
    return entry.litellm_id.partition("/")[2]


def asked(folder: Path, entry: LLMEntry, mode: str = "record") -> list[Answer]:
    settings = settings_for(folder, concurrency=1, max_cost_usd=1000, mode=mode)
    return [*ask([question(entry)], entry, settings, folder / "a.jsonl", progress=False).values()]


def question(entry: LLMEntry) -> Question:
    return make_question(entry, [("user", "Any idiom?")], {"max_tokens": 9})


def usd_of_one(entry: LLMEntry) -> float:
    assert entry.paid
    return (9 * entry.paid.input + 3 * entry.paid.output) / 1e6


@pytest.mark.parametrize("name", API)
def test_model_names_of_an_entry_are_accepted(folder: Path, name: str) -> None:
    for number, (stated, allowed) in enumerate(
        [
            (wire_name(API[name]), API[name].answers_as),
            ("alias", ("other", "alias")),
            ("eu-7-alias", ("eu-*-alias",)),
            *((known, API[name].answers_as) for known in API[name].answers_as or ()),
        ]
    ):
        place = folder / str(number)
        with ProviderServer(model=stated) as server:
            entry = server.play(API[name], answers_as=allowed)
            (answer,) = asked(place, entry)
            assert asked(place, entry, "replay") == [answer]
            assert len(server.requests) == 1
        assert (answer.text, answer.returned_model) == ("hi", stated)
        assert recording_files(place) == [place / "a.jsonl"]
        assert not (place / "a.jsonl.foreign").exists()


def unnamed(entry: LLMEntry, value: str | None = None) -> dict[str, Any]:
    """Return the usual reply of the entry's provider with this model name, or without one."""
    usual = REPLIES[ENDS_OF_PATHS.get(entry.provider, "/v1/chat/completions")]
    without = {field: value for field, value in usual.items() if value != SERVED}
    field = "modelVersion" if entry.provider == "gemini" else "model"
    return without if value is None else {**without, field: value}


@pytest.mark.parametrize("how", ["longer", "shorter", "upper", "missing", "empty"])
@pytest.mark.parametrize("name", API)
def test_another_model_ends_the_run_and_its_answer_is_stored_separately(
    folder: Path, name: str, how: str
) -> None:
    asked_name = wire_name(API[name])
    stated = {
        "longer": f"{asked_name}-2",
        "shorter": asked_name[:-1],
        "upper": asked_name.swapcase(),
    }.get(how)
    reply = {"missing": unnamed(API[name]), "empty": unnamed(API[name], "")}.get(how)
    path = folder / "a.jsonl"
    kept = folder / "a.jsonl.foreign"
    with ProviderServer(reply, stated) as server:
        entry = server.play(API[name])
        # The second run sends no paid request.
        for _ in range(2):
            with pytest.raises(UserError) as ended:
                asked(folder, entry)
            assert str(ended.value).startswith(
                f"{kept}: requested {asked_name}, answered by {stated or 'an unnamed model'}; "
            )
            assert "answers_as" in str(ended.value)
            assert len(server.requests) == 1
        assert path.read_bytes() == b""
        assert recording_files(folder) == [path]
        (answer,) = read_answers(kept).values()
        assert (answer.key, answer.returned_model) == (question(entry).key, stated)
        assert verify(kept) == []
        spending = Ledger(folder).spending()
        assert spending.settled == pytest.approx({entry.checkpoint: usd_of_one(entry)})
        assert (spending.requests, spending.reserved) == ({entry.checkpoint: 1}, [])
        with pytest.raises(UserError, match=r"1 answer of .* is not recorded"):
            asked(folder, entry, "replay")

        # Once the entry lists the name, the paid answers become recordings.
        entry = server.play(API[name], answers_as=(asked_name, stated or "*"))
        assert asked(folder, entry) == [answer]
        assert len(server.requests) == 1
        assert not kept.exists()
        assert verify(path) == []


@pytest.mark.parametrize("mode", ["record", "replay"])
@pytest.mark.parametrize("name", API)
def test_a_recorded_answer_of_another_model_is_rejected(folder: Path, name: str, mode: str) -> None:
    path, key = folder / "a.jsonl", question(API[name]).key

    def recorded(stated: str | None) -> None:
        path.unlink(missing_ok=True)
        answered = Answer(key=key, text="hi", returned_model=stated)
        record(path, [(question(API[name]), answered)])

    recorded("another")
    with pytest.raises(
        UserError, match=f"a.jsonl: requested {wire_name(API[name])}, answered by another; "
    ):
        asked(folder, API[name], mode)
    # Old recordings may not name their model.
    for stated in (None, wire_name(API[name])):
        recorded(stated)
        assert [answer.text for answer in asked(folder, API[name], mode)] == ["hi"]


def test_a_filtered_request_is_not_an_answer_of_another_model(folder: Path) -> None:
    error = {"message": "content management policy", "code": "content_policy_violation"}
    body = json.dumps({"error": {**error, "type": "invalid_request_error"}}).encode()
    with FaultServer(lambda _: Reply(400, body)) as server:
        spec = spec_for(server.api_base)
        (answer,) = ask(
            questions_for(spec, 1), spec, settings_for(folder), folder / "a.jsonl", progress=False
        ).values()
    assert (answer.finish_reason, answer.returned_model) == ("content_filter", None)


PRICES = {"input": 10.0, "output": 20.0}
EACH = 10 * 10e-6 + 5 * 20e-6


def changing(first: int) -> Callable[[Request], Reply]:
    """Return a server behavior in which another model answers from request `first` on."""
    seen: list[Request] = []

    def behave(request: Request) -> Reply:
        seen.append(request)
        model = "test-model" if len(seen) < first else "successor"
        return answer(f"echo {request.text}", model=model, delay=0.02)

    return behave


@pytest.mark.parametrize("concurrency", [1, 8])
@pytest.mark.parametrize("mode", ["record", "fresh"])
def test_after_a_change_of_model_all_answers_are_kept_and_few_are_wasted(
    folder: Path, monkeypatch: pytest.MonkeyPatch, concurrency: int, mode: str
) -> None:
    path = folder / ("a.jsonl" if mode == "record" else "a.jsonl.fresh")
    apart = path.with_name(f"{path.name}.foreign")
    settle, kept = Ledger.settle, []

    def watched(ledger: Ledger, reserved: Reserved, usd: float | None) -> None:
        # Answers are written first, so that a killed run loses none that the ledger counts.
        kept.append(reserved.key in {**read_answers(path), **read_answers(apart)})
        settle(ledger, reserved, usd)

    monkeypatch.setattr(Ledger, "settle", watched)
    with FaultServer(changing(5)) as server:
        spec = spec_for(server.api_base, prices=PRICES)
        settings = settings_for(folder, concurrency=concurrency, max_cost_usd=1, mode=mode)
        questions = questions_for(spec, 40)
        for _ in range(2):
            with pytest.raises(UserError, match="requested test-model, answered by successor"):
                ask(questions, spec, settings, folder / "a.jsonl", progress=False)
        count = len(server.requests)
        assert 5 <= count <= 4 + concurrency
        assert server.answered.total() == count
    own, foreign = read_answers(path), read_answers(apart)
    assert {answer.returned_model for answer in own.values()} == {"test-model"}
    assert {answer.returned_model for answer in foreign.values()} == {"successor"}
    assert (len(own), len(foreign)) == (4, count - 4)
    assert kept == [True] * count
    spending = Ledger(folder).spending()
    assert spending.settled == pytest.approx({spec.checkpoint: count * EACH})
    assert (spending.requests, spending.reserved) == ({spec.checkpoint: count}, [])


def test_shell_patterns_of_model_names() -> None:
    def allows(name: str | None, *allowed: str, **fields: Any) -> bool:
        return spec_for(answers_as=allowed or None, **fields).accepts_model_name(name)

    assert allows("test-model")
    assert not allows("Test-Model")
    assert not allows("test-model", "other")
    assert not any(map(allows, ("", None, "test-model-2")))
    assert allows("gpt-4o-2024-08-06", "gpt-4o-2024-??-??")
    assert not allows("gpt-4o-mini", "gpt-4o-2024-??-??")
    assert allows(None, "*") and allows("anything", "*")
    # A name with brackets matches itself, although it is also a pattern.
    assert allows("m[1]", litellm_id="openai/m[1]")
    local = {"source": "folder", "path": "m.gguf", "api_base": None, "api_key_env": None}
    local |= {"prices": None}
    assert allows("anything", **local) and allows(None, **local)
    assert not allows("anything", "m", **local)


def test_a_server_that_names_no_model_can_be_allowed(folder: Path) -> None:
    with ProviderServer({**chat(), "model": None}) as server:
        spec = spec_for(f"{server.address}/v1", answers_as=["*"])
        answers = ask(
            questions_for(spec, 2), spec, settings_for(folder), folder / "a.jsonl", progress=False
        )
    assert [each.returned_model for each in answers.values()] == [None, None]
