"""Verify an archive of runs and extract predictions from it."""

from pieline.audit.archives import extract_members, verified
from pieline.core.jobs import start_log

start_log(snakemake.log[0])
files = snakemake.params.files
with verified(snakemake.input.archive, only=files) as (archive, folder):
    extract_members(archive, folder, files, snakemake.params.recordings)
