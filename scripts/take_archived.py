"""Take predictions from an archive of runs, after a check of all that it holds."""

from pieline.audit.archives import take, verified
from pieline.core.jobs import start_log

start_log(snakemake.log[0])
with verified(snakemake.input.archive) as (archive, folder):
    take(archive, folder, snakemake.params.files, snakemake.params.recordings)
