"""Embed the documents of a split with one model; the manifest lies beside the vectors."""

from pathlib import Path

from pieline.core.files import sha256
from pieline.core.program import Options, program
from pieline.core.records import load_jsonl
from pieline.models.embedder import EmbedderEntry
from pieline.models.weights import require_weights
from pieline.studies.idiolink.records import Document


@program(
    spec=EmbedderEntry.from_spec, weights=Path | None, documents=Path, threads=int, output=Path
)
def main(it: Options) -> None:
    require_weights(it.spec, it.weights)
    # These load torch.
    from pieline.studies.idiolink.predictions.embedding import embed_index, use_threads
    from pieline.studies.idiolink.predictions.encoders import (
        load_encoder,
        loaded_revision,
        weights_digests,
    )
    from pieline.studies.idiolink.predictions.vectors import Shards, save_manifest, save_vectors

    use_threads(it.threads)
    weights, texts = weights_digests(it.spec, it.weights), sha256(it.documents)
    model = load_encoder(it.spec, weights=it.weights)
    shards = Shards.beside(it.output, it.spec, weights=weights, texts=texts)
    documents = load_jsonl(it.documents, Document)
    save_vectors(it.output, embed_index(model, documents, it.spec, shards=shards))
    revision = loaded_revision(model)
    save_manifest(it.output, it.spec, revision=revision, weights=weights, texts=texts)
    shards.remove()
