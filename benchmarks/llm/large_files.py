"""Measure time and memory for large recording files, in a separate process for each measurement."""

import argparse
import json
import multiprocessing
import os
import resource
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from pieline.core.files import write_json
from pieline.llm.answers import Answer
from pieline.llm.archive import merge
from pieline.llm.questions import Question
from pieline.llm.recordings import read_answers, recording
from pieline.llm.wire import shorten_request

SYSTEM = "You identify potentially idiomatic expressions in a sentence. " * 8


def pair(number: int) -> tuple[Question, Answer]:
    """Return a question with a typical system prompt, and an answer (1,270 bytes in total)."""
    question = Question(
        "openai/gpt-4o-mini-2024-07-18",
        (("system", SYSTEM), ("user", f"Sentence: he let the cat out of the bag, time {number}.")),
        {"temperature": 0.3, "max_tokens": 50, "seed": 42},
    )
    turns = [turn._asdict() for turn in question.messages]
    body = {"model": "gpt-4o-mini-2024-07-18", "messages": turns, **question.parameters}
    answer = Answer(
        key=question.key,
        text=json.dumps({"idiom": "let the cat out of the bag", "number": number}),
        finish_reason="stop",
        returned_model="gpt-4o-mini-2024-07-18",
        fingerprint="fp_0123456789",
        response_id=f"chatcmpl-{number:032d}",
        input_tokens=150,
        output_tokens=20,
        sent=shorten_request(question, "/v1/chat/completions", body),
    )
    return question, answer


def fill(path: Path, numbers: range) -> None:
    """Append the question-answer pairs with these numbers to a recording file."""
    with recording(path) as recorder:
        for start in range(numbers.start, numbers.stop, 10_000):
            recorder.append(map(pair, range(start, min(start + 10_000, numbers.stop))))


def open_all(path: Path) -> None:
    """Read all answers, as a run does to find missing answers."""
    read_answers(path)


def append_five(path: Path) -> None:
    """Open the file for writing, append five answers and sort it."""
    with recording(path) as recorder:
        recorder.append(map(pair, range(10**9, 10**9 + 5)))


def merge_five(path: Path) -> None:
    """Merge five new answers from another file."""
    other = path.with_name("other.jsonl")
    fill(other, range(2 * 10**9, 2 * 10**9 + 5))
    merge(path, [other])


def measured(run: Callable[[Path], None], path: Path) -> dict[str, float]:
    """Return wall-clock and CPU seconds and peak MB (10**6 bytes) of a call in a subprocess."""
    context = multiprocessing.get_context("spawn")
    mine, theirs = context.Pipe()
    process = context.Process(target=_measure, args=(run, path, theirs))
    process.start()
    theirs.close()
    seconds, cpu_seconds, peak = mine.recv()
    process.join()
    return {
        "seconds": round(seconds, 2),
        "cpu_seconds": round(cpu_seconds, 2),
        "peak_mb": round(peak),
    }


def _measure(run, path, reply) -> None:  # type: ignore[no-untyped-def]
    start, cpu_start = time.perf_counter(), time.process_time()
    run(path)
    took, cpu = time.perf_counter() - start, time.process_time() - cpu_start
    reply.send((took, cpu, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6))


def main() -> None:
    """Measure, print a table and save the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--answers", type=int, default=200_000, help="number of answers")
    parser.add_argument("--folder", type=Path, help="folder for the files (default: temporary)")
    parser.add_argument(
        "--output",
        type=Path,
        default=Path(__file__).with_suffix(".json"),
        help="output file (default: next to this program)",
    )
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(dir=options.folder))
    try:
        path = folder / "answers.jsonl"
        fill(path, range(options.answers))
        steps = [
            (open_all, "open"),
            (append_five, "append five, put in order"),
            (merge_five, "merge five"),
        ]
        rows = [{"what": what, **measured(run, path)} for run, what in steps]
        size = path.stat().st_size
    finally:
        shutil.rmtree(folder)
    for row in rows:
        times = f"{row['seconds']:8.2f} s {row['cpu_seconds']:8.2f} s of CPU"
        print(f"{row['what']:30} {times} {row['peak_mb']:6} MB")
    results = {"answers": options.answers, "bytes": size, "cores": os.cpu_count(), "rows": rows}
    write_json(options.output, results)


if __name__ == "__main__":
    main()
