"""Pack the runs of a configuration into an archive."""

from pieline.archives.export import export_runs
from pieline.core.jobs import job

with job(snakemake):
    export_runs(
        snakemake.output[0],
        is_selected=set(snakemake.input).__contains__,
        code=snakemake.params.code,
    )
