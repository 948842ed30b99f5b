"""Patches to installed packages.

Setting PIELINE_NO_PATCHES=1 disables those that only save time, and changes no result.
"""

import os
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any

from pieline.core.errors import UserError


@cache  # a second call would quote twice
def quote_interpreter() -> None:
    """Quote the path of Python in the commands of jobs, because it may contain spaces.

    See https://github.com/snakemake/snakemake/issues/2645 for scripts, and
    https://github.com/snakemake/snakemake/issues/3211 for jobs of executors.
    """
    # By name, because jobs in conda environments import this module without Snakemake.
    scripts: Any = import_module("snakemake.script").PythonScript
    executors: Any = import_module("snakemake_interface_executor_plugins.executors.real")
    execute = scripts._execute_cmd

    def execute_quoted(script: Any, command: str, **options: Any) -> Any:
        if "py_exec" in options:
            options["py_exec"] = shlex.quote(options["py_exec"])
        return execute(script, command, **options)

    scripts._execute_cmd = execute_quoted
    for executor in executors.RealExecutor.__subclasses__():
        path = executor.get_python_executable
        executor.get_python_executable = lambda self, path=path: shlex.quote(path(self))


def check_plans(workflow: Any, check: Callable[[Any], None]) -> None:
    """Call a function with the graph of jobs as soon as it is planned, in runs of any kind.

    The hook `onstart` runs neither in dry runs nor if nothing has to be made.
    """
    build = workflow._build_dag

    def build_and_check() -> None:
        build()
        check(workflow.dag)

    workflow._build_dag = build_and_check


def patches_enabled() -> bool:
    """Return whether PIELINE_NO_PATCHES is unset or empty."""
    return not os.environ.get("PIELINE_NO_PATCHES")


def patch_snakemake(workflow: Any) -> None:
    """Speed up Snakemake's scheduling of local and SLURM jobs, unless patches are disabled.

    Raises:
        UserError: Jobs are to be submitted as arrays, which fails for scripts in
            snakemake-executor-plugin-slurm 2.8; with the patch, each task would run the first job.
    """
    if getattr(workflow.executor_settings, "array_jobs", None):
        raise UserError(
            "--slurm-array-jobs is not supported",
            hint="leave it out; small jobs share submissions (group-components in the profile)",
        )
    if not patches_enabled():
        return
    if workflow.local_exec:
        # By default, the scheduler waits a second after each finished job, to limit the rate of
        # submissions to clusters (the closest issue is snakemake#3744).
        workflow.scheduler.job_rate_limiter = None
    elif workflow.executor_plugin.name == "slurm":
        _run_groups_in_one_snakemake(workflow.executor_plugin.executor)


def _run_groups_in_one_snakemake(executor: Any) -> None:
    """Patch the executor to run all jobs of a SLURM submission in one parallel Snakemake process.

    By default, the executor starts an additional Snakemake process per job of a group, one after
    another (snakemake-executor-plugin-slurm#469, snakemake#4223 and snakemake#2060).
    """
    job_args = executor.get_job_args
    executor.additional_general_args = lambda self: ""
    executor.get_job_args = lambda self, job: f"{job_args(self, job)} --cores {job.threads}"


@contextmanager
def parse_gguf_once() -> Iterator[None]:
    """Cache GGUF parsing within the block, unless patches are disabled.

    Without the cache, transformers parses the same file three times and lists all tensor names once
    per module.
    """
    import gguf

    from pieline.models.llm_weights import read_gguf

    library: Any = gguf
    original = library.GGUFReader, library.get_tensor_name_map
    if patches_enabled():
        library.GGUFReader, library.get_tensor_name_map = cache(read_gguf), cache(original[1])
    try:
        yield
    finally:
        library.GGUFReader, library.get_tensor_name_map = original
