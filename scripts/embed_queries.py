"""Embed the queries of a split in all query modes with one model; manifests beside the vectors."""

from pathlib import Path

from pieline.core.files import sha256
from pieline.core.program import Options, program
from pieline.core.records import load_jsonl
from pieline.models.embedder import EmbedderEntry
from pieline.models.weights import require_weights
from pieline.studies.idiolink.records import Query


@program(
    spec=EmbedderEntry.from_spec, weights=Path | None, queries=Path, threads=int,
    outputs=(list[Path], "an npy file in the folder of each mode"),
)  # fmt: skip
def main(it: Options) -> None:
    require_weights(it.spec, it.weights)
    # These load torch.
    from pieline.studies.idiolink.predictions.embedding import embed_query_modes, use_threads
    from pieline.studies.idiolink.predictions.encoders import (
        load_encoder,
        loaded_revision,
        weights_digests,
    )
    from pieline.studies.idiolink.predictions.vectors import Shards, save_manifest, save_vectors

    use_threads(it.threads)
    weights, texts = weights_digests(it.spec, it.weights), sha256(it.queries)
    model = load_encoder(it.spec, weights=it.weights)
    shards = Shards.beside(it.outputs[0], it.spec, weights=weights, texts=texts)
    queries = load_jsonl(it.queries, Query)
    vectors = embed_query_modes(model, queries, it.spec, shards=shards)
    revision = loaded_revision(model)
    for output in it.outputs:
        save_vectors(output, vectors[output.parent.name])
        save_manifest(output, it.spec, revision=revision, weights=weights, texts=texts)
    shards.remove()
