r"""Test scores of SBERT after every epoch of contrastive fine-tuning, beside Table 5's.

The workflow keeps the epoch that is best on the validation split. This shows what each other epoch
would have given, so that one can see whether the choice of an epoch explains a difference from the
printed numbers.

    snakemake --cores 2 --directory runs/finetuned --configfile config/finetune_released.yaml \
        --config mirror=MIRROR -- paper_tables/idiolink_finetuned.tex
    python benchmarks/idiolink/finetuning_epochs.py runs/finetuned [--loss released]
"""

import argparse
from pathlib import Path

import numpy as np
import torch
from sentence_transformers import SentenceTransformer

from pieline.core.errors import run_command
from pieline.core.files import write_json
from pieline.core.records import load_jsonl
from pieline.models.embedder import EmbedderEntry
from pieline.models.registry import load_registry
from pieline.studies.idiolink.datasets.dataset import IdiolinkDataset
from pieline.studies.idiolink.datasets.tuples import TrainingTuple
from pieline.studies.idiolink.metrics.ranking import ndcg_at_10, score_queries
from pieline.studies.idiolink.predictions.embedding import (
    embed_index,
    embed_query_modes,
    use_threads,
)
from pieline.studies.idiolink.predictions.encoders import load_encoder
from pieline.studies.idiolink.predictions.runs import Run, cosine_scores, rank
from pieline.studies.idiolink.raw.released import meaning_qrels
from pieline.studies.idiolink.training.contrastive import TrainingData, fine_tune
from pieline.studies.idiolink.training.settings import TrainingSettings

ROOT = Path(__file__).parents[2]


def test_scores(
    model: SentenceTransformer, entry: EmbedderEntry, test: IdiolinkDataset
) -> dict[str, list[float]]:
    """R-Precision and nDCG@10 (per cent) by query mode, without instructions."""
    was_training = model.training
    model.eval()
    with torch.no_grad():
        vectors = embed_index(model, test.documents, entry, progress=False)
        queries = embed_query_modes(model, test.queries, entry)
    model.train(was_training)
    qrels = meaning_qrels(test.queries, test.documents)
    found = {}
    for mode in ("sentence", "span"):
        scores = cosine_scores(queries[mode], vectors)
        names = [document.id for document in test.documents]
        run = rank([query.id for query in test.queries], scores, names, top_k=100)
        rows = score_queries(run, qrels).values()
        found[mode] = [
            round(100 * float(np.mean([row[metric] for row in rows])), 2)
            for metric in ("r_precision", "ndcg_at_10")
        ]
    return found


def main() -> None:
    """Train, print and write the scores of every epoch."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("run", type=Path, help="folder with results/datasets/idiolink/")
    parser.add_argument("--loss", choices=["paper", "released"], default="released")
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--output", type=Path, help="JSON to write")
    arguments = parser.parse_args()

    use_threads(arguments.threads)
    entry = load_registry(ROOT / "models.yaml")["sbert"]
    assert isinstance(entry, EmbedderEntry)
    places = arguments.run / "results/datasets/idiolink"
    datasets = {split: IdiolinkDataset.load(places / split) for split in ("train", "val", "test")}
    validation = datasets["val"]
    qrels = meaning_qrels(validation.queries, validation.documents)
    model = load_encoder(entry, dtype="float32")
    epochs = []

    def score(run: Run) -> float:
        validated = ndcg_at_10(run, qrels)
        found = test_scores(model, entry, datasets["test"])
        epochs.append({"validation_ndcg_at_10": round(100 * validated, 2)} | found)
        print(len(epochs), epochs[-1], flush=True)
        return validated

    fine_tune(
        model,
        entry,
        TrainingData(
            load_jsonl(places / "train/tuples/released.jsonl", TrainingTuple),
            datasets["train"],
            validation,
        ),
        TrainingSettings(
            loss=arguments.loss,
            train_mode="sentence",
            seed=arguments.seed,
            max_epochs=arguments.epochs,
            patience=arguments.epochs,
        ),
        ndcg_at_10=score,
        progress=False,
    )
    if arguments.output:
        told = {"loss": arguments.loss, "seed": arguments.seed, "epochs": epochs}
        write_json(arguments.output, told)


if __name__ == "__main__":
    run_command(main)
