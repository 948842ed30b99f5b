"""What is changed in Snakemake 9.27 while a run lasts. PIELINE_NO_PATCHES=1 runs without it.

All of it saves time only: every run works and gives the same files without it.
"""


def patch_local_scheduler(scheduler):
    """Start the next job when one ends, not at most once a second for each that has ended.

    The limit is meant for clusters that are submitted to too fast (snakemake 3744 is nearest to it).
    """
    scheduler.job_rate_limiter = None


def patch_slurm(executor):
    """Have the snakemake of a submission run its jobs itself, as many at a time as it has CPUs.

    The executor has it start one more snakemake for each job of a group, one after the other
    (snakemake-executor-plugin-slurm 469, snakemake 4223 and 2060).
    """
    job_args = executor.get_job_args
    executor.additional_general_args = lambda self: ""
    executor.get_job_args = lambda self, job: f"{job_args(self, job)} --cores {job.threads}"


def patch_snakemake():
    """Apply what fits the executor of this run."""
    if os.environ.get("PIELINE_NO_PATCHES"):
        return
    if workflow.local_exec:
        patch_local_scheduler(workflow.scheduler)
    elif workflow.executor_plugin.name == "slurm":
        patch_slurm(workflow.executor_plugin.executor)
