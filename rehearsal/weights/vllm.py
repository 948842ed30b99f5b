#!/usr/bin/env -S python3 -I -S
"""Stands in for vLLM: `vllm serve FOLDER --port N …`, as this pipeline starts it.

It refuses options that the pipeline does not give and a folder that is not complete, answers what
the true server answers on its health and its models, and hands chat completions on to the one
server of a rehearsal (PIELINE_REHEARSAL_SERVER, host:port). A copy of this file is the command, so
it imports nothing but the standard library.
"""

import argparse
import http.client
import json
import os
import sys
import zipfile
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

SERVER = "PIELINE_REHEARSAL_SERVER"
"""Environment variable: where the server listens that answers in all models' place."""

COMPLETIONS = "/v1/chat/completions"


def main() -> None:
    """Serve until the process is ended; exits with a message if the weights cannot be served."""
    options = _options(sys.argv[1:])
    upstream = os.environ.get(SERVER)
    if not upstream:
        sys.exit(f"{SERVER} is not set")
    if fault := fault_of(options.folder, options.chat_template):
        sys.exit(f"{options.folder}: {fault}")
    handler = type("ServedHandler", (_Handler,), {"upstream": upstream, "options": options})
    ThreadingHTTPServer((options.host, options.port), handler).serve_forever()


def _options(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="vllm", allow_abbrev=False)
    parser.add_argument("command", choices=["serve"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--served-model-name", required=True)
    parser.add_argument("--generation-config", choices=["auto", "vllm"])
    parser.add_argument("--dtype", choices=["auto", "float32", "bfloat16", "float16"])
    for name in ("--max-model-len", "--max-num-seqs", "--tensor-parallel-size"):
        parser.add_argument(name, type=int)
    parser.add_argument("--chat-template", type=Path)
    return parser.parse_args(words)


def fault_of(folder: Path, template: Path | None) -> str:
    """Why a folder of weights cannot be served as a chat model; empty if it can.

    Args:
        folder: the snapshot.
        template: file with the chat template, if it is not that of the weights.
    """
    for name in ("config.json", "tokenizer_config.json"):
        if not (folder / name).is_file():
            return f"no {name}"
    said = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    if not (template.is_file() if template else said.get("chat_template")):
        return "no chat template"
    if not any((folder / name).is_file() for name in ("tokenizer.json", "vocab.txt")):
        return "no vocabulary"
    indices = sorted(folder.glob("*.index.json"))
    named = [json.loads(index.read_text(encoding="utf-8"))["weight_map"] for index in indices]
    files = {file for weights in named for file in weights.values()}
    files |= {path.name for path in folder.glob("*.safetensors")}
    files |= {path.name for path in folder.glob("*.bin")}
    broken = sorted(file for file in files if not _is_whole(folder / file))
    return f"{broken[0]} is not whole" if broken else "" if files else "no weights"


def _is_whole(path: Path) -> bool:
    """Whether a file of weights has all bytes that its head tells of."""
    if not path.is_file():
        return False
    if path.suffix == ".bin":
        return zipfile.is_zipfile(path)
    with path.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        head = json.loads(stream.read(length))
    ends = [item["data_offsets"][1] for name, item in head.items() if name != "__metadata__"]
    return bool(path.stat().st_size == 8 + length + max(ends))


class _Handler(BaseHTTPRequestHandler):
    """Answers for one served model."""

    protocol_version = "HTTP/1.1"
    upstream: str
    options: argparse.Namespace

    def do_GET(self) -> None:
        if self.path == "/health":
            self._reply(200, b"")
        elif self.path == "/v1/models":
            model = {"id": self.options.served_model_name, "object": "model", "owned_by": "vllm"}
            model |= {"max_model_len": self.options.max_model_len}
            self._tell(200, {"object": "list", "data": [model]})
        else:
            self._tell(404, {"detail": "Not Found"})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        asked = json.loads(body).get("model")
        if self.path != COMPLETIONS:
            self._tell(404, {"detail": "Not Found"})
        elif asked != self.options.served_model_name:
            message = f"The model `{asked}` does not exist."
            error = {"message": message, "type": "NotFoundError", "param": "model", "code": 404}
            self._tell(404, {"error": error})
        else:
            self._hand_on(body)

    def _hand_on(self, body: bytes) -> None:
        """Give the answer of the rehearsal's server as it is."""
        with closing(http.client.HTTPConnection(self.upstream)) as connection:
            heads = {"Content-Type": "application/json"}
            if key := self.headers.get("Authorization"):
                heads["Authorization"] = key
            connection.request("POST", f"/openai{COMPLETIONS}", body, heads)
            answer = connection.getresponse()
            after = answer.headers.get("Retry-After")
            self._reply(answer.status, answer.read(), {"Retry-After": after} if after else {})

    def _tell(self, status: int, value: Any) -> None:
        self._reply(status, json.dumps(value).encode())

    def _reply(self, status: int, body: bytes, heads: dict[str, str] | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        for name, value in (heads or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing of single requests."""


if __name__ == "__main__":
    main()
