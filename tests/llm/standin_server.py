"""Stand-in for a model server: `standin_server.py NOTES [--how HOW] --port N`.

The server writes its arguments, its process id and that of a child to NOTES, answers `/health`, and
replies to each question with the answer in NOTES.answers, or else with the question. HOW changes
this: the server `dies` immediately, `dies later` (at the third question), is `silent`, answers only
when three questions `meet`, or `stalls` at the tenth question after its first start. Other options
are only written to NOTES; with `stalls`, the questions are written there, too.
"""

import json
import os
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

notes, words = Path(sys.argv[1]), sys.argv[2:]
how = words[words.index("--how") + 1] if "--how" in words else ""
met = threading.Barrier(3, timeout=120)
asked: list[str] = []
written = notes.with_suffix(".answers")
answers = json.loads(written.read_text(encoding="utf-8")) if written.exists() else {}
is_second_life = notes.exists()
if how == "dies":
    print("loading the weights\nno tensor of this name")
    sys.exit(3)
if how == "silent":
    time.sleep(600)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.reply({} if self.path == "/health" else None)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if how == "meet":
            met.wait()
        text = body["messages"][-1]["content"]
        asked.append(text)
        if how == "stalls":
            with notes.with_suffix(".questions").open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(text) + "\n")
            if not is_second_life and len(asked) == 10:
                text = "never"
        if how == "dies later" and len(asked) == 3:
            print("out of memory", flush=True)
            os._exit(1)
        if text == "never":
            time.sleep(600)
        message = {"role": "assistant", "content": answers.get(text, f"echo {text}")}
        choice = {"index": 0, "message": message}
        length = sum(len(str(turn["content"])) for turn in body["messages"])
        usage = {"prompt_tokens": 2 + length // 4, "completion_tokens": 2}
        answer = {"id": "r1", "object": "chat.completion", "created": 0, "model": body["model"]}
        self.reply({**answer, "choices": [{**choice, "finish_reason": "stop"}], "usage": usage})

    def reply(self, body: object) -> None:
        data = json.dumps(body).encode()
        self.send_response(404 if body is None else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    """Server that ignores clients that have disconnected."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


server = Server(("127.0.0.1", int(words[words.index("--port") + 1])), Handler)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
with notes.open("a", encoding="utf-8") as stream:
    note = {
        "words": words,
        "pids": [os.getpid(), child.pid],
        "quiet": os.environ.get("DO_NOT_TRACK"),
    }
    stream.write(json.dumps(note) + "\n")
server.serve_forever()
