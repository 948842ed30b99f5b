"""Embed the documents and queries of a split with one model; write the vectors."""

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
    texts, asked = sha256(snakemake.input.documents), sha256(snakemake.input.queries)
    output, outputs = snakemake.output.documents, snakemake.output.queries
    shards = (
        Shards.beside(output, entry, weights=digests, texts=texts),
        Shards.beside(outputs[0], entry, weights=digests, texts=asked),
    )
    documents = load_jsonl(snakemake.input.documents, Document)
    queries = load_jsonl(snakemake.input.queries, Query)
    of_documents = embed_index(model, documents, entry, shards=shards[0])
    of_queries = embed_query_modes(model, queries, entry, shards=shards[1])
    save_vectors(output, of_documents)
    for path in outputs:
        save_vectors(path, of_queries[Path(path).parent.name])
    for unfinished in shards:
        unfinished.remove()
