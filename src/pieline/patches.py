"""Patches to installed packages. All of them only save time.

PIELINE_NO_PATCHES=1 disables them without changing any result.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any


def patches_enabled() -> bool:
    """Return whether patches are enabled."""
    return not os.environ.get("PIELINE_NO_PATCHES")


def patch_snakemake(workflow: Any) -> None:
    """Speed up Snakemake's scheduling of local and SLURM jobs."""
    if not patches_enabled():
        return
    if workflow.local_exec:
        # By default the scheduler waits a second after each finished job, to limit the rate of
        # submissions to clusters (snakemake 3744 is the closest issue).
        workflow.scheduler.job_rate_limiter = None
    elif workflow.executor_plugin.name == "slurm":
        _run_groups_in_one_snakemake(workflow.executor_plugin.executor)


def _run_groups_in_one_snakemake(executor: Any) -> None:
    """Run all jobs of a SLURM submission in one Snakemake process, in parallel up to its CPU count.

    By default the executor starts one more Snakemake per job of a group, one after another
    (snakemake-executor-plugin-slurm 469, snakemake 4223 and 2060).
    """
    job_args = executor.get_job_args
    executor.additional_general_args = lambda self: ""
    executor.get_job_args = lambda self, job: f"{job_args(self, job)} --cores {job.threads}"


@contextmanager
def parse_gguf_once() -> Iterator[None]:
    """Cache GGUF parsing within the block.

    transformers parses the same file three times, and lists all tensor names once per module.
    """
    import gguf

    from pieline.models.weights import read_gguf

    library: Any = gguf
    original = library.GGUFReader, library.get_tensor_name_map
    if patches_enabled():
        library.GGUFReader, library.get_tensor_name_map = cache(read_gguf), cache(original[1])
    try:
        yield
    finally:
        library.GGUFReader, library.get_tensor_name_map = original
