"""Fine-tune one embedder by contrastive learning; a killed job goes on behind its last epoch."""

import argparse
from pathlib import Path

from pieline.corpora.idiolink import meaning_qrels
from pieline.errors import run_command
from pieline.files import write_json
from pieline.idiolink.datasets import IdiolinkDataset
from pieline.idiolink.retrieval.contrastive import TrainingData, fine_tune, save_weights
from pieline.idiolink.retrieval.embedding import use_deterministic_kernels, use_threads
from pieline.idiolink.retrieval.encoders import load_encoder
from pieline.idiolink.retrieval.training_settings import TrainingSettings
from pieline.idiolink.retrieval.tuples import TrainingTuple
from pieline.metrics.ranking import ndcg_at_10
from pieline.records import load_jsonl, parse_record
from pieline.registry import parse_spec


def main() -> None:
    """Parse the command line and train."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", required=True, help="the model's entry, as JSON")
    parser.add_argument("--weights", type=Path, nargs="?", help="folder to start from instead")
    parser.add_argument("--settings", required=True, help="hyperparameters, as JSON")
    parser.add_argument("--tuples", type=Path, required=True)
    parser.add_argument("--train", type=Path, required=True, help="dataset folder")
    parser.add_argument("--validation", type=Path, required=True, help="dataset folder")
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--checkpoint", type=Path, required=True, help="kept while unfinished")
    parser.add_argument("--output", type=Path, required=True, help="folder to write")
    parser.add_argument("--log", type=Path, required=True, help="JSON of the epochs to write")
    arguments = parser.parse_args()

    use_threads(arguments.threads)
    use_deterministic_kernels()
    entry = parse_spec(arguments.spec)
    train = IdiolinkDataset.load(arguments.train)
    validation = IdiolinkDataset.load(arguments.validation)
    qrels = meaning_qrels(validation.queries, validation.documents)
    model = load_encoder(entry, weights=arguments.weights, dtype="float32")
    log = fine_tune(
        model,
        entry,
        TrainingData(load_jsonl(arguments.tuples, TrainingTuple), train, validation),
        parse_record(arguments.settings, TrainingSettings, option="--settings"),
        ndcg_at_10=lambda run: ndcg_at_10(run, qrels),
        checkpoint=arguments.checkpoint,
    )
    save_weights(model, arguments.output)
    write_json(arguments.log, log.model_dump())
    arguments.checkpoint.unlink(missing_ok=True)


if __name__ == "__main__":
    run_command(main)
