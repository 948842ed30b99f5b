"""Fine-tune one embedder by contrastive learning, resuming a killed job from its last epoch."""

from pathlib import Path

from pieline.core.files import write_json
from pieline.core.jobs import job, optional_folder
from pieline.core.records import load_jsonl
from pieline.core.sidecars import write_digest_list
from pieline.models.embedder import ConfiguredEmbedder
from pieline.studies.idiolink.datasets.dataset import IdiolinkDataset, meaning_qrels
from pieline.studies.idiolink.datasets.tuples import TrainingTuple
from pieline.studies.idiolink.metrics.validation import ndcg_at_10
from pieline.studies.idiolink.predictions.embedding import (
    use_deterministic_kernels,
)
from pieline.studies.idiolink.predictions.encoders import load_encoder, save_folder
from pieline.studies.idiolink.training.contrastive import TrainingData, fine_tune
from pieline.studies.idiolink.training.settings import TrainingSettings

with job(snakemake):
    spec = ConfiguredEmbedder.from_spec(snakemake.params.spec)
    weights = optional_folder(snakemake.input.weights)
    checkpoint = Path(snakemake.output.log).with_name("checkpoint.pt")
    use_deterministic_kernels()
    train = IdiolinkDataset.load(Path(snakemake.input.train[0]).parent)
    validation = IdiolinkDataset.load(Path(snakemake.input.validation[0]).parent)
    qrels = meaning_qrels(validation.queries, validation.documents)
    model = load_encoder(spec, weights=weights, dtype="float32")
    log = fine_tune(
        model,
        spec,
        TrainingData(load_jsonl(snakemake.input.tuples, TrainingTuple), train, validation),
        TrainingSettings.model_validate_json(snakemake.params.settings),
        ndcg_at_10=lambda run: ndcg_at_10(run, qrels),
        checkpoint=checkpoint,
    )
    save_folder(model, snakemake.output.weights)
    write_digest_list(snakemake.output.weights, snakemake.output.digests)
    write_json(snakemake.output.log, log.model_dump())
    checkpoint.unlink(missing_ok=True)
