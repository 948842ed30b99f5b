"""Verify an archive of runs and extract predictions from it."""

from pieline.audit.archives import take, verified
from pieline.core.jobs import start_log

start_log(snakemake.log[0])
files = snakemake.params.files
with verified(snakemake.input.archive, only=files) as (archive, folder):
    take(archive, folder, files, snakemake.params.recordings)
