"""Run the scripts of rules: logs, errors in one line, threads, and sidecars."""

import atexit
import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from pydantic import BaseModel
from threadpoolctl import threadpool_limits

from pieline.core.conditions import Conditions, Evidence
from pieline.core.errors import UserError, to_user_error
from pieline.core.files import write_json
from pieline.core.sidecars import (
    Digests,
    Sidecar,
    check_made,
    folder_of,
    is_made,
    remove_sidecars,
    settings_of,
    sidecar_of,
    write_sidecar,
)

_WATCH_SECONDS = 2.0
"""Time between two checks whether Snakemake is still running."""
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class RuleJob(Protocol):
    """The part of a script's global variable `snakemake` that a job needs."""

    input: Any
    output: Any
    params: Any
    log: Any
    threads: int
    rule: str


@dataclass
class Job:
    """A running job of a Snakemake rule.

    Attributes:
        rule_job: The script's global variable `snakemake`.
        known: Digests of the files that were hashed so far.
        made_from: Digests of the inputs, by path, for the sidecars of the outputs.
        facts: Further fields of the sidecars of the outputs.
        sidecars: Sidecars of outputs that this job only copies, by path.
    """

    rule_job: RuleJob
    known: Digests = field(default_factory=Digests)
    made_from: dict[str, str] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    sidecars: dict[str, Sidecar] = field(default_factory=dict)

    @property
    def conditions(self) -> Conditions:
        """Conditions of the metrics that the job computes, from the rule's params."""
        return Conditions.model_validate_json(self.rule_job.params.conditions)

    def digests(self, *paths: str | Path | Iterable[str | Path]) -> dict[str, str]:
        """Return the SHA-256 of files by path, for the field `computed_from` of a metric file.

        Args:
            paths: Paths, or collections of paths, such as an optional input.
        """
        files: list[str] = []
        for path_or_paths in paths:
            if isinstance(path_or_paths, str | Path):
                files.append(str(path_or_paths))
            else:
                files += [str(path) for path in path_or_paths]
        return self.known.of(*files)

    def evidence(
        self,
        *paths: str | Path | Iterable[str | Path],
        data_note: str = "",
        is_released: bool = False,
    ) -> Evidence:
        """Return the fields of a metric file that describe the inputs and this job's conditions.

        Args:
            paths: Inputs, as in `digests`.
            data_note: See `MetricRecord`.
            is_released: Whether the data is the paper's public data.
        """
        return Evidence(self.digests(*paths), self.conditions, data_note, is_released)

    def write(self, record: BaseModel) -> None:
        """Write a record as JSON to the job's first output."""
        write_json(self.rule_job.output[0], record.model_dump())

    def begin(self) -> None:
        """Remove the sidecars of the job's outputs, then check and hash the job's inputs.

        Raises:
            UserError: An input was edited, replaced or copied, or was made from other files.
        """
        remove_sidecars(self.rule_job.output)
        check_made(self.rule_job.input, self.known)
        existing_inputs = [path for path in self.rule_job.input if Path(path).exists()]
        self.made_from = self.known.of(*existing_inputs)

    def finish(self) -> None:
        """Write the sidecars of the job's outputs."""
        outputs = [path for path in self.rule_job.output if is_made(path)]
        settings = settings_of(self.rule_job.params.items())
        facts = {"outputs": outputs, "settings": settings, **self.facts}
        for path in outputs:
            if path in self.sidecars:
                write_json(sidecar_of(path), self.sidecars[path].model_dump(mode="json"))
            else:
                write_sidecar(path, made_from=self.made_from, **facts)


@contextmanager
def job(snakemake: RuleJob) -> Iterator[Job]:
    """Run the block of a `with` statement, which contains the whole script, as the job of a rule.

    Copies stderr to the rule's log, prints user errors as one line, sets the number of threads, and
    checks the sidecars of the inputs. If the block succeeds, writes a sidecar for each output, and
    writes the CPU time as the last line of the log (`benchmarks/rules.py` adds up these times).

    Args:
        snakemake: Global variable `snakemake` of the script.

    Raises:
        UserError: An input was edited, replaced or copied, or was made from other files.
    """
    cpu_seconds_of_start = _cpu_seconds()
    last_lines = start_log(snakemake.log[0])
    pin_threads(snakemake.threads)
    # With the default of 700, Python would scan the records that jobs read for garbage too often.
    gc.set_threshold(100_000)
    running = Job(snakemake)
    running.begin()
    yield running
    running.finish()
    last_lines.append(
        f"{snakemake.rule}: {_cpu_seconds():.2f} CPU-s, "
        f"{cpu_seconds_of_start:.2f} of them to start\n"
    )


def optional(files: Sequence[str]) -> str | None:
    """Return the file that is an optional input of a rule, or None if the input is empty.

    Args:
        files: The input: a path, or a list with at most one path.
    """
    if isinstance(files, str):
        return files
    return files[0] if files else None


def optional_folder(digest_lists: Sequence[str]) -> str | None:
    """Return the folder that is an optional input of a rule, or None if the input is empty.

    Args:
        digest_lists: The input: the path of the file that lists the digests of the folder's
            files, or a list with at most one such path.
    """
    digest_list = optional(digest_lists)
    return folder_of(digest_list) if digest_list else None


def start_log(path: str) -> list[str]:
    """Copy the stderr of this process and of child processes to a log file until this process ends.

    From then on, an uncaught `UserError` or `OSError` is printed as one line without a traceback.
    If the environment variable `PIELINE_SNAKEMAKE` contains Snakemake's process id, this process
    ends when Snakemake ends.

    Returns:
        Empty list, to which the caller can add lines that are written only at the end of the log.
    """
    last_lines: list[str] = []
    # -i keeps tee alive on an interrupt, so that the job's last messages are logged.
    tee = subprocess.Popen(["tee", "-i", path], stdin=subprocess.PIPE, stdout=2)
    assert tee.stdin
    os.dup2(tee.stdin.fileno(), 2)
    tee.stdin.close()
    atexit.register(_end_log, tee, path, last_lines)
    if snakemake_pid := os.environ.get("PIELINE_SNAKEMAKE"):
        threading.Thread(target=_end_with, args=(int(snakemake_pid),), daemon=True).start()
    sys.excepthook = _print_error
    return last_lines


def pin_threads(number: int) -> None:
    """Set the number of threads of OpenMP, BLAS and torch, on which floating-point sums depend.

    The number applies to the libraries that this process has loaded, and to the libraries that this
    process or a child process loads later.
    """
    for variable in _THREAD_VARIABLES:
        os.environ[variable] = str(number)
    threadpool_limits(number)
    torch = sys.modules.get("torch")
    if torch:
        torch.set_num_threads(number)


def _end_with(pid: int) -> None:
    """Wait until another process ends, then send SIGTERM to this process.

    Without this, a job whose Snakemake was killed would still run during the next run.
    """
    while True:
        time.sleep(_WATCH_SECONDS)
        try:
            os.kill(pid, 0)  # sends no signal, but fails if the process has ended
        except ProcessLookupError:
            os.kill(os.getpid(), signal.SIGTERM)
            return


def _cpu_seconds() -> float:
    """Return the CPU time of this process and of the child processes that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _end_log(tee: "subprocess.Popen[bytes]", path: str, last_lines: Sequence[str]) -> None:
    """Close stderr, wait until `tee` has written the log, and append the last lines to the log."""
    # Close the pipe, so that tee ends.
    sys.stderr.flush()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    # A child process that outlives the job may keep the pipe open; do not wait for that.
    with suppress(subprocess.TimeoutExpired):
        tee.wait(timeout=5)
    if last_lines:
        with Path(path).open("a", encoding="utf-8") as log:
            log.writelines(last_lines)
    # Without this, Python would scan all imported objects several times before the process ends:
    # for 0.1 seconds in a light job, and for a second with torch.
    gc.freeze()


def _print_error(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    """Print an uncaught exception: user errors, OS errors and interrupts without a traceback."""
    if isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
        error = to_user_error(error)
    if isinstance(error, UserError):
        print(f"error: {error}", file=sys.stderr)
    elif isinstance(error, KeyboardInterrupt):
        print("interrupted", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, traceback)
