"""A Snakemake logger plugin (`--logger pieline`, set in profiles/default).

On a terminal, the plugin draws a progress bar for each running rule; otherwise, the plugin prints a
line when a rule is done. For a failed job, the plugin prints the error message and the path of the
log. A dry run ends with the number of jobs by rule and a list of changes. With `--verbose`,
`--printshellcmds` or `--debug-dag`, the output is Snakemake's own.
"""

import getpass
import logging
import os
import re
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from itertools import takewhile
from logging import LogRecord
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text
from snakemake import cli
from snakemake.common import configfile
from snakemake.exceptions import WorkflowError
from snakemake.logging import ColorizingTextHandler
from snakemake.settings import types
from snakemake_interface_logger_plugins.base import LogHandlerBase
from yaml import MappingNode, MarkedYAMLError, Node, SafeLoader, SequenceNode, YAMLError, compose

from snakemake_logger_plugin_pieline.reasons import explain, summarize

EVERY_S = 30.0
"""Seconds after a line of progress until the next line is printed although no rule is done."""


def _ensure_user_and_cache() -> None:
    """Set a user name and a folder for caches, which the user of a container may lack.

    Without a user name or a folder for caches, Snakemake fails with a traceback. Snakemake also
    fails without HOME, but before it imports this plugin.
    """
    try:
        getpass.getuser()
    except (KeyError, OSError):
        os.environ["USER"] = f"uid{os.getuid()}"
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=cache):
            pass
    except OSError:
        os.environ["XDG_CACHE_HOME"] = str(Path(".snakemake", "cache").absolute())


_ensure_user_and_cache()
_NOISE = re.compile(
    r"None$|Select jobs to execute|Execute \d+ jobs|host: |Assuming unrestricted shared"
    r"|Using shell: |Conda environments: ignored|Group jobs: inactive|Reasons:"
)
"""Beginnings of Snakemake's messages that are not shown."""


def _load_configfile(path: str | Path) -> dict[str, Any]:
    """Read a configuration file as Snakemake does, but report an error in one line."""
    try:
        return dict(_load_configfile_of_snakemake(path))
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        byte = f"byte 0x{error.object[error.start]:02x}"
        problem = f"{path}:{line}: not UTF-8 ({byte}); save the file as UTF-8"
    except OSError as error:
        problem = f"{path}: {error.strerror}; check the path{_target_hint(path)}"
    except WorkflowError as error:
        cause = error.__context__
        if isinstance(cause, MarkedYAMLError) and cause.problem_mark:
            line = cause.problem_mark.line + 1
            problem = f"{path}:{line}: not valid YAML: {cause.problem}; correct this line"
        else:
            problem = f"{path}: no settings; write `key: value` lines (docs/configuration.md)"
            problem += _target_hint(path)
    raise _user_error(problem)


def _target_hint(path: str | Path) -> str:
    """Return a hint if a path may be a target: --configfile takes all words up to -- as files."""
    is_configuration_file = str(path).endswith((".yaml", ".yml", ".json"))
    return "" if is_configuration_file else "; if this is a target, write -- before it"


_SPELLINGS_OF_ONCE_ONLY_OPTIONS = (("--config", "-C"), ("--configfile", "--configfiles"))
"""Spellings of each option of which Snakemake silently ignores all occurrences but the last."""
_AMBIGUOUS_NUMBER = re.compile(r"[-+]?(0[\d_]+|\d+_[\d_]+)")
"""Numbers such as 010 and 1_000, which YAML reads as 8 and 1000."""


def _parse_config(entries: list[str] | None) -> dict[str, Any]:
    """Parse the values of --config as Snakemake does, but end the program if a value is unclear.

    Rejects repeated options and duplicate keys, of which Snakemake would silently use the last, and
    ambiguous numbers.
    """
    _check_repeated_options()
    for entry in entries or []:
        _check_assignment(entry)
        key, _, value = entry.partition("=")
        with suppress(YAMLError):  # reported by Snakemake
            _check_keys(f"--config: {key}", compose(value, Loader=SafeLoader))
        if _AMBIGUOUS_NUMBER.fullmatch(value.strip()):
            raise _user_error(
                f"--config: {key}: ambiguous number {value}; write it in plain digits"
            )
    return dict(_parse_config_of_snakemake(entries))


def _check_repeated_options() -> None:
    """End the program if the command line repeats an option that must occur only once."""
    words_before_targets = takewhile(lambda word: word != "--", sys.argv)
    options = [word.partition("=")[0] for word in words_before_targets]
    for spellings in _SPELLINGS_OF_ONCE_ONLY_OPTIONS:
        occurrences = [option for option in options if option in spellings]
        if len(occurrences) > 1:
            raise _user_error(f"{spellings[0]} is given twice; write all its values after one")


def _check_assignment(entry: str) -> None:
    """End the program unless a value of --config has the form NAME=VALUE."""
    key, equals_sign, value = entry.partition("=")
    if equals_sign and key.isidentifier():
        return
    section, *fields = key.split(".")
    hint = "write name=value"
    if equals_sign and section.isidentifier():
        # Nest the value: section.field=1 becomes section={field: 1}.
        nested_value = value
        for field in reversed(fields):
            nested_value = f"{{{field}: {nested_value}}}"
        hint = f"write '{section}={nested_value}'"
    raise _user_error(f"--config: {entry} does not set a setting; {hint}")


def _check_keys(where: str, node: Node | None) -> None:
    """End the program if a mapping anywhere in a YAML document has a key twice."""
    values: list[Node] = []
    if isinstance(node, SequenceNode):
        values = node.value
    elif isinstance(node, MappingNode):
        values = [value for _, value in node.value]
        seen: set[str] = set()
        for key_node, _ in node.value:
            key = str(key_node.value)
            if key in seen:
                raise _user_error(f"{where}: duplicate key {key!r}; remove one of them")
            seen.add(key)
    for value in values:
        _check_keys(where, value)


def _user_error(problem: str) -> SystemExit:
    """Print an error in one line, and return the exception to raise, which ends the program."""
    print(f"error: {problem}", file=sys.stderr)
    return SystemExit(2)


# Replace Snakemake's functions, which report wrong encodings and missing files with a traceback.
# This works because Snakemake imports this plugin before it reads any configuration. The library
# must not be imported here, because the workflow uses the library in the workflow's own folder.
_load_configfile_of_snakemake = configfile.load_configfile
_parse_config_of_snakemake = cli.parse_config
configfile.load_configfile = types.load_configfile = _load_configfile
cli.parse_config = _parse_config


class LogHandler(LogHandlerBase):
    """A log handler that shows the progress of rules, and why jobs run again or failed."""

    writes_to_stream = True
    writes_to_file = False
    has_filter = False
    has_formatter = False
    needs_rulegraph = False

    def __post_init__(self) -> None:
        """Initialize the state; Snakemake calls this method after the constructor.

        If the user asked for details of jobs, Snakemake's own handler writes the output.
        """
        settings: Any = self.common_settings
        stream = sys.stdout if settings.stdout else sys.stderr
        self._snakemake_handler: ColorizingTextHandler | None = None
        if settings.verbose or settings.printshellcmds or settings.debug_dag:
            self._snakemake_handler = ColorizingTextHandler(nocolor=settings.nocolor, stream=stream)
        self._console = Console(file=stream, no_color=settings.nocolor or None, highlight=False)
        self._bars: _Bars | None = None
        self._rule_of_running_job: dict[int, str] = {}
        self._jobs_by_cause: dict[str, list[Any]] = {}
        self._printed_causes: set[str] = set()
        self._total: Counter[str] = Counter()  # jobs by rule
        self._done: Counter[str] = Counter()  # finished jobs by rule
        self._failures: list[_Failure] = []
        self._last_exit = ""  # how the last failed command ended
        self._reported_at = time.monotonic()

    def emit(self, record: LogRecord) -> None:
        """Display a record of Snakemake's log."""
        event = getattr(record, "event", None)
        try:
            if self._snakemake_handler:
                if event == "job_info" and self.common_settings.dryrun:
                    self._explain(record)
                self._snakemake_handler.setFormatter(self.formatter)
                self._snakemake_handler.emit(record)
            elif event:
                handle = getattr(self, f"_on_{event}", None)
                if handle:
                    handle(record)
            elif record.levelno > logging.INFO:
                self._print(record.getMessage(), "red")
            elif not _NOISE.match(record.getMessage()):
                self._print(record.getMessage())
        except Exception:
            self.handleError(record)

    def close(self) -> None:
        """Remove the bars, and print the causes of a dry run or the failed jobs of a run."""
        bars, self._bars = self._bars, None
        if bars:
            bars.close()
        if self._jobs_by_cause:
            title = "Why:" if self._snakemake_handler else "Why (-p lists each job):"
            self._print("\n".join([title, *summarize(self._jobs_by_cause)]))
        self._jobs_by_cause = {}
        # If other jobs finished after a failure, the message may have scrolled away.
        scrolled_away = [
            failure.message
            for failure in self._failures
            if failure.jobs_done_before < self._done.total()
        ]
        if scrolled_away:
            self._print("\n".join(["Failed jobs:", *scrolled_away]), "red")
        self._failures = []
        super().close()

    def _print(self, text: str, style: str = "") -> None:
        """Print a text, which appears above the bars if bars are drawn."""
        console = self._bars.console if self._bars else self._console
        console.print(Text(text, style=style), soft_wrap=True)

    def _on_run_info(self, record: Any) -> None:
        """Print the number of jobs and start the bars; for a dry run, print the jobs by rule."""
        is_repeated = bool(self._total)
        self._total = Counter(record.stats)
        if self.common_settings.dryrun:
            # Snakemake logs this record again after the jobs.
            if self.formatter and not is_repeated:
                self._print(self.formatter.format(record))
            return
        del self._total["total"]
        self._print(f"{self._total.total()} jobs of {len(self._total)} rules")
        self._reported_at = time.monotonic()
        if self._console.is_terminal:
            self._bars = _Bars(self._total)

    def _explain(self, record: Any) -> None:
        """Store why a dry run lists a job, and replace Snakemake's reason in the record."""
        cause = explain(record.reason)
        self._jobs_by_cause.setdefault(cause, []).append(record)
        if cause:
            record.reason = cause

    def _on_job_info(self, record: Any) -> None:
        """Store the rule of a starting job, and print why the job runs unless this was printed."""
        if self.common_settings.dryrun:
            self._explain(record)
            return
        self._rule_of_running_job[record.jobid] = record.rule_name
        cause = explain(record.reason)
        line = f"{record.rule_name}: {cause}"
        if cause and line not in self._printed_causes:
            self._printed_causes.add(line)
            self._print(line)
        if self._bars:
            self._bars.show(record.rule_name, self._done)

    def _on_job_finished(self, record: Any) -> None:
        """Update the bars; print a line if the rule is done or `EVERY_S` seconds have passed."""
        rule = self._rule_of_running_job.pop(record.job_id, None)
        if rule is None:
            return
        self._done[rule] += 1
        if self._bars:
            self._bars.show(rule, self._done)
        now = time.monotonic()
        if self._done[rule] == self._total[rule] or now > self._reported_at + EVERY_S:
            self._reported_at = now
            done, total = self._done.total(), self._total.total()
            self._print(
                f"{time.strftime('%X')}  {done:{len(str(total))}} of {total} jobs:"
                f" {rule} {self._done[rule]} of {self._total[rule]}"
            )

    def _on_job_error(self, record: Any) -> None:
        """Print the error message and the logs of a failed job, and store the message."""
        # Snakemake may append a note in parentheses to the path of a log.
        logs = [path.split(" (")[0] for path in record.log]
        last_line = _last_line(logs)
        message = last_line.removeprefix("error: ") or self._last_exit or "no message"
        lines = [f"{record.rule_name} failed: {message}"]
        lines += [f"    {line}" for line in (record.rule_msg or "").splitlines()]
        lines += [f"    {name}: {detail}" for name, detail in record.aux.items()]
        lines += [f"    log: {path}" for path in logs]
        self._failures.append(_Failure(self._done.total(), "\n".join(lines)))
        if self.common_settings.show_failed_logs:
            for path in logs:
                with suppress(OSError):
                    lines += Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
        # A job on this machine has printed its error message itself.
        is_local = "external_jobid" not in record.aux
        if is_local and last_line.startswith("error: "):
            lines[0] = f"{record.rule_name} failed"
        self._print("\n".join(lines), "red")

    def _on_group_error(self, record: Any) -> None:
        """Print the error of a group of jobs, and the paths of the logs."""
        self._print("\n".join([record.getMessage(), *map(str, record.aux_logs)]), "red")

    def _on_error(self, record: Any) -> None:
        """Print an error of Snakemake; if a command failed, only store how the command ended."""
        message = record.getMessage()
        if "CalledProcessError" in message:
            # "Command '…' returned non-zero exit status 1."; the job's own error follows.
            self._last_exit = message.rsplit("' ", 1)[-1]
        else:
            self._print(message, "red")


class _Failure(NamedTuple):
    """A failed job: the number of jobs that were done before the failure, and the message."""

    jobs_done_before: int
    message: str


_END_OF_OUTPUT = "\0"
"""Marks the end of the output in the pipe of `_Bars`; no program prints this character."""


class _Bars:
    """A bar for each running rule and a bar for all jobs, below all other output.

    Everything that this process and jobs write to the terminal goes through a pipe, and is printed
    above the bars.

    Args:
        total: Number of jobs by rule.
    """

    def __init__(self, total: Counter[str]) -> None:
        stdout, stderr = 1, 2
        self._terminals = {
            descriptor: os.dup(descriptor)
            for descriptor in (stdout, stderr)
            if os.isatty(descriptor)
        }
        self.console = Console(
            file=os.fdopen(os.dup(stderr), "w", encoding="utf-8"),
            force_terminal=True,
            highlight=False,
        )
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=self.console,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._total = total
        self._tasks: dict[str, TaskID] = {}
        self._task_of_all_jobs = self._progress.add_task("all", total=total.total())
        pipe_output, pipe_input = os.pipe()
        for descriptor in self._terminals:
            os.dup2(pipe_input, descriptor)
        os.close(pipe_input)
        self._printer = threading.Thread(
            target=self._print_above_bars, args=(pipe_output,), daemon=True
        )
        self._printer.start()
        self._progress.start()

    def show(self, rule: str, done: Counter[str]) -> None:
        """Update the bars of a rule and of all jobs, and remove the bar of a rule that is done.

        Args:
            rule: Name of the rule.
            done: Number of finished jobs by rule.
        """
        if rule not in self._tasks:
            self._tasks[rule] = self._progress.add_task(rule, total=self._total[rule])
        self._progress.update(self._tasks[rule], completed=done[rule])
        self._progress.update(self._task_of_all_jobs, completed=done.total())
        if done[rule] == self._total[rule]:
            self._progress.remove_task(self._tasks.pop(rule))

    def close(self) -> None:
        """Wait until all output is printed, then restore the terminal."""
        any_descriptor = next(iter(self._terminals))
        os.write(any_descriptor, f"{_END_OF_OUTPUT}\n".encode())
        self._printer.join(timeout=5)
        for descriptor, terminal in self._terminals.items():
            os.dup2(terminal, descriptor)
            os.close(terminal)
        self._progress.stop()
        self.console.file.close()

    def _print_above_bars(self, pipe_output: int) -> None:
        """Print the lines from the pipe above the bars, until `close` is called."""
        with os.fdopen(pipe_output, "rb") as lines:
            for line in lines:
                text, end_of_output, _ = (
                    line.decode(errors="replace").rstrip("\n").partition(_END_OF_OUTPUT)
                )
                if text or not end_of_output:
                    # Programs overwrite a line after a carriage return.
                    last_version = text.rsplit("\r", 1)[-1]
                    self.console.print(Text.from_ansi(last_version), soft_wrap=True)
                if end_of_output:
                    return


def _last_line(logs: list[str]) -> str:
    """Return the last line of the first log that is not empty, usually the error message."""
    for path in logs:
        with suppress(OSError):
            lines = Path(path).read_text(encoding="utf-8", errors="replace").split("\n")
            nonblank_lines = [line.strip() for line in lines if line.strip()]
            if nonblank_lines:
                return nonblank_lines[-1]
    return ""
