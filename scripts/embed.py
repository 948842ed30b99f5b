"""Embed the documents and queries of a split with one model, and write the vectors."""

from pathlib import Path

from pieline.core.files import sha256
from pieline.core.jobs import job, optional_folder
from pieline.core.records import load_jsonl
from pieline.models.embedder import ConfiguredEmbedder
from pieline.studies.idiolink.predictions.embedding import (
    embed_index,
    embed_query_modes,
)
from pieline.studies.idiolink.predictions.encoders import (
    load_encoder,
    weights_digests,
)
from pieline.studies.idiolink.predictions.vectors import Shards, save_vectors
from pieline.studies.idiolink.records import Document, Query

with job(snakemake):
    entry = ConfiguredEmbedder.from_spec(snakemake.params.spec)
    folder = optional_folder(snakemake.input.weights)
    digests = weights_digests(entry, folder)
    model = load_encoder(entry, weights=folder, device=entry.device)
    documents_path, query_paths = snakemake.output.documents, snakemake.output.queries
    document_shards = Shards.beside(
        documents_path, entry, weights=digests, texts=sha256(snakemake.input.documents)
    )
    query_shards = Shards.beside(
        query_paths[0], entry, weights=digests, texts=sha256(snakemake.input.queries)
    )
    documents = load_jsonl(snakemake.input.documents, Document)
    queries = load_jsonl(snakemake.input.queries, Query)
    document_vectors = embed_index(model, documents, entry, shards=document_shards)
    query_vectors = embed_query_modes(model, queries, entry, shards=query_shards)
    save_vectors(documents_path, document_vectors)
    for path in query_paths:
        save_vectors(path, query_vectors[Path(path).parent.name])
    document_shards.remove()
    query_shards.remove()
