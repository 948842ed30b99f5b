"""Measure ranking by embeddings at two sizes, and extrapolate to a million documents.

    python benchmarks/scale.py

For each number of dimensions, a process of its own ranks random documents for 256 queries, as the
rule `rank_by_embedding` does: read and normalize the vectors, multiply, sort, and write the TREC
run. CPU-seconds and peak memory grow linearly with the documents, so that a line through the two
sizes gives the last row. Embedding itself is not measured: it depends on the model and the GPU.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = Path(__file__).resolve()
QUERIES, MILLION = 256, 1_000_000
SIZES = {384: (100_000, 200_000), 4096: (20_000, 40_000)}
"""Numbers of documents by dimensions; each file has at most 0.7 GB."""


def rank_documents(documents: int, dimensions: int) -> None:
    """Rank the documents in `vectors.npy` for each query; print the CPU-seconds and peak MB."""
    import numpy as np

    from pieline.studies.idiolink.predictions.runs import cosine_scores_of_file, rank, write_run

    generator = np.random.default_rng(0)
    header = {"descr": "<f4", "fortran_order": False, "shape": (documents, dimensions)}
    with Path("vectors.npy").open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for _ in range(0, documents, 1000):
            generator.standard_normal((1000, dimensions), dtype=np.float32).tofile(file)
    queries = generator.standard_normal((QUERIES, dimensions), dtype=np.float32)
    before = sum(os.times()[:2])
    names = [f"document-{number}" for number in range(documents)]
    scores = cosine_scores_of_file(queries, "vectors.npy", range(documents))
    run = rank([f"query-{number}" for number in range(QUERIES)], scores, names, top_k=100)
    write_run("scores.run.gz", run, tag="benchmark")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    print(json.dumps([sum(os.times()[:2]) - before, peak]))


def main() -> None:
    """Measure both sizes per number of dimensions in temporary folders, and print a table."""
    row = "{:>12}{:>12}{:>10}{:>10}"
    print(row.format("dimensions", "documents", "CPU-s", "peak MB"))
    for dimensions, sizes in SIZES.items():
        measured = []
        for documents in sizes:
            with tempfile.TemporaryDirectory() as folder:
                command = [sys.executable, PROGRAM, str(documents), str(dimensions)]
                environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
                printed = subprocess.check_output(command, cwd=folder, env=environment)
            measured.append(json.loads(printed))
        (few, many), (low, high) = sizes, measured
        further = (MILLION - many) / (many - few)
        at_a_million = [b + (b - a) * further for a, b in zip(low, high, strict=True)]
        for documents, values in zip((*sizes, MILLION), (low, high, at_a_million), strict=True):
            cpu, peak = values
            print(row.format(dimensions, documents, f"{cpu:.1f}", f"{peak:.0f}"))


if __name__ == "__main__":
    rank_documents(*map(int, sys.argv[1:])) if sys.argv[1:] else main()
