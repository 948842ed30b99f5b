"""Fine-tune one embedder by contrastive learning; a killed job goes on after its last epoch."""

from pathlib import Path

from pieline.core.files import write_json
from pieline.core.program import Options, program
from pieline.core.records import load_jsonl
from pieline.models.embedder import EmbedderEntry
from pieline.models.weights import require_weights
from pieline.studies.idiolink.datasets.dataset import IdiolinkDataset
from pieline.studies.idiolink.datasets.tuples import TrainingTuple
from pieline.studies.idiolink.metrics.validation import ndcg_at_10
from pieline.studies.idiolink.raw.released import meaning_qrels
from pieline.studies.idiolink.training.settings import TrainingSettings


@program(
    spec=EmbedderEntry.from_spec, weights=Path | None, settings=TrainingSettings,
    tuples=(Path, "training tuples, JSONL"), train=(Path, "folder of the dataset"),
    validation=(Path, "folder of the dataset"), threads=int, checkpoint=Path,
    output=(Path, "folder to write"), log=(Path, "JSON of the epochs to write"),
)  # fmt: skip
def main(it: Options) -> None:
    require_weights(it.spec, it.weights)
    # These load torch.
    from pieline.studies.idiolink.predictions.embedding import (
        use_deterministic_kernels,
        use_threads,
    )
    from pieline.studies.idiolink.predictions.encoders import load_encoder, save_folder
    from pieline.studies.idiolink.training.contrastive import TrainingData, fine_tune

    use_threads(it.threads)
    use_deterministic_kernels()
    train = IdiolinkDataset.load(it.train)
    validation = IdiolinkDataset.load(it.validation)
    qrels = meaning_qrels(validation.queries, validation.documents)
    model = load_encoder(it.spec, weights=it.weights, dtype="float32")
    log = fine_tune(
        model,
        it.spec,
        TrainingData(load_jsonl(it.tuples, TrainingTuple), train, validation),
        it.settings,
        ndcg_at_10=lambda run: ndcg_at_10(run, qrels),
        checkpoint=it.checkpoint,
    )
    save_folder(model, it.output)
    write_json(it.log, log.model_dump())
    it.checkpoint.unlink(missing_ok=True)
