"""Path patterns of IdioLink's files, used by its rules and modules.

An index is named after its split (`test`), with a suffix if it excludes usages (`test-lit_idiom`).
A fine-tuned model is named after its base model, training mode and loss (`sbert+span+paper`).
"""

from typing import NamedTuple

from pieline.core.sidecars import LIST_ENDING

RELEASED_TUPLES = "results/raw/idiolink/{split}/triplets_{split}_full.jsonl"
"""Mined tuples of all training modes; the public span files have the same texts."""
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
"""Folder of the constructed dataset, in the released format."""
SAMPLED_TUPLES = "results/datasets/idiolink/{split}/tuples/sampled-seed-{seed}.jsonl"
MINED_TUPLES = "results/datasets/idiolink/{split}/tuples/released.jsonl"

WEIGHTS = "results/training/idiolink/{model}/{train_mode}/{loss}/seed-{seed}/weights"
WEIGHTS_DIGESTS = f"{WEIGHTS}{LIST_ENDING}"
TRAINING_LOG = "results/training/idiolink/{model}/{train_mode}/{loss}/seed-{seed}/training.json"

TUNING = "results/predictions/idiolink/{index}/{model}/{query_mode}/tuning.json"
RUN = "results/predictions/idiolink/{index}/{model}/{query_mode}/seed-{seed}.run.gz"
VECTORS = "results/predictions/idiolink/{split}/{model}/{texts}/seed-{seed}.npy"
"""Embeddings; `texts` is `documents`, or the query mode of the embedded queries."""

API_VECTORS = VECTORS.replace("{texts}", "vectors-{texts}")
"""Embeddings from an API."""

METRICS = "results/metrics/idiolink/{index}/{model}/{query_mode}/seed-{seed}.json"
QUERY_SCORES = "results/metrics/idiolink/{index}/{model}/{query_mode}/seed-{seed}.queries.csv"
SIGNIFICANCE = "results/metrics/idiolink/test/{model}/significance/seed-{seed}.json"
CHECKS = "results/metrics/idiolink/checks/{origin}.json"
CONSTRUCTION_METRICS = "results/metrics/idiolink/construction.json"


def dataset(index: str) -> dict[str, str]:
    """Return the paths of an index's dataset files, by name."""
    files = {"documents": "jsonl", "queries": "jsonl", "qrels": "txt"}
    paths = {name: f"results/datasets/idiolink/{index}/{name}.{end}" for name, end in files.items()}
    return paths | scoring_files(index)


def scoring_files(index: str) -> dict[str, str]:
    """Return the paths of the dataset files for scoring, which contain no texts, by name."""
    folder = f"results/datasets/idiolink/{index}"
    return {"meanings": f"{folder}/meanings.jsonl", "manifest": f"{folder}/manifest.json"}


class Training(NamedTuple):
    """Base model, training mode and loss of a fine-tuned model; `str()` returns its name."""

    model: str
    train_mode: str
    loss: str

    def __str__(self) -> str:
        return "+".join(self)


def training_of(model: str) -> Training | None:
    """Return the training of a fine-tuned model, by its name; None for other models."""
    parts = model.split("+")
    return Training(*parts) if len(parts) > 1 else None


def base_of(model: str) -> str:
    """Return the name in models.yaml of a model, which may be fine-tuned."""
    training = training_of(model)
    return training.model if training else model


def keys_of(index: str, model: str, query_mode: str, seed: int | str) -> dict[str, str]:
    """Return the keys of a run in the frame of numbers; only fine-tuned models have a seed."""
    keys = {
        "model": base_of(model),
        "query_mode": query_mode,
        "composition": index.partition("-")[2] or "full",
    }
    training = training_of(model)
    return {**training._asdict(), **keys, "seed": str(seed)} if training else keys


def index_of(composition: str) -> str:
    """Return the index with a composition of the test split."""
    return "test" if composition == "full" else f"test-{composition}"
