"""The logger plugin: one line per rule in a pipe, bars on a terminal, reasons and failures."""

import json
import logging
import os
import pty
import sys
import termios
from pathlib import Path

import pytest
from snakemake.settings.types import OutputSettings
from support import ROOT

from snakemake_logger_plugin_pieline import LogHandler
from snakemake_logger_plugin_pieline.reasons import explain


def handler(**settings: bool) -> LogHandler:
    return LogHandler(OutputSettings(**settings), None)


def record(event: str | None, text: str = "", **fields: object) -> logging.LogRecord:
    """Create a log record as Snakemake does."""
    return logging.makeLogRecord({"msg": text, "levelno": logging.INFO, "event": event, **fields})


def run_of(display: LogHandler, *ends: logging.LogRecord, reason: str = "") -> None:
    """Start one rule with two jobs and one with one job, then pass on the records in `ends`."""
    display.handle(record("run_info", stats={"search": 2, "table": 1, "total": 3}))
    for number, rule in enumerate(["search", "search", "table"]):
        display.handle(record("job_info", jobid=number, rule_name=rule, reason=reason))
    for end in ends:
        display.handle(end)


def finished(*jobs: int) -> list[logging.LogRecord]:
    return [record("job_finished", job_id=number) for number in jobs]


def failed(*logs: str, **fields: object) -> logging.LogRecord:
    properties = {"rule_name": "table", "rule_msg": None, "aux": {}, "log": list(logs), **fields}
    return record("job_error", **properties)


def test_a_rule_is_reported_when_its_last_job_is_done(capsys: pytest.CaptureFixture[str]) -> None:
    display = handler()
    display.handle(record(None, "Select jobs to execute..."))
    display.handle(record("shellcmd", "python search.py"))
    run_of(display, *finished(0, 1, 2))
    display.handle(record(None, "Complete log(s): /here/run.log"))
    display.close()
    first, search, table, last = capsys.readouterr().err.splitlines()
    assert first == "3 jobs of 2 rules"
    # No remaining time is shown, since run times of jobs differ too much for an estimate.
    assert search[8:] == "  2 of 3 jobs: search 2 of 2"
    assert table[8:] == "  3 of 3 jobs: table 1 of 1"
    assert last == "Complete log(s): /here/run.log"


def test_a_failure_is_reported_with_rule_error_and_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "table.log"
    log.write_text("Traceback:\n  ...\nerror: a.json: not JSON; repair it\n\n")
    error = record("error", "RuleException:\nCalledProcessError in file x\nCommand 'python long'"
                            " died with <Signals.SIGKILL: 9>.")  # fmt: skip
    display = handler()
    run_of(display, error, failed(str(log), rule_msg="OUT_OF_MEMORY", aux={"external_jobid": 7}))
    display.close()
    assert capsys.readouterr().err.splitlines()[1:] == [
        "table failed: a.json: not JSON; repair it",
        "    OUT_OF_MEMORY",
        "    external_jobid: 7",
        f"    log: {log}",
    ]


def test_the_error_of_a_local_job_is_not_repeated_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The job has printed it; it is repeated at the end if other jobs were reported since."""
    log = tmp_path / "table.log"
    log.write_text("error: a.json: not JSON; repair it\n")
    display = handler()
    run_of(display, failed(str(log)))
    assert capsys.readouterr().err.splitlines()[1:] == ["table failed", f"    log: {log}"]
    display.handle(*finished(0))
    display.close()
    assert "table failed: a.json: not JSON; repair it\n" in capsys.readouterr().err


def test_a_silently_killed_job_is_reported_with_its_signal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    error = record("error", "CalledProcessError\nCommand 'x' died with <Signals.SIGKILL: 9>.")
    run_of(handler(), error, failed("logs/none.log"))
    assert "\ntable failed: died with <Signals.SIGKILL: 9>.\n" in capsys.readouterr().err


def test_failures_are_repeated_at_the_end(
    capsys: pytest.CaptureFixture[str],
) -> None:
    display = handler()
    run_of(display, failed("logs/table.log"), *finished(0, 1))
    display.close()
    *_, head, what, where = capsys.readouterr().err.splitlines()
    assert [head, what, where] == [
        "Failed jobs:",
        "table failed: no message",
        "    log: logs/table.log",
    ]


def test_the_log_of_a_failed_job_is_shown_on_request(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "table.log"
    log.write_text("it began\nerror: it ended\n")
    run_of(handler(show_failed_logs=True), failed(str(log)))
    assert capsys.readouterr().err.endswith(f"    log: {log}\nit began\nerror: it ended\n")


OLD, NEW = "src/a.py " + 16 * "0", "src/a.py " + 16 * "1"


def changed(old: object, new: object) -> str:
    """Return the reason that Snakemake prints if a param was changed."""
    sides = [repr(side if isinstance(side, str) else json.dumps(side)) for side in (old, new)]
    return (
        "Params have changed since last execution: Union of exclusive params before and now across"
        f" all output: before: {sides[0]} now: {sides[1]} "
    )


CONDITIONS = {"settings": {"zero_shot": {"temperature": 0.3, "n": 1}}, "weights": 16 * "0"}
OTHER = {"settings": {"zero_shot": {"temperature": 0.7, "n": 1}}, "weights": 16 * "1"}


@pytest.mark.parametrize(
    ("reason", "cause"),
    [
        ("Missing output files: a.csv; Input files updated by another job: b.json", ""),
        ("", ""),
        ("Updated input files: own.csv", "Updated input files: own.csv"),
        ("Forced execution", "Forced execution"),
        (changed(OLD, NEW), "changed src/a.py"),
        (changed(f"{OLD}, b.py {16 * '2'}", f"{NEW}, b.py {16 * '2'}"), "changed src/a.py"),
        (f"Params have changed: before: '{OLD}',10 now: '{NEW}',20 ", "changed src/a.py; 10 → 20"),
        ("Params have changed: before: <nothing exclusive> now: 'x' ", "+ x"),
        ("Params have changed: before: 'x' now: <nothing exclusive> ", "- x"),
        ("Params have changed: before: a range( now: b range( ", "a range( → b range("),
        (changed(CONDITIONS, OTHER), "zero_shot.temperature 0.3 → 0.7; weights changed"),
        # A text with the words that separate the sides, and one with those that separate reasons.
        (changed({"prompt": "a now: b; c"}, {"prompt": "d"}), "prompt a now: b; c → d"),
        (changed({"a": 1, "b": [1]}, {"b": [1, 2], "c": "x"}), "a removed; b + 2; c x (new)"),
        (changed({"b": [1, 2]}, {"b": [2, 1]}), "b in another order"),
        (changed({"spec": '{"prices": {"output": 8}}'}, {"spec": '{"prices": {"output": 9}}'}),
         "spec.prices.output 8 → 9"),
        (
            changed({"models": [{"name": "sbert"}, {"name": "bm25", "label": "BM25"}]},
                    {"models": [{"name": "sbert"}, {"name": "mine", "label": "Mine"}]}),
            "models + mine - bm25",
        ),
        (
            changed({"models": [{"name": "sbert", "label": "S"}]},
                    {"models": [{"name": "sbert", "label": "SBERT"}]}),
            "models.sbert.label S → SBERT",
        ),
        (changed(dict.fromkeys("abcde", 1), dict.fromkeys("abcde", 2)),
         "a 1 → 2; b 1 → 2; c 1 → 2; 2 more"),
    ],
)  # fmt: skip
def test_a_changed_param_is_explained(reason: str, cause: str) -> None:
    assert explain(reason) == cause


def test_an_object_is_compared_with_the_most_similar_one() -> None:
    old, new = ([{"a": n, "b": 5}, {"c": n, "d": 5}] for n in (1, 2))
    sides = [",".join(repr(json.dumps(each)) for each in side) for side in (old, new[::-1])]
    cause = explain(f"Params have changed: before: {sides[0]} now: {sides[1]} ")
    assert cause == "c 1 → 2; a 1 → 2"


def test_the_cause_of_a_rerun_is_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    run_of(handler(), reason=changed(CONDITIONS, OTHER))
    lines = [line for line in capsys.readouterr().err.splitlines() if "→" in line]
    cause = "zero_shot.temperature 0.3 → 0.7; weights changed"
    assert lines == [f"search: {cause}", f"table: {cause}"]


def test_a_dry_run_ends_with_what_changed(capsys: pytest.CaptureFixture[str]) -> None:
    display = handler(dryrun=True, stdout=True)
    display.setFormatter(logging.Formatter("jobs: %(stats)s"))
    stats = {"search": 3, "total": 3}
    display.handle(record("run_info", stats=stats))
    jobs = [
        ("search", {"model": "sbert", "seed": "1"}, changed(CONDITIONS, OTHER)),
        ("search", {"model": "sbert", "seed": "2"}, changed(CONDITIONS, OTHER)),
        ("search", {"model": "mine", "seed": "1"}, "Missing output files: a.run"),
        (
            "table",
            {"table": "scores"},
            changed({"models": ["sbert"]}, {"models": ["sbert", "mine"]}),
        ),
        ("page", {}, "Input files updated by another job: scores.csv"),
    ]
    for number, (rule, wildcards, reason) in enumerate(jobs):
        display.handle(
            record(
                "job_info",
                jobid=number,
                rule_name=rule,
                reason=reason,
                wildcards=wildcards,
                output=["results/predictions/idiolink/a.run"] if rule == "search" else ["a.csv"],
            )
        )
    display.handle(record(None, "Reasons:\n    (check individual jobs above for details)"))
    display.handle(record("run_info", stats=stats))
    display.close()
    assert capsys.readouterr().out.splitlines() == [
        f"jobs: {stats}",
        "Why (-p lists each job):",
        "  zero_shot.temperature 0.3 → 0.7; weights changed (idiolink, sbert, 2 runs,"
        " 2 jobs of search)",
        "  new (idiolink, mine, 1 run, 1 job of search)",
        "  models + mine (scores, 1 job of table)",
    ]


@pytest.mark.parametrize("option", ["printshellcmds", "verbose"])
def test_verbose_runs_use_the_output_of_snakemake(
    option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    display = handler(dryrun=True, stdout=True, **{option: True})
    display.setFormatter(logging.Formatter("as usual: %(message)s"))
    display.handle(
        record("job_info", "rule search", rule_name="search", reason="", wildcards={}, output=[])
    )
    assert capsys.readouterr() == ("\nas usual: rule search\n", "")


def test_on_a_terminal_bars_are_below_the_output_of_jobs() -> None:
    code = """
import os, test_logger_plugin
display = test_logger_plugin.handler()
test_logger_plugin.run_of(display, *test_logger_plugin.finished(0))
os.write(2, b"half\\rof a job\\n")
os.write(1, b"on stdout\\n")
display.close()
os.write(2, b"back\\n")
"""
    child, terminal = pty.fork()
    if not child:
        termios.tcsetwinsize(1, (24, 100))
        path = f"{ROOT / 'src'}:{ROOT / 'tests'}"
        environment = os.environ | {"PYTHONPATH": path, "TERM": "xterm"}
        os.execve(sys.executable, [sys.executable, "-c", code], environment)
    drawn = ""
    while part := _read(terminal):
        drawn += part
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, drawn
    assert "1/3" in drawn
    assert "1/2" in drawn
    assert "of a job\r\n" in drawn
    assert "half" not in drawn
    assert "on stdout\r\n" in drawn
    assert drawn.endswith("back\r\n"), "the terminal is given back"


def _read(terminal: int) -> str:
    try:
        return os.read(terminal, 1 << 16).decode(errors="replace")
    except OSError:  # everything was read, and the child process has ended
        return ""
