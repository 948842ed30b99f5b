"""Extract the files of an IdioLink dataset that scoring needs from an archive of runs."""

from pathlib import Path

from pieline.audit.archives import check_released, extract_members, verified
from pieline.core.evidence import write_evidence
from pieline.core.jobs import start_log
from pieline.core.upstream import load_upstream

start_log(snakemake.log[0])
files = snakemake.params.files
folder_of_files = str(Path(next(iter(files))).parent)
with verified(snakemake.input.archive, only=()) as (archive, folder):
    check_released(archive, folder_of_files, folder, load_upstream(snakemake.input.upstream))
    extract_members(archive, folder, files, {})
write_evidence(snakemake.output.evidence, files=files, made_from=[snakemake.input.archive])
