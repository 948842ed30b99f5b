"""Unpack weights that come as one GGUF file, or as a pickle, into a safetensors folder."""

from pathlib import Path

from pieline.core.program import Options, program
from pieline.models.embedder import EmbedderEntry
from pieline.studies.idiolink.predictions.encoders import unpack_weights


@program(spec=EmbedderEntry.from_spec, output=(Path, "folder to write"))
def main(it: Options) -> None:
    unpack_weights(it.spec, it.output)
