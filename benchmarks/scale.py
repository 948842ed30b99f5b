"""Measure exact search among a million documents: in blocks, in one matrix, with faiss; and BM25.

    python benchmarks/scale.py [--documents N] [--dimensions D ...] [--queries N] [WAY ...]

`blocks` is what the rule `rank_by_embedding` does, `matrix` the same with all vectors in memory,
and `faiss` an `IndexFlatIP` (only if it is installed: `pip install faiss-cpu`). Each way runs in a
process of its own, on one thread, and returns the 100 best random documents for each query, some of
which are copies of others. The last columns compare with the first way: equal rankings, rankings of
the same documents, and the largest difference of scores. `bm25` indexes texts of 20 words instead.
Embedding itself is not measured: it depends on the model and the GPU. benchmarks/README.md shows
results.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np

PROGRAM = Path(__file__).resolve()
WAYS = ["blocks", "matrix", "faiss", "bm25"]
ROW = "{:>7}{:>11}{:>11}{:>8}{:>8}{:>9}{:>7}{:>6}{:>12}"
TOP_K = 100
ROWS_AT_ONCE = 10_000

Ranking = dict[str, float]


def make_vectors(documents: int, dimensions: int, queries: int) -> None:
    """Write `documents.npy` and `queries.npy`; each query is near four copies of a document."""
    generator = np.random.default_rng(0)
    header = {"descr": "<f4", "fortran_order": False, "shape": (documents, dimensions)}
    first = generator.standard_normal((ROWS_AT_ONCE, dimensions), dtype=np.float32)
    with Path("documents.npy").open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for start in range(0, documents, ROWS_AT_ONCE):
            rows = generator.standard_normal((ROWS_AT_ONCE, dimensions), dtype=np.float32)
            if start % (documents // 4 // ROWS_AT_ONCE * ROWS_AT_ONCE or 1) == 0:
                rows[::10] = first[::10]
            rows[: documents - start].tofile(file)
    noise = generator.standard_normal((queries, dimensions), dtype=np.float32)
    np.save("queries.npy", noise + first[: 10 * queries : 10][:queries])


def names(documents: int) -> list[str]:
    """Return the ids of the documents."""
    return [f"document-{number}" for number in range(documents)]


def blocks(documents: int) -> list[Ranking]:
    """Rank as `rank_by_embedding` does."""
    from pieline.studies.idiolink.predictions.rankings import rank_by_cosine

    queries = np.load("queries.npy")
    query_ids = list(map(str, range(len(queries))))
    rows = np.arange(documents)
    [run] = rank_by_cosine(
        query_ids, [queries], names(documents), "documents.npy", rows, top_k=TOP_K
    )
    return list(run.values())


def matrix(documents: int) -> list[Ranking]:
    """Rank with all vectors in memory."""
    from pieline.studies.idiolink.predictions.rankings import cosine_scores, rank

    queries = np.load("queries.npy")
    scores = cosine_scores(queries, np.load("documents.npy"))
    query_ids = list(map(str, range(len(queries))))
    return list(rank(query_ids, scores, names(documents), top_k=TOP_K).values())


def faiss(documents: int) -> list[Ranking]:
    """Rank with faiss; `add` copies the vectors into the index."""
    import faiss as library

    library.omp_set_num_threads(1)
    vectors = np.load("documents.npy", mmap_mode="r")
    index = library.IndexFlatIP(vectors.shape[1])
    for start in range(0, documents, ROWS_AT_ONCE):
        part = np.array(vectors[start : start + ROWS_AT_ONCE])
        library.normalize_L2(part)
        index.add(part)
    queries = np.load("queries.npy")
    library.normalize_L2(queries)
    ids = names(documents)
    return [
        {ids[place]: float(score) for score, place in zip(scores, places, strict=True)}
        for scores, places in zip(*index.search(queries, TOP_K), strict=True)
    ]


def bm25(documents: int) -> list[Ranking]:
    """Index texts of 20 words, whose frequencies follow Zipf's law, and search 20 words."""
    from pieline.studies.idiolink.predictions.bm25 import Bm25Index
    from pieline.studies.idiolink.predictions.rankings import rank

    queries = len(np.load("queries.npy"))

    def texts(number: int, seed: int) -> Iterator[list[str]]:
        generator = np.random.default_rng(seed)
        for _ in range(number):
            yield [f"word-{word % 100_000}" for word in generator.zipf(1.3, 20)]

    index = Bm25Index(list(texts(documents, 0)), k1=1.5, b=0.75)
    scores = map(index.get_scores, texts(queries, 1))
    query_ids = list(map(str, range(queries)))
    return list(rank(query_ids, scores, names(documents), top_k=TOP_K).values())


def measure(way: str, documents: int) -> None:
    """Rank in this process, save the rankings, and print seconds, CPU-seconds and peak MB."""
    ways: dict[str, Callable[[int], list[Ranking]]] = {
        "blocks": blocks,
        "matrix": matrix,
        "faiss": faiss,
        "bm25": bm25,
    }
    began, before = time.perf_counter(), sum(os.times()[:2])
    rankings = ways[way](documents)
    seconds, cpu = time.perf_counter() - began, sum(os.times()[:2]) - before
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    Path(f"{way}.json").write_text(json.dumps([list(each.items()) for each in rankings]))
    print(json.dumps([seconds, cpu, peak]))


def compare(way: str, first: str) -> tuple[str, str, str]:
    """Return the numbers of equal rankings and of equal sets, and the largest difference."""
    found, expected = (json.loads(Path(f"{each}.json").read_text()) for each in (way, first))
    pairs = list(zip(found, expected, strict=True))
    equal = sum([name for name, _ in a] == [name for name, _ in b] for a, b in pairs)
    same = sum({name for name, _ in a} == {name for name, _ in b} for a, b in pairs)
    differences = [abs(x - y) for a, b in pairs for (_, x), (_, y) in zip(a, b, strict=True)]
    return str(equal), str(same), f"{max(differences):.1e}"


def main() -> None:
    """Measure the ways in temporary folders, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("ways", metavar="WAY", nargs="*", help=f"one of {', '.join(WAYS)}")
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--dimensions", type=int, nargs="+", default=[384, 1024])
    parser.add_argument("--queries", type=int, default=128)
    parser.add_argument("--measure", choices=WAYS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(options.measure, options.documents)
        return
    available = [way for way in WAYS if way != "faiss" or find_spec("faiss")]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    columns = (
        "documents",
        "dimensions",
        "seconds",
        "CPU-s",
        "peak MB",
        "equal",
        "same",
        "difference",
    )
    print(ROW.format("way", *columns))
    for dimensions in options.dimensions:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            make_vectors(options.documents, dimensions, options.queries)
            first = ""
            for way in options.ways or available:
                command = [sys.executable, PROGRAM, "--measure", way]
                command += ["--documents", str(options.documents)]
                printed = subprocess.check_output(command, env=environment)
                seconds, cpu, peak = json.loads(printed)
                first = first or way
                compared = compare(way, first) if way not in (first, "bm25") else ("", "", "")
                size = "" if way == "bm25" else dimensions
                numbers = (f"{seconds:.0f}", f"{cpu:.0f}", f"{peak:.0f}", *compared)
                print(ROW.format(way, options.documents, size, *numbers), flush=True)
            os.chdir(PROGRAM.parent)


if __name__ == "__main__":
    main()
