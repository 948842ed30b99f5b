"""Embed the queries of a split in all query modes with one model; manifests beside the vectors."""

from pathlib import Path

from pieline.core.files import sha256
from pieline.core.jobs import optional, start_log
from pieline.core.records import load_jsonl
from pieline.models.embedder import EmbedderEntry
from pieline.models.weights import require_weights
from pieline.studies.idiolink.predictions.embedding import embed_query_modes, use_threads
from pieline.studies.idiolink.predictions.encoders import (
    load_encoder,
    loaded_revision,
    weights_digests,
)
from pieline.studies.idiolink.predictions.vectors import Shards, save_manifest, save_vectors
from pieline.studies.idiolink.records import Query

start_log(snakemake.log[0])
spec = EmbedderEntry.from_spec(snakemake.params.spec)
weights = optional(snakemake.input.weights)
require_weights(spec, weights)
use_threads(snakemake.threads)
digest, texts = weights_digests(spec, weights), sha256(snakemake.input.queries)
model = load_encoder(spec, weights=weights)
shards = Shards.beside(snakemake.output.vectors[0], spec, weights=digest, texts=texts)
queries = load_jsonl(snakemake.input.queries, Query)
vectors = embed_query_modes(model, queries, spec, shards=shards)
revision = loaded_revision(model)
for output in snakemake.output.vectors:
    save_vectors(output, vectors[Path(output).parent.name])
    save_manifest(output, spec, revision=revision, weights=digest, texts=texts)
shards.remove()
