"""A Snakemake logger plugin (`--logger pieline`, set in profiles/default).

On a terminal, it draws a progress bar for each running rule; otherwise, it prints a line when a
rule is done. For a failed job, it prints the error message and the path of the log. A dry run ends
with the number of jobs by rule and a list of what changed. With `--verbose`, `--printshellcmds`
or `--debug-dag`, the output is Snakemake's own.
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
from typing import Any

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
"""Seconds without a line after which a finished job is reported before its rule is done."""


def _settle_user() -> None:
    """Set a user name and a folder for caches, which an arbitrary UID in a container may lack.

    Snakemake fails with a traceback without them. It also fails without HOME, but before it imports
    this plugin.
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


_settle_user()
_NOISE = re.compile(
    r"None$|Select jobs to execute|Execute \d+ jobs|host: |Assuming unrestricted shared"
    r"|Using shell: |Conda environments: ignored|Group jobs: inactive|Reasons:"
)


def _load_configfile(path: str | Path) -> dict[str, Any]:
    """Read a configuration file as Snakemake does, but report a mistake in one line."""
    try:
        return dict(_snakemake_load(path))
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        byte = f"byte 0x{error.object[error.start]:02x}"
        problem = f"{path}:{line}: not UTF-8 ({byte}); save the file as UTF-8"
    except OSError as error:
        problem = f"{path}: {error.strerror}; check the path{_if_target(path)}"
    except WorkflowError as error:
        cause = error.__context__
        if isinstance(cause, MarkedYAMLError) and cause.problem_mark:
            line = cause.problem_mark.line + 1
            problem = f"{path}:{line}: not valid YAML: {cause.problem}; correct this line"
        else:
            problem = f"{path}: no settings; write `key: value` lines (docs/configuration.md)"
            problem += _if_target(path)
    raise _user_error(problem)


def _if_target(path: str | Path) -> str:
    """Return a hint for a target that --configfile, which takes several files, took as a file."""
    is_yaml = str(path).endswith((".yaml", ".yml", ".json"))
    return "" if is_yaml else "; if this is a target, write -- before it"


_ONCE = (("--config", "-C"), ("--configfile", "--configfiles"))
"""Options that take several values, and of which Snakemake silently uses only the last."""


def _parse_config(entries: list[str] | None) -> dict[str, Any]:
    """Parse the option --config as Snakemake does, but reject silent losses.

    These are repeated options, duplicate keys, and numbers such as 010 and 1_000.
    """
    given = [word.partition("=")[0] for word in takewhile(lambda word: word != "--", sys.argv)]
    for names in _ONCE:
        if sum(map(given.count, names)) > 1:
            raise _user_error(f"{names[0]} is given twice; write all its values after one")
    for entry in entries or []:
        key, equals, value = entry.partition("=")
        section, *fields = key.split(".")
        if not equals or not key.isidentifier():
            nested = "".join(f"{{{field}: " for field in fields) + value + "}" * len(fields)
            is_path = equals and section.isidentifier()
            hint = f"write '{section}={nested}'" if is_path else "write name=value"
            raise _user_error(f"--config: {entry} does not set a setting; {hint}")
        with suppress(YAMLError):  # reported by Snakemake
            _check_keys(f"--config: {key}", compose(value, Loader=SafeLoader))
        if re.fullmatch(r"[-+]?(0[\d_]+|\d+_[\d_]+)", value.strip()):
            raise _user_error(
                f"--config: {key}: ambiguous number {value}; write it in plain digits"
            )
    return dict(_snakemake_parse(entries))


def _check_keys(where: str, node: Node | None) -> None:
    """End the program if a mapping in a YAML document has a key twice."""
    values = node.value if isinstance(node, SequenceNode) else []
    if isinstance(node, MappingNode):
        keys = [str(key.value) for key, _ in node.value]
        if twice := [key for key in keys if keys.count(key) > 1]:
            raise _user_error(f"{where}: duplicate key {twice[0]!r}; remove one of them")
        values = [value for _, value in node.value]
    for value in values:
        _check_keys(where, value)


def _user_error(problem: str) -> SystemExit:
    """Print an error and return the exception that ends the program."""
    print(f"error: {problem}", file=sys.stderr)
    return SystemExit(2)


# Snakemake imports this plugin before it reads any configuration, and reports wrong encodings and
# missing files with a traceback. The library must not be imported here, because the workflow uses
# the one in its own folder.
_snakemake_load, _snakemake_parse = configfile.load_configfile, cli.parse_config
configfile.load_configfile = types.load_configfile = _load_configfile
cli.parse_config = _parse_config


class LogHandler(LogHandlerBase):
    """A log handler that shows each rule's progress, why it runs again, and why a job failed."""

    writes_to_stream = True
    writes_to_file = False
    has_filter = False
    has_formatter = False
    needs_rulegraph = False

    def __post_init__(self) -> None:
        """Initialize the state; called by the plugin interface."""
        settings: Any = self.common_settings
        stream = sys.stdout if settings.stdout else sys.stderr
        self._usual: ColorizingTextHandler | None = None
        if settings.verbose or settings.printshellcmds or settings.debug_dag:
            self._usual = ColorizingTextHandler(nocolor=settings.nocolor, stream=stream)
        self._console = Console(file=stream, no_color=settings.nocolor or None, highlight=False)
        self._bars: _Bars | None = None
        self._rules: dict[int, str] = {}
        self._causes: dict[str, list[Any]] = {}
        self._total: Counter[str] = Counter()
        self._done: Counter[str] = Counter()
        self._failed: list[tuple[int, str]] = []
        self._ended = ""
        self._reported_at = time.monotonic()

    def emit(self, record: LogRecord) -> None:
        """Display a record of Snakemake's log."""
        try:
            if self._usual:
                if getattr(record, "event", None) == "job_info" and self.common_settings.dryrun:
                    self._explain(record)
                self._usual.setFormatter(self.formatter)
                self._usual.emit(record)
            elif event := getattr(record, "event", None):
                getattr(self, f"_on_{event}", lambda record: None)(record)
            elif record.levelno > logging.INFO or not _NOISE.match(record.getMessage()):
                self._print(record.getMessage(), "red" if record.levelno > logging.INFO else "")
        except Exception:
            self.handleError(record)

    def close(self) -> None:
        """Remove the bars, and list the failed jobs again if others finished after them."""
        bars, self._bars = self._bars, None
        if bars:
            bars.close()
        if self.common_settings.dryrun and self._causes:
            title = "Why:" if self._usual else "Why (-p lists each job):"
            self._print("\n".join([title, *summarize(self._causes)]))
        self._causes = {}
        # Their messages may have scrolled away, because other jobs continued.
        if above := [text for done, text in self._failed if done < self._done.total()]:
            self._print("\n".join(["Failed jobs:", *above]), "red")
        self._failed = []
        super().close()

    def _print(self, text: str, style: str = "") -> None:
        (self._bars.console if self._bars else self._console).print(
            Text(text, style=style), soft_wrap=True
        )

    def _on_run_info(self, record: Any) -> None:
        if self.common_settings.dryrun:
            if self.formatter and not self._total:  # Snakemake repeats it after the jobs
                self._print(self.formatter.format(record))
            self._total = Counter(record.stats)
            return
        self._total = Counter(record.stats)
        del self._total["total"]
        self._print(f"{self._total.total()} jobs of {len(self._total)} rules")
        self._reported_at = time.monotonic()
        if self._console.is_terminal:
            self._bars = _Bars(self._total)

    def _explain(self, record: Any) -> None:
        """Collect the cause of a job of a dry run, which replaces Snakemake's reason."""
        cause = explain(record.reason)
        self._causes.setdefault(cause, []).append(record)
        record.reason = cause or record.reason

    def _on_job_info(self, record: Any) -> None:
        if self.common_settings.dryrun:
            self._explain(record)
            return
        self._rules[record.jobid] = record.rule_name
        line = f"{record.rule_name}: {explain(record.reason)}"
        if not line.endswith(": ") and line not in self._causes:
            self._causes[line] = []
            self._print(line)
        if self._bars:
            self._bars.show(record.rule_name, self._done)

    def _on_job_finished(self, record: Any) -> None:
        if (rule := self._rules.pop(record.job_id, None)) is None:
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
        # Snakemake may append a note in parentheses to the path of a log.
        logs = [path.split(" (")[0] for path in record.log]
        words = _last_words(logs)
        message = words.removeprefix("error: ") or self._ended or "no message"
        lines = [f"{record.rule_name} failed: {message}"]
        lines += [f"    {line}" for line in (record.rule_msg or "").splitlines()]
        lines += [f"    {key}: {value}" for key, value in record.aux.items()]
        lines += [f"    log: {path}" for path in logs]
        self._failed.append((self._done.total(), "\n".join(lines)))
        for path in logs if self.common_settings.show_failed_logs else []:
            with suppress(OSError):
                lines += Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
        # A job on this machine has printed its error itself.
        if words.startswith("error: ") and "external_jobid" not in record.aux:
            lines[0] = f"{record.rule_name} failed"
        self._print("\n".join(lines), "red")

    def _on_group_error(self, record: Any) -> None:
        self._print("\n".join([record.getMessage(), *map(str, record.aux_logs)]), "red")

    def _on_error(self, record: Any) -> None:
        text = record.getMessage()
        if "CalledProcessError" in text:
            # Omit the complete command; the job's own error follows.
            self._ended = text.rsplit("' ", 1)[-1]
        else:
            self._print(text, "red")


class _Bars:
    """A bar for each running rule and one for all jobs, below all other output.

    Args:
        total: Number of jobs by rule.
    """

    def __init__(self, total: Counter[str]) -> None:
        self._kept = {number: os.dup(number) for number in (1, 2) if os.isatty(number)}
        self.console = Console(
            file=os.fdopen(os.dup(2), "w", encoding="utf-8"), force_terminal=True, highlight=False
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
        self._all = self._progress.add_task("all", total=total.total())
        reading, writing = os.pipe()
        for number in self._kept:
            os.dup2(writing, number)
        os.close(writing)
        self._passing = threading.Thread(target=self._pass_on, args=(reading,), daemon=True)
        self._passing.start()
        self._progress.start()

    def show(self, rule: str, done: Counter[str]) -> None:
        """Update the bar of a rule, and remove it when all jobs of the rule are done."""
        if rule not in self._tasks:
            self._tasks[rule] = self._progress.add_task(rule, total=self._total[rule])
        self._progress.update(self._tasks[rule], completed=done[rule])
        self._progress.update(self._all, completed=done.total())
        if done[rule] == self._total[rule]:
            self._progress.remove_task(self._tasks.pop(rule))

    def close(self) -> None:
        """Restore the terminal once all messages have been forwarded."""
        os.write(next(iter(self._kept)), b"\0\n")
        self._passing.join(timeout=5)
        for number, terminal in self._kept.items():
            os.dup2(terminal, number)
            os.close(terminal)
        self._progress.stop()
        self.console.file.close()

    def _pass_on(self, reading: int) -> None:
        """Print jobs' output above the bars; print only the last version of a line."""
        with os.fdopen(reading, "rb") as lines:
            for line in lines:
                text, *ended = line.decode(errors="replace").rstrip("\n").split("\0")
                if text or not ended:
                    self.console.print(Text.from_ansi(text.rsplit("\r", 1)[-1]), soft_wrap=True)
                if ended:
                    return


def _last_words(logs: list[str]) -> str:
    """Return the last line of the first nonempty log, usually the error of a Python program."""
    for path in logs:
        with suppress(OSError):
            lines = Path(path).read_text(encoding="utf-8", errors="replace").split("\n")
            if written := [line for line in lines if line.strip()]:
                return written[-1].strip()
    return ""
