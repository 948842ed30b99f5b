"""Where the files of IdioLink are: every path pattern of the study, used by its rules and study.py.

An index is a split (`test`), or a split without some usages (`test-lit_idiom`).
"""

RELEASED_TUPLES = "results/raw/idiolink/{split}/triplets_{split}_full.jsonl"
"""The mined tuples of the sentence modes; those of the span modes are not public."""
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
REVIEW_TASKS = "results/variants/idiolink/review_tasks.json"
REVIEW_LABELLING = "results/variants/idiolink/review_labelling.xml"

CONSTRUCTED = "results/datasets/idiolink/constructed"
"""Folder of the constructed data set, in the released format."""
SAMPLED_TUPLES = "results/datasets/idiolink/{split}/tuples/sampled-seed-{seed}.jsonl"
MINED_TUPLES = "results/datasets/idiolink/{split}/tuples/released.jsonl"

WEIGHTS = "results/training/idiolink/{model}/{train_mode}/{loss}/seed-{seed}/weights"
TRAINING_LOG = "results/training/idiolink/{model}/{train_mode}/{loss}/seed-{seed}/training.json"

TUNING = "results/predictions/idiolink/{index}/{model}/{query_mode}/tuning.json"
RUN = "results/predictions/idiolink/{index}/{model}/{query_mode}/seed-{seed}.run.gz"
VECTORS = "results/predictions/idiolink/{split}/{model}/{texts}/seed-{seed}.npy"
"""Embeddings of `documents`, or of the queries in a query mode."""
VECTORS_MANIFEST = "results/predictions/idiolink/{split}/{model}/{texts}/seed-{seed}.json"

API_VECTORS = VECTORS.replace("{texts}", "vectors-{texts}")
"""Those of a provider, each file with evidence of its own."""

METRICS = "results/metrics/idiolink/{index}/{model}/{query_mode}/seed-{seed}.json"
QUERY_SCORES = "results/metrics/idiolink/{index}/{model}/{query_mode}/seed-{seed}.queries.csv"
SIGNIFICANCE = "results/metrics/idiolink/test/{model}/significance/seed-{seed}.json"
SHORTCUTS = "results/metrics/idiolink/test/{model}/{query_mode}/seed-{seed}.shortcuts.json"
CHECKS = "results/metrics/idiolink/checks/{origin}.json"
CONSTRUCTION_METRICS = "results/metrics/idiolink/construction.json"


def dataset(index: str) -> dict[str, str]:
    """The files of a data set by name: a split, or a split without some usages."""
    files = {"documents": "jsonl", "queries": "jsonl", "qrels": "txt"}
    paths = {name: f"results/datasets/idiolink/{index}/{name}.{end}" for name, end in files.items()}
    return paths | scoring_files(index)


def scoring_files(index: str) -> dict[str, str]:
    """Those of them that scoring reads: what the texts mean, without their wording."""
    folder = f"results/datasets/idiolink/{index}"
    return {"meanings": f"{folder}/meanings.jsonl", "manifest": f"{folder}/manifest.json"}
