"""Unpack weights that come as one GGUF file into a safetensors folder."""

import argparse
from pathlib import Path

from pieline.core.errors import run_command
from pieline.models.embedder import parse_spec
from pieline.models.weights import weights_location
from pieline.studies.idiolink.predictions.encoders import unpack_gguf


def main() -> None:
    """Parse the command line and unpack."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", required=True, help="the model's entry, as JSON")
    parser.add_argument("--output", type=Path, required=True, help="folder to write")
    arguments = parser.parse_args()
    entry = parse_spec(arguments.spec)
    unpack_gguf(Path(weights_location(entry)), arguments.output)


if __name__ == "__main__":
    run_command(main)
