"""Write the jobs of a configuration, as a dry run lists them, and what a cluster is sent."""

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from pieline.core.files import read_text, write_text
from pieline.core.jobs import start_log

start_log(snakemake.log[0])
command = [sys.executable, "-m", "snakemake", "--snakefile", snakemake.input.snakefile]
profile = Path(snakemake.input.profile).parent
command += ["--profile", str(profile), "--configfile", snakemake.input.config]
# All that can be asked at any price is in the plan.
command += [
    "--config",
    f"mirror={Path(snakemake.params.mirror).absolute()}",
    "llm={max_cost_usd: 100000}",
]
with TemporaryDirectory() as folder:
    command += ["--directory", folder, "--dry-run", "--forceall", "all"]
    listed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
write_text(snakemake.output.plan, listed)
counting = [sys.executable, str(snakemake.input.counting)]
counted = subprocess.run(
    counting, input=read_text(snakemake.output.plan), stdout=subprocess.PIPE, text=True, check=True
)
write_text(snakemake.output.submissions, counted.stdout)
