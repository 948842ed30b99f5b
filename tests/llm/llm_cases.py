"""Models, settings and questions for the tests of pieline.llm."""

import asyncio
import multiprocessing
import os
from collections.abc import Callable, Mapping
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from types import MappingProxyType
from typing import Any

import httpx

from pieline.core.packing import pack
from pieline.llm.answers import Answer
from pieline.llm.archive import recording_files
from pieline.llm.client import ask
from pieline.llm.questions import Question, make_question
from pieline.llm.recordings import recording
from pieline.llm.settings import LLMSettings
from pieline.models.llm import LLMEntry

KEY = "sk-Zq7/very+secret==key"
SYSTEM = "You mark potentially idiomatic expressions. " * 5
Respond = Callable[..., list[httpx.Request]]
"""Type of the fixture `respond`."""
SOURCE = Path(__file__).parents[2] / "src"


def spec_for(api_base: str | None = "http://127.0.0.1:1/v1", **fields: Any) -> LLMEntry:
    """Return an entry for a model on a test server."""
    entry = {
        "kind": "llm",
        "label": "Test model",
        "licence": "none",
        "source": "api",
        "litellm_id": "openai/test-model",
        "provider": "tests",
        "api_base": api_base,
        "api_key_env": "TEST_LLM_KEY",
        "prices": "free",
        "accepts": ["temperature", "max_tokens", "seed"],
    }
    return LLMEntry.model_validate({**entry, **fields})


def settings_for(folder: Path, *, concurrency: int = 8, **fields: Any) -> LLMSettings:
    """Return settings with fast retries."""
    limits = fields.pop("limits", {})
    entry = {
        "recordings_folder": folder,
        "timeout_s": 60,  # the first request of a process loads modules of litellm
        "backoff_s": 0.01,
        "providers": {"default": {"concurrency": concurrency, **limits}},
    }
    return LLMSettings.model_validate({**entry, **fields})


def questions_for(spec: LLMEntry, count: int, prefix: str = "q") -> list[Question]:
    """Return `count` different questions named `<prefix>0`, ..."""
    return [
        make_question(
            spec, [("user", f"{prefix}{i}")], {"max_tokens": 20, "seed": 1}, name=f"{prefix}{i}"
        )
        for i in range(count)
    ]


def ask_server(
    folder: Path,
    api_base: str | None,
    count: int = 1,
    *,
    entry: Mapping[str, Any] = MappingProxyType({}),
    progress: bool = False,
    **settings: Any,
) -> list[Answer]:
    """Ask a test server `count` questions, record the answers in `a.jsonl`, and return them."""
    spec, path = spec_for(api_base, **entry), folder / "a.jsonl"
    questions = questions_for(spec, count)
    return [*ask(questions, spec, settings_for(folder, **settings), path, progress).values()]


def send(question: Question, spec: LLMEntry | None = None) -> Answer:
    """Send a question once."""
    from pieline.llm.transport import Transport

    asked = spec or spec_for()

    async def run() -> Answer:
        transport = Transport(asked, api_key=KEY, api_base=asked.api_base or "", timeout_s=5)
        try:
            return await transport.send(question)
        finally:
            await transport.close()

    return asyncio.run(run())


def start(run: Callable[..., None], *arguments: Any) -> ForkServerProcess:
    """Run a function in a separate process that has already loaded litellm (see `forked`)."""
    paths = os.pathsep.join([str(SOURCE), str(Path(__file__).parent)])
    os.environ["PYTHONPATH"] = paths
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["forked"])
    process = context.Process(target=run, args=arguments)
    process.start()
    return process


def pair(number: int, text: str | None = "yes", **fields: object) -> tuple[Question, Answer]:
    """Return a question with a system prompt, and its answer."""
    question = make_question(
        spec_for(), [("system", SYSTEM), ("user", f"sentence {number}\u2028é")], {"seed": number}
    )
    return question, Answer.model_validate({"key": question.key, "text": text, **fields})


def write(path: Path, *pairs: tuple[Question, Answer]) -> None:
    """Append answers in this order."""
    with recording(path) as recorder:
        recorder.append(pairs)


def pack_folder(folder: Path, archive: Path) -> None:
    """Pack a folder of recordings."""
    files = recording_files(folder)
    pack(archive, ((path.relative_to(folder).as_posix(), path.read_bytes()) for path in files))
