"""Unpack weights that come as one GGUF file into a safetensors folder."""

from pathlib import Path

from pieline.core.program import Options, program
from pieline.models.embedder import EmbedderEntry
from pieline.models.weights import weights_location
from pieline.studies.idiolink.predictions.encoders import unpack_gguf


@program(spec=EmbedderEntry.from_spec, output=(Path, "folder to write"))
def main(it: Options) -> None:
    unpack_gguf(Path(weights_location(it.spec)), it.output)
