"""Patches to installed packages.

PIELINE_NO_PATCHES=1 disables the patches that only save time. The results stay the same.
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
    # Not imported above, because jobs in conda environments import this module without Snakemake.
    python_script: Any = import_module("snakemake.script").PythonScript
    executors: Any = import_module("snakemake_interface_executor_plugins.executors.real")
    execute_command = python_script._execute_cmd

    def execute_with_quoted_path(script: Any, command: str, **options: Any) -> Any:
        if "py_exec" in options:
            options["py_exec"] = shlex.quote(options["py_exec"])
        return execute_command(script, command, **options)

    python_script._execute_cmd = execute_with_quoted_path
    for executor_class in executors.RealExecutor.__subclasses__():
        _quote_python_of(executor_class)


def _quote_python_of(executor_class: Any) -> None:
    """Quote the path of Python in the commands of a class of executors."""
    get_python = executor_class.get_python_executable
    executor_class.get_python_executable = lambda self: shlex.quote(get_python(self))


def check_plans(workflow: Any, check: Callable[[Any], None]) -> None:
    """Call a function with the graph of jobs as soon as Snakemake has planned the jobs.

    Snakemake's hook `onstart` would run neither in dry runs nor in runs without jobs.

    Args:
        workflow: Snakemake's workflow.
        check: Function to call, which may raise an error.
    """
    build_graph = workflow._build_dag

    def build_and_check() -> None:
        build_graph()
        check(workflow.dag)

    workflow._build_dag = build_and_check


def patches_enabled() -> bool:
    """Return whether patches that only save time are applied; PIELINE_NO_PATCHES disables them."""
    return not os.environ.get("PIELINE_NO_PATCHES")


def patch_snakemake(workflow: Any) -> None:
    """Speed up Snakemake's scheduling of local and SLURM jobs, unless patches are disabled.

    Raises:
        UserError: The option --slurm-array-jobs is used. Array jobs fail for rules with scripts in
            snakemake-executor-plugin-slurm 2.8, and with the patch, each task of an array would run
            the first job.
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
    get_job_args = executor.get_job_args
    executor.additional_general_args = lambda self: ""
    executor.get_job_args = lambda self, job: f"{get_job_args(self, job)} --cores {job.threads}"


@contextmanager
def parse_gguf_once() -> Iterator[None]:
    """Cache the parsing of GGUF files within the block, unless patches are disabled.

    Without the cache, transformers parses the same file three times, and lists all tensor names
    again for each module.
    """
    import gguf

    from pieline.models.llm_weights import read_gguf

    library: Any = gguf
    original_reader, original_name_map = library.GGUFReader, library.get_tensor_name_map
    if patches_enabled():
        library.GGUFReader = cache(read_gguf)
        library.get_tensor_name_map = cache(original_name_map)
    try:
        yield
    finally:
        library.GGUFReader = original_reader
        library.get_tensor_name_map = original_name_map
