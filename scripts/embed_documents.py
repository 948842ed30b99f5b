"""Embed the documents of a split with one model; the manifest lies beside the vectors."""

import argparse
from pathlib import Path

from pieline.core.errors import run_command
from pieline.core.files import sha256
from pieline.core.records import load_jsonl
from pieline.models.embedder import parse_spec
from pieline.studies.idiolink.predictions.embedding import embed_index, use_threads
from pieline.studies.idiolink.predictions.encoders import (
    load_encoder,
    loaded_revision,
    weights_digests,
)
from pieline.studies.idiolink.predictions.vectors import Shards, save_manifest, save_vectors
from pieline.studies.idiolink.records import Document


def main() -> None:
    """Parse the command line and embed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", required=True, help="the model's entry, as JSON")
    parser.add_argument("--weights", type=Path, nargs="?", help="folder to load instead")
    parser.add_argument("--documents", type=Path, required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--output", type=Path, required=True, help="npy file")
    arguments = parser.parse_args()

    use_threads(arguments.threads)
    entry = parse_spec(arguments.spec)
    weights, texts = weights_digests(entry, arguments.weights), sha256(arguments.documents)
    model = load_encoder(entry, weights=arguments.weights)
    shards = Shards.beside(arguments.output, entry, weights=weights, texts=texts)
    documents = load_jsonl(arguments.documents, Document)
    save_vectors(arguments.output, embed_index(model, documents, entry, shards=shards))
    revision = loaded_revision(model)
    save_manifest(arguments.output, entry, revision=revision, weights=weights, texts=texts)
    shards.remove()


if __name__ == "__main__":
    run_command(main)
