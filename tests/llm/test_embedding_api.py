"""Test that a provider's vectors are recorded and paid once, despite failures and kills."""

import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fault_server import ASKED, FaultServer, Reply, Request
from llm_cases import settings_for

from pieline.core.errors import UserError
from pieline.core.records import save_jsonl, validated
from pieline.llm.archive import verify
from pieline.llm.client import ask
from pieline.llm.estimates import check, estimate_tasks
from pieline.llm.spending import Ledger
from pieline.models.api_embedder import ApiEmbedderEntry
from pieline.models.registry import ENTRY
from pieline.studies.idiolink.predictions.api_embedding import Embedding
from pieline.studies.idiolink.records import Document, Query

CONCURRENCY = 8
PRICE = 20.0
"""US dollars per million tokens."""


def vector_of(text: str) -> list[float]:
    """Return the server's vector for a text."""
    return np.random.default_rng(zlib.crc32(text.encode())).standard_normal(24).tolist()


def embedded(request: Request, **fields: Any) -> Reply:
    """Return a response in OpenAI's format, with one token per character."""
    data = [{"object": "embedding", "index": 0, "embedding": vector_of(request.text)}]
    usage = {"prompt_tokens": len(request.text), "total_tokens": len(request.text)}
    body = {"object": "list", "model": ASKED, "data": data, "usage": usage}
    return Reply(body=json.dumps(body | fields).encode(), delay=0.01)


def entry_for(api_base: str, **fields: Any) -> ApiEmbedderEntry:
    """Return an entry for models.yaml."""
    defaults = {
        "kind": "embedder", "source": "api", "label": "API", "licence": "none",
        "litellm_id": "openai/embed", "provider": "tests", "api_base": api_base,
        "api_key_env": "TEST_LLM_KEY", "prices": {"input": PRICE, "output": 0},
        "trained_with_instructions": False, "passage_prefix": "d: ",
    }  # fmt: skip
    entry = validated(ENTRY, defaults | fields, where="entry", hint="")
    assert isinstance(entry, ApiEmbedderEntry)
    return entry


def document(number: int, **fields: str) -> dict[str, Any]:
    """Return a document of IdioLink."""
    shared = {"pie": "break the ice", "span": "ice", "subject": "Food", "is_gold": False}
    return (
        shared
        | {"id": f"d{number}", "sentence": f"Ice {number} or ice.", "usage": "sense"}
        | fields
    )


def task_for(folder: Path, entry: ApiEmbedderEntry, count: int) -> Embedding:
    """Return the task of embedding this many documents."""
    texts = folder / "documents.jsonl"
    save_jsonl(texts, [Document.model_validate(document(n)) for n in range(count)])
    return Embedding(
        model="api",
        spec=entry.execution_spec(),
        inputs={"texts": str(texts)},
        outputs={"vectors": str(folder / "out.npy")},
        recordings=str(folder / "recordings/documents.jsonl"),
        texts="documents",
    )


def embed(task: Embedding, folder: Path, **settings: Any) -> None:
    """Run a task like its job."""
    limits = {"concurrency": CONCURRENCY, "max_cost_usd": 1}
    defaults = settings_for(folder / "recordings", **limits | settings)
    defaults.recordings_folder.mkdir(exist_ok=True)
    entry = task.entry()
    task.run(entry, lambda each: ask(each, entry, defaults, task.recordings, progress=False))


def expected(count: int) -> bytes:
    """Return the expected vectors of this many documents."""
    texts = (f"d: {document(number)['sentence']}" for number in range(count))
    return np.array([vector_of(text) for text in texts], dtype=np.float32).tobytes()


def spent(folder: Path) -> float:
    return sum(Ledger(folder / "recordings").spending().settled.values())


def price(count: int) -> float:
    return sum(len(f"d: {document(n)['sentence']}") for n in range(count)) * PRICE / 1e6


def faulty(request: Request) -> Reply:
    """Reply with rate limits, server errors, broken bodies, missing vectors, and answers."""
    faults: dict[int, Callable[[], Reply]] = {
        0: lambda: Reply(429, b"{}", {"Retry-After": "0.05"}),
        1: lambda: Reply(500, b"internal error"),
        2: lambda: Reply(200, embedded(request).body[:40]),
        3: lambda: embedded(request, data=[]),
        4: lambda: embedded(request, data=[{"object": "embedding", "index": 0, "embedding": []}]),
        5: lambda: Reply(fault="cut", body=embedded(request).body),
        6: lambda: embedded(request, data=None),
        7: lambda: embedded(request, error={"message": "no"}, data=None),
    }
    return faults.get(draw(request), lambda: embedded(request))()


def draw(request: Request) -> int:
    return zlib.crc32(f"{request.text} {request.attempt}".encode()) % 20


def test_faults_lose_no_vector_and_cost_nothing_twice(folder: Path) -> None:
    with FaultServer(faulty) as server:
        entry = entry_for(server.api_base, body={"dimensions": 24})
        task = task_for(folder, entry, 100)
        embed(task, folder, max_attempts=12)
        bodies = {json.dumps(request.body) for request in server.requests}
        assert len(server.requests) > 110
        assert server.most_in_flight <= CONCURRENCY
    text = f"d: {document(0)['sentence']}"
    assert json.dumps({"model": "embed", "input": [text], "dimensions": 24}) in bodies
    vectors = np.load(folder / "out.npy")
    assert (vectors.dtype, vectors.tobytes()) == (np.float32, expected(100))
    # Responses without a vector whose tokens are counted are billed, too.
    failed = [len(request.text) for request in server.requests if draw(request) in (3, 4, 6, 7)]
    assert failed and spent(folder) == pytest.approx(price(100) + sum(failed) * PRICE / 1e6)
    assert verify(Path(task.recordings)) == []
    # Recorded vectors give the same bytes without a server.
    before = (folder / "out.npy").read_bytes()
    embed(task, folder, mode="replay")
    assert (folder / "out.npy").read_bytes() == before
    # Different parameters give a different question.
    other = task_for(folder, entry_for(server.api_base, body={"dimensions": 12}), 100)
    with pytest.raises(UserError, match="100 answers of api are not recorded"):
        embed(other, folder, mode="replay")


def test_vectors_of_another_model_are_rejected(folder: Path) -> None:
    with FaultServer(lambda request: embedded(request, model="other")) as server:
        task = task_for(folder, entry_for(server.api_base), 20)
        with pytest.raises(UserError, match="requested embed, answered by other"):
            embed(task, folder)
        assert not (folder / "out.npy").exists()


def test_vectors_of_different_lengths_are_an_error(folder: Path) -> None:
    def behave(request: Request) -> Reply:
        vector = [1.0] * (3 if "1" in request.text else 2)
        return embedded(request, data=[{"object": "embedding", "index": 0, "embedding": vector}])

    with FaultServer(behave) as server:
        task = task_for(folder, entry_for(server.api_base), 2)
        with pytest.raises(UserError, match=r"documents\.jsonl: d1: the answer is not a vector"):
            embed(task, folder)


def test_queries_are_embedded_as_text(folder: Path) -> None:
    query = Query.model_validate(document(1, usage="literal"))
    save_jsonl(folder / "queries.jsonl", [query])
    entry = entry_for("http://127.0.0.1:1/v1", query_prefix="q: ")
    task = task_for(folder, entry, 1)
    inputs = {"texts": str(folder / "queries.jsonl")}
    for mode, start_of_text in (("sentence", "q: Ice 1"), ("instruction_sentence", "Instruct: B")):
        own = task.model_copy(update={"inputs": inputs, "texts": mode})
        (question,) = own.questions(entry)
        assert question.messages[0].content.startswith(start_of_text)
        assert question.messages[0].content.endswith("Ice 1 or ice.")


def test_estimate_and_check_include_api_embedders(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = task_for(folder, entry_for("http://127.0.0.1:1/v1"), 10)
    settings = settings_for(folder / "recordings", max_cost_usd=1)
    (estimated,) = estimate_tasks([task], settings)
    assert (estimated.estimate.to_ask, estimated.estimate.output_tokens) == (10, 0)
    assert 0 < (estimated.estimate.usd or 0) == estimated.estimate.likely_usd
    monkeypatch.delenv("TEST_LLM_KEY")
    with pytest.raises(UserError, match="cannot be asked for answers that are not recorded"):
        check([task], settings)
