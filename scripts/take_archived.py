"""Verify an archive of runs and extract predictions from it."""

from pieline.audit.archives import archived_sidecars, extract_members, verified
from pieline.core.jobs import job

with job(snakemake) as j:
    files = snakemake.params.files
    with verified(snakemake.input.archive, only=files) as (archive, folder):
        extract_members(archive, folder, files, snakemake.params.recordings)
        j.sidecars = archived_sidecars(folder, files)
