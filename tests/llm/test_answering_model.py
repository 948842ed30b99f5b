"""Test for each API model in models.yaml that answers of other models are detected."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fault_server import FaultServer, Reply, Request, answer
from llm_cases import KEY, questions_for, settings_for, spec_for
from provider_server import REPLIES, SERVED, ProviderServer
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
    entry.provider: entry
    for entry in load_registry(ROOT / "models.yaml").values()
    if isinstance(entry, LLMEntry) and entry.source == "api"
}
"""One model of each provider."""
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
@pytest.mark.parametrize(
    ("stated", "allowed"), [(None, None), ("alias", ("other", "alias")), ("eu-7-a", ("eu-*-a",))]
)
def test_model_names_of_an_entry_are_accepted(
    folder: Path, name: str, stated: str | None, allowed: tuple[str, ...] | None
) -> None:
    with ProviderServer(model=stated) as server:
        entry = server.play(API[name], answers_as=allowed)
        (answer,) = asked(folder, entry)
        assert asked(folder, entry, "replay") == [answer]
        assert len(server.requests) == 1
    assert (answer.text, answer.returned_model) == ("hi", stated or wire_name(entry))
    assert recording_files(folder) == [folder / "a.jsonl"]
    assert not (folder / "a.jsonl.foreign").exists()


def unnamed(entry: LLMEntry, value: str | None = None) -> dict[str, Any]:
    """Return the usual reply of the entry's provider with this model name, or without one."""
    usual = REPLIES[ENDS_OF_PATHS.get(entry.provider, "/v1/chat/completions")]
    without = {field: value for field, value in usual.items() if value != SERVED}
    field = "modelVersion" if entry.provider == "gemini" else "model"
    return without if value is None else {**without, field: value}


@pytest.mark.parametrize("how", ["longer", "missing", "empty"])
@pytest.mark.parametrize("name", API)
def test_another_model_ends_the_run_and_its_answer_is_stored_separately(
    folder: Path, name: str, how: str
) -> None:
    asked_name = wire_name(API[name])
    stated = f"{asked_name}-2" if how == "longer" else None
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
def test_a_recorded_answer_of_another_model_is_rejected(folder: Path, mode: str) -> None:
    path, entry = folder / "a.jsonl", API["openai"]
    stored = Answer(key=question(entry).key, text="hi")
    record(path, [(question(entry), stored.model_copy(update={"returned_model": "another"}))])
    message = f"a.jsonl: requested {wire_name(entry)}, answered by another; "
    with pytest.raises(UserError, match=message):
        asked(folder, entry, mode)
    path.unlink()
    # Old recordings may not name their model.
    record(path, [(question(entry), stored)])
    assert asked(folder, entry, mode) == [stored]


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
