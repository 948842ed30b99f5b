"""Embed the queries of a split in all query modes with one model; manifests beside the vectors."""

import argparse
from pathlib import Path

from pieline.core.errors import run_command
from pieline.core.files import sha256
from pieline.core.records import load_jsonl
from pieline.models.embedder import parse_spec
from pieline.studies.idiolink.predictions.embedding import embed_query_modes, use_threads
from pieline.studies.idiolink.predictions.encoders import (
    load_encoder,
    loaded_revision,
    weights_digests,
)
from pieline.studies.idiolink.predictions.vectors import Shards, save_manifest, save_vectors
from pieline.studies.idiolink.records import Query


def main() -> None:
    """Parse the command line and embed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", required=True, help="the model's entry, as JSON")
    parser.add_argument("--weights", type=Path, nargs="?", help="folder to load instead")
    parser.add_argument("--queries", type=Path, required=True)
    parser.add_argument("--threads", type=int, required=True)
    help_text = "an npy file in the folder of each mode"
    parser.add_argument("--outputs", type=Path, nargs=4, required=True, help=help_text)
    arguments = parser.parse_args()

    use_threads(arguments.threads)
    entry = parse_spec(arguments.spec)
    weights, texts = weights_digests(entry, arguments.weights), sha256(arguments.queries)
    model = load_encoder(entry, weights=arguments.weights)
    shards = Shards.beside(arguments.outputs[0], entry, weights=weights, texts=texts)
    queries = load_jsonl(arguments.queries, Query)
    vectors = embed_query_modes(model, queries, entry, shards=shards)
    revision = loaded_revision(model)
    for output in arguments.outputs:
        save_vectors(output, vectors[output.parent.name])
        save_manifest(output, entry, revision=revision, weights=weights, texts=texts)
    shards.remove()


if __name__ == "__main__":
    run_command(main)
