"""Write the jobs of a configuration, as a dry run lists them, and what a cluster is sent."""

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from pieline.core.files import read_text, write_text
from pieline.core.program import Options, program


@program(
    snakefile=(Path, "the workflow"), profile=(Path, "of the cluster"),
    configuration=(Path, "what to run"), mirror=(Path, "folder of the public files"),
    counting=(Path, "tools/count_submissions.py"),
    plan=(Path, "jobs to write"), submissions=(Path, "counts to write"),
)  # fmt: skip
def main(it: Options) -> None:
    command = [sys.executable, "-m", "snakemake", "--snakefile", it.snakefile]
    command += ["--profile", it.profile, "--configfile", it.configuration]
    # All that can be asked at any price is in the plan.
    command += ["--config", f"mirror={it.mirror.absolute()}", "llm={max_cost_usd: 100000}"]
    with TemporaryDirectory() as folder:
        command += ["--directory", folder, "--dry-run", "--forceall", "all"]
        listed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    write_text(it.plan, listed)
    counting = [sys.executable, str(it.counting)]
    counted = subprocess.run(
        counting, input=read_text(it.plan), stdout=subprocess.PIPE, text=True, check=True
    )
    write_text(it.submissions, counted.stdout)
