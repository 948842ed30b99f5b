"""Set up the processes of rule scripts: log, one-line errors, threads, and sidecars."""

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
    """A running job.

    Attributes:
        rule_job: The script's global variable `snakemake`.
        known: Digests of files that were read.
        made_from: Digests of the inputs, by path, for the sidecars of the outputs.
        facts: Other fields of the sidecars.
        sidecars: Sidecars of outputs that this job only copies, by path.
    """

    rule_job: RuleJob
    known: Digests = field(default_factory=Digests)
    made_from: dict[str, str] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    sidecars: dict[str, Sidecar] = field(default_factory=dict)

    @property
    def conditions(self) -> Conditions:
        """Conditions of the metrics, from the rule's params."""
        return Conditions.model_validate_json(self.rule_job.params.conditions)

    def digests(self, *paths: str | Path | Iterable[str | Path]) -> dict[str, str]:
        """Return the SHA-256 of files by path; an argument may be a list, such as an optional file.

        Metric files list them as `computed_from`.
        """
        lists = ([each] if isinstance(each, str | Path) else each for each in paths)
        return self.known.of(*(str(path) for each in lists for path in each))

    def evidence(
        self,
        *paths: str | Path | Iterable[str | Path],
        data_note: str = "",
        is_released: bool = False,
    ) -> Evidence:
        """Return what a metric file states about these files, its inputs."""
        return Evidence(self.digests(*paths), self.conditions, data_note, is_released)

    def write(self, record: BaseModel) -> None:
        """Write a record as JSON to the first output."""
        write_json(self.rule_job.output[0], record.model_dump())

    def begin(self) -> None:
        """Remove the sidecars of the outputs; check those of the inputs, and hash the inputs."""
        remove_sidecars(self.rule_job.output)
        check_made(self.rule_job.input, self.known)
        self.made_from = self.known.of(*filter(os.path.exists, self.rule_job.input))

    def finish(self) -> None:
        """Write the sidecars of the outputs."""
        facts: dict[str, Any] = {
            "outputs": list(filter(is_made, self.rule_job.output)),
            "settings": settings_of(self.rule_job.params.items()),
        } | self.facts
        for path in facts["outputs"]:
            if path in self.sidecars:
                write_json(sidecar_of(path), self.sidecars[path].model_dump(mode="json"))
            else:
                write_sidecar(path, made_from=self.made_from, **facts)


@contextmanager
def job(snakemake: RuleJob) -> Iterator[Job]:
    """Run a block, which contains the whole script, as the job of a rule.

    Copies stderr to the rule's log, prints user errors as one line, pins the number of threads, and
    checks the sidecars of the inputs. If the block succeeds, writes a sidecar for each output, and
    the CPU time as the last line of the log (`benchmarks/rules.py` adds it up by rule).

    Args:
        snakemake: Global variable `snakemake` of the script.

    Raises:
        UserError: An input was edited, replaced or copied, or was made from other files.
    """
    start = _cpu_seconds()
    last_lines = start_log(snakemake.log[0])
    pin_threads(snakemake.threads)
    # By default, Python scans the records that jobs read for garbage many times.
    gc.set_threshold(100_000)
    running = Job(snakemake)
    running.begin()
    yield running
    running.finish()
    last_lines.append(
        f"{snakemake.rule}: {_cpu_seconds():.2f} CPU-s, {start:.2f} of them to start\n"
    )


def optional(files: Sequence[str]) -> str | None:
    """Return the file of an optional input of a rule, or None if the input is empty.

    The input is a list, or a string if the rule names one file.
    """
    return files if isinstance(files, str) else next(iter(files), None)


def optional_folder(lists: Sequence[str]) -> str | None:
    """Return the folder whose list of digests is an optional input; None without the input."""
    listed = optional(lists)
    return listed and folder_of(listed)


def start_log(path: str) -> list[str]:
    """Copy stderr, including that of child processes, to a log file until this process ends.

    Also prints an uncaught `UserError` or `OSError` as one line without a traceback. If the
    environment variable `PIELINE_SNAKEMAKE` contains Snakemake's process id, also ends this process
    when Snakemake ends.

    Returns:
        Empty list; lines that the caller adds are written only to the log, at its end.
    """
    last_lines: list[str] = []
    # -i keeps tee alive on an interrupt, so that the job's last messages are logged.
    tee = subprocess.Popen(["tee", "-i", path], stdin=subprocess.PIPE, stdout=2)
    assert tee.stdin
    os.dup2(tee.stdin.fileno(), 2)
    tee.stdin.close()
    atexit.register(_end_log, tee, path, last_lines)
    if snakemake := os.environ.get("PIELINE_SNAKEMAKE"):
        threading.Thread(target=_end_with, args=(int(snakemake),), daemon=True).start()
    sys.excepthook = _print_error
    return last_lines


def pin_threads(number: int) -> None:
    """Set the number of threads of OpenMP, BLAS and torch, on which floating-point sums depend.

    Covers libraries that are already loaded, and those that this process and its children load.
    """
    os.environ.update(dict.fromkeys(_THREAD_VARIABLES, str(number)))
    threadpool_limits(number)
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(number)


def _end_with(process: int) -> None:
    """Send SIGTERM to this process when another process has ended.

    Without this, a job whose Snakemake was killed would keep running alongside the next run.
    """
    while True:
        time.sleep(_WATCH_SECONDS)
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            os.kill(os.getpid(), signal.SIGTERM)
            return


def _cpu_seconds() -> float:
    """Return the CPU time of this process and of its children that ended."""
    return sum(os.times()[:4])


def _end_log(tee: "subprocess.Popen[bytes]", path: str, last_lines: Sequence[str]) -> None:
    """Wait (up to 5 seconds) for tee, so that the log is complete when this process ends."""
    sys.stderr.flush()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    # A child process that outlives the job may keep the pipe open.
    with suppress(subprocess.TimeoutExpired):
        tee.wait(timeout=5)
    if last_lines:
        with Path(path).open("a", encoding="utf-8") as log:
            log.writelines(last_lines)
    # Otherwise, Python scans the objects of all imports several times before it ends: for 0.1
    # seconds in a light job, and for a second with torch.
    gc.freeze()


def _print_error(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    if isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
        error = to_user_error(error)
    if isinstance(error, UserError):
        print(f"error: {error}", file=sys.stderr)
    elif isinstance(error, KeyboardInterrupt):
        print("interrupted", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, traceback)
