"""Embed the documents of a split with one model; the manifest lies beside the vectors."""

from pieline.core.files import sha256
from pieline.core.jobs import optional, start_log
from pieline.core.records import load_jsonl
from pieline.models.embedder import EmbedderEntry
from pieline.models.weights import require_weights
from pieline.studies.idiolink.predictions.embedding import embed_index, use_threads
from pieline.studies.idiolink.predictions.encoders import (
    load_encoder,
    loaded_revision,
    weights_digests,
)
from pieline.studies.idiolink.predictions.vectors import Shards, save_manifest, save_vectors
from pieline.studies.idiolink.records import Document

start_log(snakemake.log[0])
spec = EmbedderEntry.from_spec(snakemake.params.spec)
weights = optional(snakemake.input.weights)
output = snakemake.output.vectors
require_weights(spec, weights)
use_threads(snakemake.threads)
digest, texts = weights_digests(spec, weights), sha256(snakemake.input.documents)
model = load_encoder(spec, weights=weights)
shards = Shards.beside(output, spec, weights=digest, texts=texts)
documents = load_jsonl(snakemake.input.documents, Document)
save_vectors(output, embed_index(model, documents, spec, shards=shards))
revision = loaded_revision(model)
save_manifest(output, spec, revision=revision, weights=digest, texts=texts)
shards.remove()
