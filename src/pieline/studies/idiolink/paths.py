"""Define the path patterns of IdioLink's files, for rules and modules.

An index is named after its split (`test`), with a suffix if it excludes usages (`test-lit_idiom`).
A fine-tuned model is named after its base model, training mode and loss (`sbert+span+paper`).
"""

from typing import NamedTuple

from pieline.core.sidecars import LIST_ENDING

RELEASED_TUPLES = "results/raw/idiolink/{split}/triplets_{split}_full.jsonl"
"""The authors' mined training tuples.

All training modes use this file: its texts are the same as in the public files for span modes.
"""
CANDIDATES = "results/raw/idiolink/MAGPIE_SOURCE_IDIOMS.csv"

EXCLUSIONS = "results/originals/idiolink/exclusions.tsv"
PIES = "results/originals/idiolink/pies.jsonl"
PAIRS = "results/originals/idiolink/pairs.jsonl"
FILTER_REPORT = "results/originals/idiolink/filter_report.json"
SPLITS_FILE = "results/originals/idiolink/splits.json"

TEXTS = "results/variants/idiolink/{collection}.texts.jsonl"
TEXTS_REPORT = "results/variants/idiolink/{collection}.report.json"
VERDICTS = "results/variants/idiolink/{collection}.verdicts.jsonl"
REVIEW = "results/variants/idiolink/review.csv"
REVIEW_GUIDELINES = "results/variants/idiolink/review_guidelines.txt"
REVIEW_TASKS = "results/variants/idiolink/review_tasks.json"
REVIEW_LABELLING = "results/variants/idiolink/review_labelling.xml"

CONSTRUCTED = "results/datasets/idiolink/constructed"
"""Folder of the constructed dataset, in the format of the public data."""
SAMPLED_TUPLES = "results/datasets/idiolink/{split}/tuples/sampled-seed-{seed}.jsonl"
MINED_TUPLES = "results/datasets/idiolink/{split}/tuples/released.jsonl"

WEIGHTS = "results/training/idiolink/{model}/{train_mode}/{loss}/seed-{seed}/weights"
WEIGHTS_DIGESTS = f"{WEIGHTS}{LIST_ENDING}"
TRAINING_LOG = "results/training/idiolink/{model}/{train_mode}/{loss}/seed-{seed}/training.json"

TUNING = "results/predictions/idiolink/{index}/{model}/{query_mode}/tuning.json"
RUN = "results/predictions/idiolink/{index}/{model}/{query_mode}/seed-{seed}.run.gz"
VECTORS = "results/predictions/idiolink/{split}/{model}/{texts}/seed-{seed}.npy"
"""Embeddings of a split; `texts` is `documents`, or the query mode of the embedded queries."""

API_VECTORS = VECTORS.replace("{texts}", "vectors-{texts}")
"""Embeddings that an API computed."""

METRICS = "results/metrics/idiolink/{index}/{model}/{query_mode}/seed-{seed}.json"
QUERY_SCORES = "results/metrics/idiolink/{index}/{model}/{query_mode}/seed-{seed}.queries.csv"
SIGNIFICANCE = "results/metrics/idiolink/test/{model}/significance/seed-{seed}.json"
CHECKS = "results/metrics/idiolink/checks/{origin}.json"
CONSTRUCTION_METRICS = "results/metrics/idiolink/construction.json"


def dataset(index: str) -> dict[str, str]:
    """Map the name of each dataset file of an index to its path."""
    folder = f"results/datasets/idiolink/{index}"
    return {
        "documents": f"{folder}/documents.jsonl",
        "queries": f"{folder}/queries.jsonl",
        "qrels": f"{folder}/qrels.txt",
        **scoring_files(index),
    }


def scoring_files(index: str) -> dict[str, str]:
    """Map the name of each dataset file without texts, which scoring reads, to the file's path."""
    folder = f"results/datasets/idiolink/{index}"
    return {"meanings": f"{folder}/meanings.jsonl", "manifest": f"{folder}/manifest.json"}


class Training(NamedTuple):
    """Base model, training mode and loss of a fine-tuned model.

    `str()` returns the name of the fine-tuned model.
    """

    model: str
    train_mode: str
    loss: str

    def __str__(self) -> str:
        return "+".join(self)


def training_of(model: str) -> Training | None:
    """Parse the name of a fine-tuned model; return None for a model that is not fine-tuned."""
    if "+" not in model:
        return None
    base, train_mode, loss = model.split("+")
    return Training(base, train_mode, loss)


def base_of(model: str) -> str:
    """Return a model's name in models.yaml; for a fine-tuned model, the name of its base model."""
    training = training_of(model)
    return training.model if training else model


def split_of(index: str) -> str:
    """Return the split from which an index is made, such as `test` for `test-lit_idiom`."""
    return index.partition("-")[0]


def composition_of(index: str) -> str:
    """Return the composition of an index, such as `lit_idiom` for `test-lit_idiom`."""
    return index.partition("-")[2] or "full"


def index_of(composition: str) -> str:
    """Return the name of the test split's index with a composition, such as `test-lit_idiom`."""
    return "test" if composition == "full" else f"test-{composition}"


def keys_of(index: str, model: str, query_mode: str, seed: int | str) -> dict[str, str]:
    """Return the keys of a run in the frame of numbers.

    Only the runs of fine-tuned models have the keys `train_mode`, `loss` and `seed`.
    """
    ranking_keys = {"query_mode": query_mode, "composition": composition_of(index)}
    training = training_of(model)
    if training is None:
        return {"model": model, **ranking_keys}
    return {**training._asdict(), **ranking_keys, "seed": str(seed)}
