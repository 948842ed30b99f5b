"""Seconds and memory that large files of recordings take; a process of its own for each figure."""

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
from pieline.llm.recordings import canonicalise, read_answers, recording

SYSTEM = "You identify potentially idiomatic expressions in a sentence. " * 8


def pair(number: int) -> tuple[Question, Answer]:
    """A question with a system prompt of usual length, and an answer of about 590 bytes in all."""
    question = Question(
        "openai/gpt-4o-mini-2024-07-18",
        (("system", SYSTEM), ("user", f"Sentence: he let the cat out of the bag, time {number}.")),
        {"temperature": 0.3, "max_tokens": 50, "seed": 42},
    )
    answer = Answer(
        key=question.key,
        text=json.dumps({"idiom": "let the cat out of the bag", "number": number}),
        finish_reason="stop",
        returned_model="gpt-4o-mini-2024-07-18",
        fingerprint="fp_0123456789",
        response_id=f"chatcmpl-{number:032d}",
        input_tokens=150,
        output_tokens=20,
    )
    return question, answer


def fill(path: Path, numbers: range) -> None:
    """Append answers."""
    with recording(path) as recorder:
        for start in range(numbers.start, numbers.stop, 10_000):
            recorder.append(map(pair, range(start, min(start + 10_000, numbers.stop))))


def read_five(path: Path) -> None:
    """Read five answers."""
    assert len(read_answers(path, {pair(number)[0].key for number in range(5)})) == 5


def open_and_append(path: Path) -> None:
    """Open the file for writing and append five answers."""
    with recording(path) as recorder:
        recorder.append(map(pair, range(10**9, 10**9 + 5)))


def put_in_order(path: Path) -> None:
    """Put the file in canonical order."""
    with recording(path):
        canonicalise(path)


def merge_five(path: Path) -> None:
    """Merge a file of five new answers."""
    other = path.with_name("other.jsonl")
    fill(other, range(2 * 10**9, 2 * 10**9 + 5))
    merge(path, [other])


def read_all(path: Path) -> None:
    """Read every answer."""
    read_answers(path)


def measured(run: Callable[[Path], None], path: Path) -> dict[str, float]:
    """Seconds, of the clock and of the CPU, and peak MB (10**6 bytes) of one call in a process."""
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
    """Measure, print a table, write the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--answers", type=int, default=1_000_000, help="in the large file")
    parser.add_argument("--few", type=int, default=10_000, help="in the file that is read whole")
    parser.add_argument("--folder", type=Path, help="where to write the files (default: temporary)")
    parser.add_argument(
        "--output",
        type=Path,
        default=Path(__file__).with_suffix(".json"),
        help="where to write the figures (default: beside this program)",
    )
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(dir=options.folder))
    try:
        large, small = folder / "large.jsonl", folder / "small.jsonl"
        fill(small, range(options.few))
        fill(large, range(options.answers))
        steps = [
            (put_in_order, large, "put in order, written in any"),
            (read_five, large, "read five"),
            (open_and_append, large, "open and append five"),
            (put_in_order, large, "put in order after five"),
            (merge_five, large, "merge five"),
            (read_all, small, f"read all of {options.few}"),
        ]
        rows = [{"what": what, **measured(run, path)} for run, path, what in steps]
        size = large.stat().st_size
    finally:
        shutil.rmtree(folder)
    for row in rows:
        times = f"{row['seconds']:8.2f} s {row['cpu_seconds']:8.2f} s of CPU"
        print(f"{row['what']:30} {times} {row['peak_mb']:6} MB")
    figures = {"answers": options.answers, "bytes": size, "cores": os.cpu_count(), "rows": rows}
    write_json(options.output, figures)


if __name__ == "__main__":
    main()
