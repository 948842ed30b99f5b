"""Pack the runs of a configuration into an archive."""

from pathlib import Path

import pieline
from pieline.archives.export import export_runs
from pieline.core.jobs import start_log
from pieline.results.run_report import code_state

start_log(snakemake.log[0])
export_runs(
    snakemake.output[0],
    wanted=set(snakemake.input).__contains__,
    code=code_state(Path(pieline.__file__).parents[2]).commit,
)
