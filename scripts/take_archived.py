"""Verify an archive of runs, and extract predictions or the files of a dataset from it."""

from pieline.audit.archives import extract
from pieline.core.jobs import job
from pieline.core.upstream import load_upstream

with job(snakemake) as j:
    j.sidecars = extract(
        snakemake.input.archive,
        snakemake.params.files,
        snakemake.params.recordings,
        load_upstream(snakemake.input.upstream),
    )
