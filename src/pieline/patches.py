"""Every change that is made to installed packages at run time, each to save time only.

With PIELINE_NO_PATCHES=1 nothing is changed: every run works, and gives the same files.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any


def are_wanted() -> bool:
    """Return whether packages may be changed."""
    return not os.environ.get("PIELINE_NO_PATCHES")


def patch_snakemake(workflow: Any) -> None:
    """Speed up the scheduling of a run on this machine or on SLURM."""
    if not are_wanted():
        return
    if workflow.local_exec:
        # After each job that ends, the scheduler waits a second before it starts others, a limit
        # for clusters that are submitted to too fast (snakemake 3744 is nearest to it).
        workflow.scheduler.job_rate_limiter = None
    elif workflow.executor_plugin.name == "slurm":
        _run_groups_in_one_snakemake(workflow.executor_plugin.executor)


def _run_groups_in_one_snakemake(executor: Any) -> None:
    """Have the snakemake of a submission run its jobs itself, as many at a time as it has CPUs.

    The executor has it start one more snakemake for each job of a group, one after the other
    (snakemake-executor-plugin-slurm 469, snakemake 4223 and 2060).
    """
    job_args = executor.get_job_args
    executor.additional_general_args = lambda self: ""
    executor.get_job_args = lambda self, job: f"{job_args(self, job)} --cores {job.threads}"


@contextmanager
def parse_gguf_once() -> Iterator[None]:
    """Have transformers parse a GGUF file once.

    It does so three times, and lists the names of all tensors for each module.
    """
    import gguf

    from pieline.models.weights import read_gguf

    library: Any = gguf
    kept = library.GGUFReader, library.get_tensor_name_map
    if are_wanted():
        library.GGUFReader, library.get_tensor_name_map = cache(read_gguf), cache(kept[1])
    try:
        yield
    finally:
        library.GGUFReader, library.get_tensor_name_map = kept
