"""Extract the files of an IdioLink dataset that scoring needs from an archive of runs."""

from pathlib import Path

from pieline.audit.archives import check_released, extract_members, verified
from pieline.core.jobs import job
from pieline.core.upstream import load_upstream

with job(snakemake):
    files = snakemake.params.files
    folder_of_files = str(Path(next(iter(files))).parent)
    with verified(snakemake.input.archive, only=()) as (archive, folder):
        check_released(archive, folder_of_files, folder, load_upstream(snakemake.input.upstream))
        extract_members(archive, folder, files, {})
