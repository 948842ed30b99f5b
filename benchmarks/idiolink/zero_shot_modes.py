"""Time SBERT's four zero-shot modes: the released runner's method and the library.

Every method starts from loaded data and returns R-Precision and nDCG@10 of the four query modes
on one split; times include loading the model. `each_mode` works like the released runner: in each
mode it embeds documents and queries with `encode`, and spans one text at a time. `documents_once`
embeds the documents only for the first mode. These methods and the library must give the same
numbers. `each_text_once` only encodes each text once, without spans, ranking and scores.

    python benchmarks/idiolink/zero_shot_modes.py DATA [--threads 2] [--documents N] [--queries N]

DATA is a folder with the indexes.json and queries.json of a split, such as the released test split.
"""

import argparse
import itertools
import json
import math
import time
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer

from pieline.core.errors import run_command
from pieline.core.files import write_json
from pieline.models.embedder import ConfiguredEmbedder, EmbedderEntry
from pieline.models.registry import load_registry
from pieline.models.weights import weights_location
from pieline.studies.idiolink.datasets.dataset import meaning_qrels
from pieline.studies.idiolink.metrics.scores import score_queries
from pieline.studies.idiolink.predictions.embedding import (
    embed_index,
    embed_query_modes,
)
from pieline.studies.idiolink.predictions.encoders import load_encoder
from pieline.studies.idiolink.predictions.query_texts import instructed_text
from pieline.studies.idiolink.predictions.rankings import cosine_scores, rank
from pieline.studies.idiolink.raw import read_texts
from pieline.studies.idiolink.records import Document, Query

ROOT = Path(__file__).parents[2]
MODES = ("sentence", "span", "instruction_sentence", "instruction_span")
Numbers = dict[str, tuple[float, float]]
"""R-Precision and nDCG@10 (percent) by query mode."""


def each_mode(
    documents: list[Document],
    queries: list[Query],
    entry: ConfiguredEmbedder,
    *,
    once: bool = False,
) -> Numbers:
    """Score each mode separately; embed one span at a time, and compute metrics by definition.

    With `once`, the documents are embedded only for the first mode.
    """
    model = SentenceTransformer(weights_location(entry), device="cpu")
    model.max_seq_length = entry.max_length
    relevant = {name: set(qrels) for name, qrels in meaning_qrels(queries, documents).items()}
    names = np.array([document.id for document in documents])
    result: Numbers = {}
    vectors = None
    for mode in MODES:
        if vectors is None or not once:
            vectors = model.encode([document.sentence for document in documents])
        texts = [query.sentence for query in queries]
        if mode.startswith("instruction"):
            style = entry.instruction_format
            texts = [instructed_text(query, instruction_format=style).text for query in queries]
        if mode.endswith("span"):
            embedded = np.stack(
                [
                    span_vector(model, text, query.span, last=mode.startswith("instruction"))
                    for text, query in zip(texts, queries, strict=True)
                ]
            )
        else:
            embedded = model.encode(texts)
        scores = model.similarity(embedded, vectors).numpy()
        r_precision, ndcg = [], []
        for query, row in zip(queries, scores, strict=True):
            ranked = names[np.lexsort((names, row))[::-1]]
            targets = relevant[query.id]
            r_precision.append(
                sum(name in targets for name in ranked[: len(targets)]) / len(targets)
            )
            gains = [
                (name in targets) / math.log2(place + 2) for place, name in enumerate(ranked[:10])
            ]
            ideal = sum(1 / math.log2(place + 2) for place in range(min(10, len(targets))))
            ndcg.append(sum(gains) / ideal)
        result[mode] = (100 * float(np.mean(r_precision)), 100 * float(np.mean(ndcg)))
    return result


def documents_once(
    documents: list[Document], queries: list[Query], entry: ConfiguredEmbedder
) -> Numbers:
    """Score as `each_mode` does, but embed the documents only once."""
    return each_mode(documents, queries, entry, once=True)


def each_text_once(
    documents: list[Document], queries: list[Query], entry: ConfiguredEmbedder
) -> Numbers:
    """Encode each distinct text once, without spans and scores; return an empty dictionary."""
    model = SentenceTransformer(weights_location(entry), device="cpu")
    model.max_seq_length = entry.max_length
    style = entry.instruction_format
    texts = [item.sentence for item in (*documents, *queries)]
    texts += [instructed_text(query, instruction_format=style).text for query in queries]
    model.encode(sorted(set(texts)))
    return {}


def span_vector(
    model: SentenceTransformer, text: str, span: str, *, last: bool
) -> NDArray[np.float32]:
    """Return the mean of the token vectors of a span, at its first or last occurrence in a text."""
    start = text.rfind(span) if last else text.find(span)
    encoded = model.tokenizer(
        text, truncation=True, max_length=model.max_seq_length, return_offsets_mapping=True
    )
    offsets = encoded.pop("offset_mapping")
    inputs = {name: torch.tensor([values]) for name, values in encoded.items()}
    with torch.no_grad():
        hidden = model[0].auto_model(**inputs).last_hidden_state[0]
    chosen = [
        place
        for place, (first, end) in enumerate(offsets)
        if first < start + len(span) and end > start and end > first
    ]
    vector: NDArray[np.float32] = hidden[chosen].mean(dim=0).numpy()
    return vector


def library(documents: list[Document], queries: list[Query], entry: ConfiguredEmbedder) -> Numbers:
    """Score as the workflow does."""
    model = load_encoder(entry, device="cpu")
    vectors = embed_index(model, documents, entry, progress=False)
    qrels = meaning_qrels(queries, documents)
    names = [document.id for document in documents]
    result = {}
    for mode, embedded in embed_query_modes(model, queries, entry).items():
        scores = cosine_scores(embedded, vectors)
        run = rank([query.id for query in queries], scores, names, top_k=100)
        rows = score_queries(run, qrels).values()
        result[mode] = (
            100 * float(np.mean([row["r_precision"] for row in rows])),
            100 * float(np.mean([row["ndcg_at_10"] for row in rows])),
        )
    return result


def main() -> None:
    """Run all methods in each round; print and save times and numbers."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--documents", type=int, help="use only the first N documents")
    parser.add_argument("--queries", type=int, help="use only the first N queries")
    parser.add_argument(
        "--rounds", type=int, default=1, help="number of rounds; the fastest one counts"
    )
    parser.add_argument("--output", type=Path, help="output file (JSON)")
    arguments = parser.parse_args()

    torch.set_num_threads(arguments.threads)
    sbert = load_registry(ROOT / "models.yaml")["sbert"]
    assert isinstance(sbert, EmbedderEntry)
    entry = sbert.with_inputs("paper")
    documents = read_texts(arguments.data / "indexes.json", Document)[: arguments.documents]
    queries = read_texts(arguments.data / "queries.json", Query)[: arguments.queries]
    seconds: dict[str, list[float]] = {}
    numbers: dict[str, Numbers] = {}
    for _ in range(arguments.rounds):
        for way in (each_mode, documents_once, each_text_once, library):
            start, cpu_start = time.perf_counter(), time.process_time()
            numbers[way.__name__] = way(documents, queries, entry)
            seconds.setdefault(way.__name__, []).append(time.perf_counter() - start)
            seconds.setdefault(f"{way.__name__}_cpu", []).append(time.process_time() - cpu_start)
    naive = ("each_mode", "documents_once")
    for name, mode in itertools.product(naive, MODES):
        ours, theirs = numbers["library"][mode], numbers[name][mode]
        assert np.allclose(ours, theirs, atol=0.005), (name, mode, ours, theirs)
    best = {name: round(min(times), 1) for name, times in seconds.items()}
    results = {
        "documents": len(documents),
        "queries": len(queries),
        "threads": arguments.threads,
        "seconds": best,
        "times_faster": {way: round(best[way] / best["library"], 2) for way in naive},
        "times_less_cpu": {
            way: round(best[f"{way}_cpu"] / best["library_cpu"], 2) for way in naive
        },
        "times_each_text_once": round(best["library"] / best["each_text_once"], 2),
        "numbers": numbers["library"],
    }
    print(json.dumps(results, indent=2))
    if arguments.output:
        write_json(arguments.output, results)


if __name__ == "__main__":
    run_command(main)
