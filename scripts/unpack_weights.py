"""Convert the weights of a model from a GGUF file or a pickle to a safetensors folder."""

from pieline.core.jobs import start_log
from pieline.models.embedder import EmbedderEntry
from pieline.studies.idiolink.predictions.unpacking import unpack_weights

start_log(snakemake.log[0])
unpack_weights(EmbedderEntry.from_spec(snakemake.params.spec), snakemake.output[0])
