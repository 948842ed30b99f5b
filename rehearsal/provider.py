"""Scripted provider: one server that answers and bills like all providers, and in place of vLLM.

    python -m rehearsal.provider WEIGHTS --host HOST --port PORT --served-model-name NAME ...

runs it in place of vLLM. A token has 4 characters. The bill has one line per answered request,
which is written before the reply.
"""

import argparse
import os
import socket
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from threading import Thread

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from pieline.core.errors import UserError
from pieline.core.files import canonical_json, sha256_of
from pieline.core.records import load_jsonl
from pieline.llm.costs import price
from pieline.models.llm import LLMEntry
from rehearsal.answers import answer, known_expressions
from rehearsal.bill import BILL, Charge
from rehearsal.formats import PROVIDERS, CountedAnswer, Provider

STANDINS = "PIELINE_REHEARSAL"
"""Environment variable with the folder of the stand-ins."""
CORPORA = "rehearsal"
"""Name of the folder of the corpora among the stand-ins, which marks all tables of the run."""


class ScriptedProvider:
    """Answers to the requests of all providers, and their bill.

    Args:
        standins: Folder with the corpora, and of the bill.
        models: Entries of models.yaml, with the prices.
    """

    def __init__(self, standins: Path, models: Mapping[str, object]) -> None:
        entries = [entry for entry in models.values() if isinstance(entry, LLMEntry)]
        self._prices = {entry.litellm_id: entry.paid for entry in entries if entry.source == "api"}
        self._expressions = known_expressions(standins / CORPORA)
        self._bill = standins / BILL
        charges = load_jsonl(self._bill, Charge) if self._bill.exists() else []
        self._asked = Counter(charge.question for charge in charges)

    async def answer(self, request: Request) -> Response:
        """Answer and bill a request to one of the providers."""
        base = next(base for base in PROVIDERS if request.url.path.startswith(f"{base}/"))
        return await self._reply(request, PROVIDERS[base])

    async def answer_locally(self, request: Request) -> Response:
        """Answer a request to a served model, which costs nothing."""
        return await self._reply(request, Provider())

    async def _reply(self, request: Request, provider: Provider) -> Response:
        path, body = request.url.path, await request.json()
        asked = provider.asked(path, body)
        text = answer(asked.model, asked.turns, asked.seed, self._expressions)
        # Some models have no seed, so a question may be asked several times.
        question = sha256_of(canonical_json([path, body]).encode())
        number = sha256_of(f"{question} {self._asked[question]}".encode())[:24]
        self._asked[question] += 1
        tokens = sum(map(_tokens, asked.turns)), _tokens(text)
        usd = price(self._prices.get(f"{provider.name}/{asked.model}"), *tokens)
        charge = Charge(id=number, model=asked.model, question=question, usd=usd)
        with self._bill.open("a", encoding="utf-8") as stream:
            stream.write(charge.model_dump_json() + "\n")
        return JSONResponse(provider.reply(CountedAnswer(asked.model, number, text, *tokens)))


def start_provider(provider: ScriptedProvider, port: int) -> str:
    """Serve on the loopback interface, in a thread that ends with this process.

    Args:
        provider: Provider.
        port: Port; 0 for any free port.

    Returns:
        URL of the server without a path.

    Raises:
        UserError: Another process uses the port.
    """
    try:
        listening = socket.create_server(("127.0.0.1", port), backlog=1024)
    except OSError as error:
        hint = "stop the other rehearsal in this folder"
        raise UserError(f"cannot listen at port {port}: {error.strerror}", hint=hint) from None
    routes = [
        Route(f"{base}/{{path:path}}", provider.answer, methods=["POST"]) for base in PROVIDERS
    ]
    config = uvicorn.Config(Starlette(routes=routes), log_level="warning", timeout_keep_alive=3600)
    Thread(target=uvicorn.Server(config).run, args=[[listening]], daemon=True).start()
    return f"http://127.0.0.1:{listening.getsockname()[1]}"


def _tokens(text: str) -> int:
    return -(-len(text) // 4)


def main() -> None:
    """Serve one model like vLLM until the process is terminated."""
    parser = argparse.ArgumentParser(prog="vllm", allow_abbrev=False)
    parser.add_argument("weights", type=Path)
    for name in ("--host", "--served-model-name", "--generation-config", "--dtype"):
        parser.add_argument(name, required=True)
    parser.add_argument("--port", type=int, required=True)
    for name in ("--max-model-len", "--max-num-seqs", "--tensor-parallel-size"):
        parser.add_argument(name, type=int, required=True)
    parser.add_argument("--chat-template", type=Path)
    options = parser.parse_args()

    async def health(_: Request) -> Response:
        return Response()

    async def models(_: Request) -> Response:
        served = {"id": options.served_model_name, "object": "model"}
        return JSONResponse({"object": "list", "data": [served]})

    provider = ScriptedProvider(Path(os.environ[STANDINS]), {})
    routes = [
        Route("/health", health),
        Route("/v1/models", models),
        Route("/v1/chat/completions", provider.answer_locally, methods=["POST"]),
    ]
    uvicorn.run(Starlette(routes=routes), host=options.host, port=options.port, log_level="warning")


if __name__ == "__main__":
    main()
