"""Fine-tune one embedder by contrastive learning; a killed job goes on behind its last epoch."""

import argparse
from pathlib import Path

from pieline.core.errors import run_command
from pieline.core.files import write_json
from pieline.core.records import load_jsonl, parse_record
from pieline.models.embedder import parse_spec
from pieline.studies.idiolink.datasets.dataset import IdiolinkDataset
from pieline.studies.idiolink.datasets.tuples import TrainingTuple
from pieline.studies.idiolink.metrics.ranking import ndcg_at_10
from pieline.studies.idiolink.predictions.embedding import use_deterministic_kernels, use_threads
from pieline.studies.idiolink.predictions.encoders import load_encoder
from pieline.studies.idiolink.raw.released import meaning_qrels
from pieline.studies.idiolink.training.contrastive import TrainingData, fine_tune, save_weights
from pieline.studies.idiolink.training.settings import TrainingSettings


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
