"""The scripted provider: formats, forms of answers, and the bill."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import ROOT

from pieline.core.errors import UserError
from pieline.llm.answers import Answer
from pieline.llm.client import ask
from pieline.llm.idioms import parse_idioms
from pieline.llm.questions import make_question
from pieline.llm.settings import LLMSettings
from pieline.models.llm import LLMEntry
from pieline.models.registry import load_registry
from pieline.studies.idiots.predictions import read_prediction
from rehearsal.answers import LISTS, OBJECTS, answer
from rehearsal.bill import BILL, Reconciled, reconcile
from rehearsal.corpora import write_corpora
from rehearsal.formats import api_bases
from rehearsal.provider import CORPORA, ScriptedProvider, start_provider

REGISTRY = load_registry(ROOT / "models.yaml")
MODELS = ("gpt-4o", "claude-4-sonnet", "gemini-2.5-pro", "llama-4-scout")
"""One model per format; none is treated as retired."""
COUNT = 8
Form = Callable[[Any], str]


def received(text: str) -> Answer:
    return Answer(key="", text=text, finish_reason="stop")


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpora")
    write_corpora(ROOT / "data/sample", folder, 1)
    return folder


def entry_of(name: str) -> LLMEntry:
    entry = REGISTRY[name]
    assert isinstance(entry, LLMEntry)
    return entry.model_copy(update={"answers_from": ["http://127.0.0.1:*"]})


@pytest.fixture
def standins(tmp_path: Path, corpora: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder of stand-ins."""
    (tmp_path / CORPORA).symlink_to(corpora)
    for name in MODELS:
        monkeypatch.setenv(str(entry_of(name).api_key_env), "any")
    return tmp_path


def ask_all(standins: Path, name: str) -> list[Answer]:
    """Ask a new provider `COUNT` questions, unless their answers are recorded."""
    settings = LLMSettings(
        recordings_folder=standins / "recordings",
        api_bases=api_bases(start_provider(ScriptedProvider(standins, REGISTRY), 0)),
        max_cost_usd=1000,
    )
    entry, path = entry_of(name), standins / "recordings" / f"{name}.jsonl"
    texts = [f"Sentence: Guest {number} broke the ice, über uns." for number in range(COUNT)]
    wanted = {"seed": 7, "max_tokens": 200}
    questions = [
        make_question(entry, [("system", "Name the idioms."), ("user", text)], wanted)
        for text in texts
    ]
    return [*ask(questions, entry, settings, path, progress=False).values()]


def reconciled(standins: Path) -> Reconciled:
    (item,) = reconcile(standins / BILL, standins / "recordings")
    return item


def drop_last_line(path: Path) -> None:
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))


@pytest.mark.parametrize("name", MODELS)
def test_answers_of_every_format_are_parsed_and_billed_once(name: str, standins: Path) -> None:
    answers = ask_all(standins, name)
    found = [idiom for item in answers for idiom in parse_idioms(item).value or ()]
    assert "broke the ice" in found
    assert len({item.response_id for item in answers}) == COUNT
    assert {item.finish_reason for item in answers} == {"stop"}
    assert ask_all(standins, name) == answers  # recorded
    item = reconciled(standins)
    assert (item.billed, item.recorded, item.faults) == (COUNT, COUNT, [])
    assert item.ledger_usd == pytest.approx(item.billed_usd)
    assert item.billed_usd > 0


def test_a_question_that_is_asked_again_is_reported(standins: Path) -> None:
    ask_all(standins, "gpt-4o")
    drop_last_line(standins / "recordings/gpt-4o.jsonl")
    [lost] = reconciled(standins).faults[:1]
    assert lost == "1 request billed but not recorded, 0 killed or failed"
    ask_all(standins, "gpt-4o")
    again, paid = reconciled(standins).faults
    assert again == lost
    assert "billed for recorded answers" in paid


def test_an_answer_that_is_not_billed_is_reported(standins: Path) -> None:
    ask_all(standins, "gpt-4o")
    drop_last_line(standins / BILL)
    assert "1 recorded answer not billed" in reconciled(standins).faults


def test_a_port_in_use_is_reported(standins: Path) -> None:
    provider = ScriptedProvider(standins, REGISTRY)
    port = int(start_provider(provider, 0).rpartition(":")[2])
    with pytest.raises(UserError, match="stop the other rehearsal"):
        start_provider(provider, port)


@pytest.mark.parametrize("form", LISTS)
def test_every_form_of_a_list_is_parsed(form: Form) -> None:
    for idioms in (["a b"], []):
        assert parse_idioms(received(form(idioms))).value == idioms


@pytest.mark.parametrize("form", OBJECTS)
def test_every_form_of_an_object_is_parsed(form: Form) -> None:
    for has_idiom in (True, False):
        fields = {"hasIdiom": has_idiom, "idiom": "a b", "meaning": "m", "explanation": "e"}
        prediction = read_prediction("s", received(form(fields)))
        assert prediction.outcome in ("ok", "repaired")
        assert prediction.has_idiom == has_idiom


def test_answers_are_drawn_by_model_and_seed() -> None:
    turns = ("Name the idioms.", "Sentence: They broke the ice.")
    drawn = [
        answer(model, turns, seed, ["broke the ice"]) for model in ("a", "b") for seed in range(20)
    ]
    assert drawn == [
        answer(model, turns, seed, ["broke the ice"]) for model in ("a", "b") for seed in range(20)
    ]
    assert drawn[:20] != drawn[20:]
    named = [tuple(parse_idioms(received(text)).value or ()) for text in drawn]
    assert {("broke the ice",), ()} < set(named)


def test_a_neutral_variant_contains_the_sentence() -> None:
    question = 'Sentence: They broke the ice.\nWrite 1 text.\n{"variants": ["..."]}'
    text = answer("a", ("Write.", question), 1, [])
    assert json.loads(text)["variants"][0].endswith("They broke the ice.")
