"""A server that is a process, in a model's place: `standin_server.py NOTES [--how HOW] --port N`.

It writes its arguments into NOTES, and the process ids of itself and of a child; it answers
`/health` and repeats each question, or gives the answer that NOTES.answers has. HOW: `dies` at
once or `dies later` (at the third question), stays `silent`, answers when three questions `meet`,
or in its first life `stalls` at the tenth question. Whatever other options it gets are noted only;
with `stalls` the questions are, too.
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
met = threading.Barrier(3, timeout=20)
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
        usage = {"prompt_tokens": 2, "completion_tokens": 2, "total_tokens": 4}
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
    """Says nothing of clients that have hung up."""

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
