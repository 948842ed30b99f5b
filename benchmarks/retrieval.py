"""Compare pieline with other ways to rank and score the test split: CPU time and peak memory.

    python benchmarks/retrieval.py runs/released [WAY ...] [--rounds 3]

Set PIELINE_MIRROR to the folder of the papers' data. Each way runs in a process of its own, on one
thread, with the same words (BM25) or weights (SBERT), on the 7,500 documents and 1,500 queries of
IdioLink in sentence mode. Rounds alternate between the ways; the table shows the minimum CPU time
of each. The environment also needs `bm25s` and `mteb`, which the locked one lacks.
benchmarks/README.md shows the table, and what each way does not compute.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

PROGRAM = Path(__file__).resolve()
ROOT = PROGRAM.parents[1]
ROW = "{:12}{:>9}{:>9}{:>9}{:>9}"
TOP_K = 100

Texts = tuple[dict[str, str], dict[str, str], dict[str, dict[str, int]]]


def texts(folder: Path) -> Texts:
    """Return documents, queries and relevance of the test split."""
    from pieline.core.records import load_jsonl
    from pieline.studies.idiolink.datasets.dataset import meaning_qrels
    from pieline.studies.idiolink.records import Document, Query

    place = folder / "results" / "datasets" / "idiolink" / "test"
    documents = load_jsonl(place / "documents.jsonl", Document)
    queries = load_jsonl(place / "queries.jsonl", Query)
    return (
        {text.id: text.sentence for text in documents},
        {text.id: text.sentence for text in queries},
        meaning_qrels(queries, documents),
    )


def ndcg(rankings: dict[str, list[str]], relevant: dict[str, dict[str, int]]) -> float:
    """Return the mean nDCG@10 in percent."""
    import ir_measures

    scores = {
        query: {name: float(-place) for place, name in enumerate(ranked)}
        for query, ranked in rankings.items()
    }
    return 100 * float(
        ir_measures.calc_aggregate([ir_measures.nDCG @ 10], relevant, scores)[ir_measures.nDCG @ 10]
    )


def workflow(model: str) -> float:
    """Make pieline's metric file of a model from the raw files, with all jobs on one core."""
    metrics = f"results/metrics/idiolink/test/{model}/sentence/seed-0.json"
    command = [str(Path(sys.executable).with_name("snakemake")), "--cores", "1", "--quiet", "all"]
    command += ["--snakefile", str(ROOT / "Snakefile")]
    command += ["--configfile", str(ROOT / "config" / "released.yaml"), "--", metrics]
    subprocess.run(command, check=True, stdout=sys.stderr)
    return 100 * float(json.loads(Path(metrics).read_text())["overall"]["ndcg_at_10"])


def pieline_bm25(_: Path) -> float:
    """Tune on the validation split, rank and score."""
    return workflow("bm25")


def rank_bm25(folder: Path) -> float:
    """Rank with rank_bm25."""
    from rank_bm25 import BM25Okapi

    from pieline.studies.idiolink.predictions.bm25 import tokenize

    documents, queries, relevant = texts(folder)
    index, names = BM25Okapi([tokenize(text) for text in documents.values()]), list(documents)
    rankings = {
        query: [str(name) for name in index.get_top_n(tokenize(text), names, n=TOP_K)]
        for query, text in queries.items()
    }
    return ndcg(rankings, relevant)


def bm25s(folder: Path) -> float:
    """Rank with bm25s."""
    import bm25s as library

    from pieline.studies.idiolink.predictions.bm25 import tokenize

    documents, queries, relevant = texts(folder)
    index, names = library.BM25(), list(documents)
    index.index([tokenize(text) for text in documents.values()], show_progress=False)
    found = index.retrieve(
        [tokenize(text) for text in queries.values()], k=TOP_K, show_progress=False
    ).documents
    rankings = zip(queries, ([names[place] for place in row] for row in found), strict=True)
    return ndcg(dict(rankings), relevant)


def pieline_sbert(_: Path) -> float:
    """Embed, rank and score."""
    return workflow("sbert")


def load_sbert() -> Any:
    """Load SBERT from its package."""
    from sentence_transformers import SentenceTransformer

    from pieline.models.embedder import EmbedderEntry
    from pieline.models.registry import load_registry
    from pieline.models.weights import weights_location

    entry = load_registry(ROOT / "models.yaml")["sbert"]
    assert isinstance(entry, EmbedderEntry)
    return SentenceTransformer(weights_location(entry), device="cpu")


def evaluator(folder: Path) -> float:
    """Embed, rank and score with sentence-transformers' evaluator."""
    from sentence_transformers.evaluation import InformationRetrievalEvaluator

    documents, queries, relevant = texts(folder)
    judge = InformationRetrievalEvaluator(
        queries,
        documents,
        {query: set(names) for query, names in relevant.items()},
        ndcg_at_k=[10],
        write_csv=False,
    )
    return 100 * float(judge(load_sbert())["cosine_ndcg@10"])


def mteb(folder: Path) -> float:
    """Embed, rank and score with MTEB and the task that `pieline` writes for it."""
    import mteb as library

    from pieline.core.records import load_jsonl
    from pieline.studies.idiolink.predictions.mteb import write_mteb_data
    from pieline.studies.idiolink.records import Document, Query

    place = folder / "results" / "datasets" / "idiolink" / "test"
    names = (
        "corpus.jsonl",
        "qrels.tsv",
        "queries_sentence.jsonl",
        "queries_instruction_sentence.jsonl",
    )
    write_mteb_data(
        {name.partition(".")[0]: name for name in names},
        load_jsonl(place / "documents.jsonl", Document),
        load_jsonl(place / "queries.jsonl", Query),
    )
    shutil.copyfile(ROOT / "templates" / "mteb_task.py", "idiolink_mteb.py")
    sys.path.insert(0, ".")
    task = import_module("idiolink_mteb").IdioLinkSentence()
    results = library.evaluate(load_sbert(), [task], cache=None)
    return 100 * float(results[0].scores["test"][0]["ndcg_at_10"])


WAYS: dict[str, Callable[[Path], float]] = {
    "pieline": pieline_bm25,
    "rank_bm25": rank_bm25,
    "bm25s": bm25s,
    "sbert": pieline_sbert,
    "evaluator": evaluator,
    "mteb": mteb,
}


def measure(way: str, folder: Path) -> None:
    """Run one way, and print seconds, CPU-seconds, peak MB and nDCG@10."""
    began = time.perf_counter()
    score = WAYS[way](folder)
    seconds, cpu = time.perf_counter() - began, sum(os.times()[:4])
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    peak = max(resource.getrusage(kind).ru_maxrss for kind in kinds) * 1024 / 1e6
    print(json.dumps([seconds, cpu, peak, score]))


def main() -> None:
    """Measure the ways in temporary folders, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="run on the papers' data")
    parser.add_argument("ways", metavar="WAY", nargs="*", help=f"one of {', '.join(WAYS)}")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(options.ways[0], options.folder)
        return
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    environment = os.environ | threads | {"HF_HUB_OFFLINE": "1", "TQDM_DISABLE": "1"}
    best: dict[str, list[float]] = {}
    for _ in range(options.rounds):
        for way in options.ways or WAYS:
            with tempfile.TemporaryDirectory() as place:
                command = [sys.executable, PROGRAM, options.folder.resolve(), way, "--measure"]
                printed = subprocess.check_output(command, cwd=place, env=environment)
            measured = json.loads(printed.splitlines()[-1])
            best[way] = min(measured, best.get(way, measured), key=lambda values: values[1])
    print(ROW.format("way", "seconds", "CPU-s", "peak MB", "nDCG@10"))
    for way, (seconds, cpu, peak, score) in best.items():
        print(ROW.format(way, f"{seconds:.0f}", f"{cpu:.1f}", f"{peak:.0f}", f"{score:.2f}"))


if __name__ == "__main__":
    main()
