"""Check an archive of runs, and extract predictions or the files of a dataset."""

from pieline.archives.extraction import extract
from pieline.core.jobs import job

with job(snakemake) as j:
    j.sidecars = extract(
        snakemake.input.archive, snakemake.params.files, snakemake.params.recordings
    )
