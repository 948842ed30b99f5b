"""Pack the runs of a configuration into an archive."""

from pieline.archives.export import export_runs
from pieline.core.jobs import start_log

start_log(snakemake.log[0])
export_runs(
    snakemake.output[0],
    is_selected=set(snakemake.input).__contains__,
    code=snakemake.params.code,
)
