r"""Fine-tune SBERT with the released code's choices, changing one choice at a time.

Each run trains on sentences without instructions and is tested in the four query modes. Results
already in the output file are skipped, so an interrupted series can be resumed.

    python benchmarks/idiolink/finetuning_choices.py ../shared/mirror/idiolink \
        --choices released "no dropout" --seeds 42 43 44 \
        --output benchmarks/idiolink/finetuning_choices.json
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
from sentence_transformers import SentenceTransformer

from pieline.core.errors import run_command
from pieline.core.files import write_json
from pieline.models.embedder import ConfiguredEmbedder, EmbedderEntry
from pieline.models.registry import load_registry
from pieline.studies.idiolink.datasets.dataset import IdiolinkDataset, meaning_qrels
from pieline.studies.idiolink.datasets.tuples import (
    TrainingTuple,
    read_released_tuples,
    sample_tuples,
)
from pieline.studies.idiolink.metrics.scores import score_queries
from pieline.studies.idiolink.metrics.validation import ndcg_at_10
from pieline.studies.idiolink.predictions.embedding import (
    embed_index,
    embed_query_modes,
    use_deterministic_kernels,
)
from pieline.studies.idiolink.predictions.encoders import load_encoder
from pieline.studies.idiolink.predictions.rankings import cosine_scores, rank
from pieline.studies.idiolink.raw import read_texts
from pieline.studies.idiolink.records import Document, Query
from pieline.studies.idiolink.training.contrastive import TrainingData, fine_tune
from pieline.studies.idiolink.training.settings import TrainingSettings

ROOT = Path(__file__).parents[2]
RELEASED = {"loss": "released", "train_mode": "sentence", "drop_last": True, "min_delta": 0.0}

CHOICES: dict[str, dict[str, Any]] = {
    "released": {},
    "no dropout": {"dropout": False},
    "no weight decay": {"settings": {"weight_decay": 0.0}},
    "all batches": {"settings": {"drop_last": False}},
    "batches of seed 42": {"order": 42},
    "sampled tuples": {"sampled": True},
    "prefixes": {"entry": {"query_prefix": "query: ", "passage_prefix": "passage: "}},
    "equation 2": {"settings": {"loss": "paper"}},
}
"""Changes to the released settings, by choice."""


def load(folder: Path, split: str) -> IdiolinkDataset:
    """Load a split from the released files."""
    documents = read_texts(folder / split / "indexes.json", Document)
    queries = read_texts(folder / split / "queries.json", Query)
    return IdiolinkDataset(split, "full", True, documents, queries)


def test_scores(
    model: SentenceTransformer, entry: ConfiguredEmbedder, test: IdiolinkDataset
) -> dict[str, list[float]]:
    """Return R-Precision and nDCG@10 (percent) by query mode."""
    vectors = embed_index(model, test.documents, entry, progress=False)
    queries = embed_query_modes(model, test.queries, entry)
    qrels = meaning_qrels(test.queries, test.documents)
    names = [document.id for document in test.documents]
    results = {}
    for mode, embedded in queries.items():
        scores = cosine_scores(embedded, vectors)
        run = rank([query.id for query in test.queries], scores, names, top_k=100)
        rows = score_queries(run, qrels).values()
        results[mode] = [
            round(100 * float(np.mean([row[metric] for row in rows])), 2)
            for metric in ("r_precision", "ndcg_at_10")
        ]
    return results


def train(folder: Path, choice: dict[str, Any], seed: int, checkpoint: Path) -> dict[str, Any]:
    """Train once; return the validation scores by epoch, the best epoch and the test scores."""
    registered = load_registry(ROOT / "models.yaml")["sbert"]
    assert isinstance(registered, EmbedderEntry)
    entry = registered.with_inputs("paper").model_copy(update=choice.get("entry", {}))
    datasets = {split: load(folder, split) for split in ("train", "val", "test")}
    train_split, validation = datasets["train"], datasets["val"]
    texts = train_split.queries, train_split.documents
    tuples: list[TrainingTuple] = (
        sample_tuples(*texts, seed=seed)
        if choice.get("sampled")
        else read_released_tuples(folder / "train/triplets_train_full.jsonl", *texts)
    )
    qrels = meaning_qrels(validation.queries, validation.documents)
    model = load_encoder(entry, dtype="float32")
    if not choice.get("dropout", True):
        for module in model.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0
            for name in ("attention_dropout", "dropout_prob"):
                if hasattr(module, name):
                    setattr(module, name, 0.0)
    settings = TrainingSettings.model_validate(
        RELEASED | {"seed": seed} | choice.get("settings", {})
    )
    began = time.monotonic()
    generator = np.random.default_rng

    def of_epoch(seeds: list[int]) -> np.random.Generator:
        """Return the generator of the order of tuples in an epoch."""
        return generator([choice.get("order", seeds[0]), seeds[1]])

    with mock.patch.object(np.random, "default_rng", of_epoch):
        log = fine_tune(
            model,
            entry,
            TrainingData(tuples, train_split, validation),
            settings,
            ndcg_at_10=lambda run: ndcg_at_10(run, qrels),
            checkpoint=checkpoint,
        )
    return {
        "validation_ndcg_at_10": [
            round(100 * epoch.validation_ndcg_at_10, 2) for epoch in log.epochs
        ],
        "kept": log.best_epoch,
        "test": test_scores(model, entry, datasets["test"]),
        "minutes": round((time.monotonic() - began) / 60, 1),
    }


def main() -> None:
    """Train all runs that are missing from the output, and save it after each one."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=Path, help="folder that contains train/, val/ and test/")
    parser.add_argument("--choices", nargs="+", choices=CHOICES, default=["released"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[42, 43, 44])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--output", type=Path, required=True, help="output file (JSON)")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    use_deterministic_kernels()
    results = json.loads(arguments.output.read_text()) if arguments.output.exists() else {}
    for choice in arguments.choices:
        for seed in map(str, arguments.seeds):
            if seed in results.get(choice, {}):
                continue
            checkpoint = arguments.output.with_suffix(f".{choice.replace(' ', '_')}.{seed}.pt")
            results.setdefault(choice, {})[seed] = train(
                arguments.data, CHOICES[choice], int(seed), checkpoint
            )
            write_json(arguments.output, results)
            checkpoint.unlink(missing_ok=True)
            print(choice, seed, results[choice][seed], flush=True)


if __name__ == "__main__":
    run_command(main)
