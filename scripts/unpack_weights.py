"""Convert the weights of a model from a GGUF file or a pickle to a safetensors folder."""

from pieline.core.jobs import job
from pieline.core.sidecars import write_digest_list
from pieline.models.embedder import EmbedderEntry
from pieline.studies.idiolink.predictions.unpacking import unpack_weights

with job(snakemake):
    unpack_weights(EmbedderEntry.from_spec(snakemake.params.spec), snakemake.output.weights)
    write_digest_list(snakemake.output.weights, snakemake.output.digests)
