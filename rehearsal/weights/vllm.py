"""Stand-in for vLLM: `python -m rehearsal.weights.vllm FOLDER --port N …`.

It rejects options that the pipeline does not use and incomplete folders, serves the health and
model endpoints, and forwards chat completions to the rehearsal's server
(PIELINE_REHEARSAL_SERVER, host:port).
"""

import argparse
import json
import os
import sys
from pathlib import Path
from zipfile import is_zipfile

import httpx
import uvicorn
from safetensors import SafetensorError, safe_open
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

SERVER = "PIELINE_REHEARSAL_SERVER"
"""Environment variable with the address of the server that answers for all models."""


def main() -> None:
    """Serve until the process is terminated; exit with a message if the weights are unusable."""
    parser = argparse.ArgumentParser(prog="vllm", allow_abbrev=False)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--served-model-name", required=True)
    parser.add_argument("--generation-config", choices=["auto", "vllm"])
    parser.add_argument("--dtype", choices=["auto", "float32", "bfloat16", "float16"])
    for name in ("--max-model-len", "--max-num-seqs", "--tensor-parallel-size"):
        parser.add_argument(name, type=int)
    parser.add_argument("--chat-template", type=Path)
    options = parser.parse_args()
    if fault := fault_of(options.folder, options.chat_template):
        sys.exit(f"{options.folder}: {fault}")
    served = application(options.served_model_name, os.environ[SERVER])
    uvicorn.run(served, host=options.host, port=options.port, log_level="warning")


def fault_of(folder: Path, template: Path | None) -> str:
    """Return why a folder of weights cannot be served as a chat model; empty if it can.

    Args:
        folder: Snapshot of the weights.
        template: File with the chat template, if different from that of the weights.
    """
    for name in ("config.json", "tokenizer_config.json"):
        if not (folder / name).is_file():
            return f"no {name}"
    settings = json.loads((folder / "tokenizer_config.json").read_text("utf-8"))
    if not (template.is_file() if template else settings.get("chat_template")):
        return "no chat template"
    if not any((folder / name).is_file() for name in ("tokenizer.json", "vocab.txt")):
        return "no vocabulary"
    indices = [json.loads(path.read_text("utf-8")) for path in folder.glob("*.index.json")]
    files = {file for index in indices for file in index["weight_map"].values()}
    files |= {path.name for end in ("safetensors", "bin") for path in folder.glob(f"*.{end}")}
    broken = [file for file in sorted(files) if not _is_complete(folder / file)]
    return f"{broken[0]} is incomplete" if broken else "" if files else "no weights"


def _is_complete(path: Path) -> bool:
    if path.suffix == ".bin":
        return is_zipfile(path)
    try:
        with safe_open(path, "numpy"):
            return True
    except (OSError, SafetensorError):
        return False


def application(served: str, upstream: str) -> Starlette:
    """Return the server of one model, which forwards questions to the server at `upstream`."""

    async def health(_: Request) -> Response:
        return Response()

    async def models(_: Request) -> Response:
        return JSONResponse({"object": "list", "data": [{"id": served, "object": "model"}]})

    async def completions(request: Request) -> Response:
        body = await request.body()
        if (asked := json.loads(body).get("model")) != served:
            message = f"The model `{asked}` does not exist."
            return JSONResponse({"error": {"message": message, "code": 404}}, 404)
        async with httpx.AsyncClient(timeout=600, trust_env=False) as client:
            answer = await client.post(f"http://{upstream}/openai{request.url.path}", content=body)
        kept = ("content-type", "retry-after")
        headers = {name: answer.headers[name] for name in kept if name in answer.headers}
        return Response(answer.content, answer.status_code, headers)

    routes = [
        Route("/health", health),
        Route("/v1/models", models),
        Route("/v1/chat/completions", completions, methods=["POST"]),
    ]
    return Starlette(routes=routes)


if __name__ == "__main__":
    main()
