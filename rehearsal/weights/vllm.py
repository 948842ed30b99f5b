"""Stand-in for vLLM: `python -m rehearsal.weights.vllm FOLDER --port N …`.

The program rejects options that the pipeline does not use and models without a chat template,
serves the health and model endpoints, and forwards chat completions to the rehearsal's server. The
address of this server (host:port) is in PIELINE_REHEARSAL_SERVER.
"""

import argparse
import json
import os
import sys
from pathlib import Path

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

SERVER = "PIELINE_REHEARSAL_SERVER"
"""Environment variable with the address of the server that answers for all models."""


def main() -> None:
    """Serve until the process is terminated; exit with an error if there is no chat template."""
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
    if not has_chat_template(options.folder, options.chat_template):
        sys.exit(f"{options.folder}: no chat template")
    served = application(options.served_model_name, os.environ[SERVER])
    uvicorn.run(served, host=options.host, port=options.port, log_level="warning")


def has_chat_template(folder: Path, template: Path | None) -> bool:
    """Return whether the file `template` exists or, if it is None, the weights have a template."""
    if template:
        return template.is_file()
    settings = json.loads((folder / "tokenizer_config.json").read_text("utf-8"))
    return bool(settings.get("chat_template"))


def application(served: str, upstream: str) -> Starlette:
    """Return an ASGI app that serves one model and forwards questions to `upstream`."""

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
