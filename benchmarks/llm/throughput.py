"""Measure questions per second of the LLM layer against the ideal rate and a plain loop.

A local server in a separate process answers every question after a fixed latency. The layer is
measured at several concurrencies; "ideal" is concurrency / latency, an upper bound for any client;
"plain" is a sequential loop of litellm calls; "replay" reads answers from recordings.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from pieline.core.files import write_json
from pieline.llm.client import ask
from pieline.llm.questions import Question, make_question
from pieline.llm.settings import LLMSettings
from pieline.models.llm import LLMEntry

ANSWER = json.dumps(
    {
        "id": "1",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "idioms: []"},
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 50, "completion_tokens": 5, "total_tokens": 55},
    }
).encode()
REPLY = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
    + f"Content-Length: {len(ANSWER)}\r\n\r\n".encode()
    + ANSWER
)


def serve(latency_s: float, port: Connection) -> None:
    """Answer requests after `latency_s` seconds until the process is terminated."""

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                size = int(head.split(b"content-length:", 1)[1].split(b"\r\n", 1)[0])
                await reader.readexactly(size)
                await asyncio.sleep(latency_s)
                writer.write(REPLY)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def main() -> None:
        server = await asyncio.start_server(one, "127.0.0.1", 0, backlog=256)
        port.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(main())


def questions(spec: LLMEntry, count: int, prefix: str) -> list[Question]:
    """Return distinct questions with a system prompt of typical length."""
    system = "You identify potentially idiomatic expressions in a sentence. " * 8
    return [
        make_question(
            spec,
            [("system", system), ("user", f"Sentence: {prefix} {i}")],
            {"temperature": 0, "max_tokens": 50},
        )
        for i in range(count)
    ]


def settings(folder: Path, concurrency: int, mode: str = "record") -> LLMSettings:
    """Return settings with this concurrency and a cost limit that is never reached."""
    return LLMSettings.model_validate(
        {
            "mode": mode,
            "recordings_folder": folder,
            "max_cost_usd": 1000,
            "providers": {"default": {"concurrency": concurrency}},
        }
    )


def seconds(run: Callable[[], object]) -> float:
    """Return the wall-clock time of a call, in seconds."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def plain_loop(batch: list[Question], api_base: str) -> None:
    """Ask all questions sequentially with litellm alone."""
    import litellm

    for question in batch:
        litellm.completion(
            model="openai/m",
            api_base=api_base,
            api_key="unused",
            messages=[turn._asdict() for turn in question.messages],
            **question.parameters,
        )


def measure(options: argparse.Namespace, port: int, folder: Path) -> list[dict[str, Any]]:
    """Measure all clients; return the rows of the table."""
    api_base = f"http://127.0.0.1:{port}/v1"
    entry = {
        "kind": "llm",
        "label": "benchmark",
        "licence": "none",
        "source": "api",
        "litellm_id": "openai/m",
        "provider": "local server",
        "api_base": api_base,
        "accepts": ["temperature", "max_tokens"],
    }
    latency_s = options.latency_ms / 1000
    free = LLMEntry.model_validate(entry)
    priced = LLMEntry.model_validate({**entry, "prices": {"input": 0.15, "output": 0.6}})
    # Importing litellm and creating its first client takes seconds, once per process.
    warm_up = questions(free, 3, "warm")
    ask(warm_up, free, settings(folder, 1), folder / "warm.jsonl", progress=False)

    def layer(spec: LLMEntry, concurrency: int, count: int) -> float:
        path = folder / f"{concurrency}-{bool(spec.prices)}.jsonl"
        batch = questions(spec, count, str(path))
        took = seconds(
            lambda: ask(batch, spec, settings(folder, concurrency), path, progress=False)
        )
        return count / took

    def row(how: str, concurrency: int, rate: float, ideal: float | None) -> dict[str, Any]:
        return {
            "how": how,
            "concurrency": concurrency,
            "per_second": round(rate, 1),
            "ideal_per_second": None if ideal is None else round(ideal, 1),
        }

    rows = []
    plain = questions(free, 60, "plain")
    rate = len(plain) / seconds(lambda: plain_loop(plain, api_base))
    rows.append(row("plain litellm loop", 1, rate, 1 / latency_s))
    for concurrency in options.concurrency:
        count = min(options.questions, max(60, 40 * concurrency))
        ideal = concurrency / latency_s
        rows.append(row("pieline", concurrency, layer(free, concurrency, count), ideal))
    most = max(options.concurrency)
    count = min(options.questions, 40 * most)
    with_cap = layer(priced, most, count)
    rows.append(row("pieline, with spending cap", most, with_cap, most / latency_s))
    recorded = questions(free, options.replayed, "replay")
    path = folder / "replay.jsonl"
    _record(recorded, path)
    replay = settings(folder, 1, "replay")
    took = seconds(lambda: ask(recorded, free, replay, path, progress=False))
    rows.append(row("replay", 1, len(recorded) / took, None))
    return rows


def _record(batch: list[Question], path: Path) -> None:
    from pieline.llm.answers import Answer
    from pieline.llm.recordings import record

    record(
        path,
        (
            (q, Answer(key=q.key, text="idioms: []", input_tokens=50, output_tokens=5))
            for q in batch
        ),
    )


def main() -> None:
    """Measure, print a table and save the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--latency-ms", type=float, default=50, help="latency of the server (default: 50)"
    )
    parser.add_argument(
        "--concurrency", type=int, nargs="+", default=[1, 8, 32], help="default: 1 8 32"
    )
    parser.add_argument(
        "--questions", type=int, default=1000, help="maximum number per row (default: 1000)"
    )
    parser.add_argument("--replayed", type=int, default=20_000, help="number of answers to replay")
    parser.add_argument(
        "--output",
        type=Path,
        default=Path(__file__).with_suffix(".json"),
        help="output file (default: next to this program)",
    )
    options = parser.parse_args()
    mine, theirs = multiprocessing.Pipe()
    server = multiprocessing.Process(
        target=serve, args=(options.latency_ms / 1000, theirs), daemon=True
    )
    server.start()
    try:
        with tempfile.TemporaryDirectory() as folder:
            rows = measure(options, mine.recv(), Path(folder))
    finally:
        server.terminate()
        server.join()
    print(f"server latency {options.latency_ms:g} ms, {os.cpu_count()} cores")
    print(f"{'how':28} {'concurrency':>11} {'per second':>11} {'ideal':>8}")
    for row in rows:
        ideal = row["ideal_per_second"]
        ideal_text = "" if ideal is None else f"{ideal:8.1f}"
        print(f"{row['how']:28} {row['concurrency']:11} {row['per_second']:11.1f} {ideal_text:>8}")
    write_json(
        options.output,
        {"latency_ms": options.latency_ms, "cores": os.cpu_count(), "rows": rows},
    )


if __name__ == "__main__":
    main()
