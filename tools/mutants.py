r"""Mutation testing: change a module in one place at a time and check whether its tests fail.

Cosmic Ray makes the mutants. It is not in the lock file, so install it in a separate folder:

    .venv/bin/pip install --target /tmp/cosmic-ray cosmic-ray
    .venv/bin/python tools/mutants.py --library /tmp/cosmic-ray --each 12

Surviving mutants are printed as diffs, followed by the number killed per module. A survivor either
changes nothing that a caller can observe, or lacks a test.
"""

import argparse
import ast
import contextlib
import difflib
import importlib.util
import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import pytest

from pieline.core.errors import UserError, nearest, run_command

ROOT = Path(__file__).parents[1]
READING = ("llm/test_answer_forms", "llm/test_answer_readings", "llm/test_llm_parsing")
DETECTION = (
    "idiots/test_detection_metrics",
    "idiots/test_detection_answers",
    "idiots/test_verdicts",
)
MONEY = (
    "llm/test_money",
    "llm/test_llm_parts",
    "llm/test_reported_usage",
    "llm/test_llm_limits",
)
TESTS = {
    "studies/jam/bio": ("jam/test_spans",),
    "studies/jam/metrics/drift": ("jam_experiments/test_drift",),
    "studies/jam/metrics/identification": ("jam_experiments/test_drift", "jam/test_spans"),
    "languages/matching": ("jam/test_spans", "jam/test_romance_matching", "idiots/test_verdicts"),
    "languages/pointing": ("jam/test_spans", "idiots/test_verdicts"),
    "llm/idioms": READING,
    "llm/parsing": READING,
    "studies/idiolink/metrics/scores": ("idiolink/test_zero_shot::TestMetrics",),
    "studies/idiolink/predictions/rankings": (
        "idiolink/test_zero_shot::TestRuns",
        "own/test_predictions",
    ),
    "studies/idiots/metrics": DETECTION,
    "studies/idiots/predictions": (*DETECTION, "idiots/test_tasks", "own/test_predictions"),
    "reporting/numbers": ("test_frame", "claims/test_numbers"),
    "reporting/ours": ("test_frame",),
    "reporting/published": ("test_frame", "claims/test_numbers"),
    "reporting/tables": ("test_layout", "idiolink/test_wide_tables"),
    "reporting/printed": ("claims/test_comparison", "claims/test_published"),
    "results/numbers": ("claims/test_numbers",),
    "results/claims/judgement": ("claims/test_judgement",),
    "llm/costs": MONEY,
    "llm/estimates": (*MONEY, "idiots/test_tasks"),
    "llm/spending": MONEY,
}
"""Test files (or classes) by module."""
SAME = ("Is_Eq", "Eq_Is", "IsNot_NotEq", "NotEq_IsNot")
"""Suffixes of operators that replace comparisons with equivalent ones."""
IMPORTS = ("hypothesis", "ir_measures", "numpy", "pandas", "scipy.stats", "sklearn.metrics")
"""Packages that most tests import, loaded once instead of once per mutant."""
OUTPUTS = {"results", "paper_tables", "runs", "logs"}


def mutants(code: str, count: int, chance: random.Random) -> list[str]:
    """Return at most `count` mutants of a module, each changed in a different place."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator, operator_names

    positions, lines = [], code.splitlines()
    for name in sorted(operator_names()):
        if name.endswith(SAME) or get_operator(name).arguments():
            continue
        operator = get_operator(name)()
        nodes = ast_nodes(get_ast(code))
        places = [place for node in nodes for place in operator.mutation_positions(node)]
        positions += [
            (place, name, number)
            for number, place in enumerate(places)
            if not _is_keyword_mark(lines, *place[0])
        ]
    choices = [list(each) for _, each in groupby(sorted(positions), key=lambda item: item[0])]
    chance.shuffle(choices)
    drawn: list[str] = []
    for options in choices:
        chance.shuffle(options)
        for _, name, number in options:
            try:
                mutant = mutate_code(code, get_operator(name)(), number)
            except AttributeError:  # Cosmic Ray cannot replace an exception such as `zlib.error`
                continue
            if len(drawn) < count and mutant and _meaning(mutant) not in ("", _meaning(code)):
                drawn.append(mutant)
                break
    return drawn


def _is_keyword_mark(lines: Sequence[str], line: int, column: int) -> bool:
    """Return whether a star marks keyword-only parameters rather than a multiplication."""
    return lines[line - 1].startswith("*,", column)


def _meaning(code: str) -> str:
    """Return the syntax tree of code without annotations; empty if it is not valid Python."""
    try:
        tree = ast.parse(code)
    except SyntaxError:
        return ""
    for node in ast.walk(tree):
        for field in {"annotation", "returns"} & {*node._fields}:
            setattr(node, field, None)
    return ast.dump(tree)


def passes(project: Path, tests: tuple[str, ...], limit_s: float | None = None) -> bool:
    """Return whether tests pass in a copy of the project within a time limit."""
    # Forked, because imports take longer than most tests.
    run = multiprocessing.get_context("fork").Process(target=_test, args=(project, tests))
    run.start()
    run.join(limit_s)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(run.pid or 0, signal.SIGKILL)  # includes processes started by the tests
    run.join()
    return run.exitcode == 0


def _test(project: Path, tests: tuple[str, ...]) -> None:
    os.setsid()
    os.chdir(project)
    for stream in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    for name in [name for name in sys.modules if name.partition(".")[0] == "pieline"]:
        del sys.modules[name]
    # Bytecode of one mutant must not be used for the next.
    sys.dont_write_bytecode = True
    os.environ.update(PYTHONPATH="src", PYTHONDONTWRITEBYTECODE="1")
    paths = [
        f"tests/{file}.py{sep}{rest}" for file, sep, rest in (t.partition("::") for t in tests)
    ]
    os._exit(pytest.main(["-qx", "-p", "no:cacheprovider", *paths]))


def survivors(project: Path, module: str, drawn: list[str]) -> list[str]:
    """Print and return the diffs of the mutants that no test detects.

    Raises:
        UserError: The tests of the module fail without a mutation.
    """
    file, tests = project / "src" / "pieline" / f"{module}.py", TESTS[module]
    original, started = file.read_text("utf-8"), time.monotonic()
    if not passes(project, tests):
        raise UserError(
            "the tests fail without a mutation", where=module, hint=f"fix {', '.join(tests)}"
        )
    limit_s = 30 + 3 * (time.monotonic() - started)
    left = []
    for mutant in drawn:
        file.write_text(mutant, "utf-8")
        if passes(project, tests, limit_s):
            lines = (original.splitlines(), mutant.splitlines())
            left.append("\n".join(difflib.unified_diff(*lines, module, module, lineterm="", n=1)))
            print(left[-1], flush=True)
    file.write_text(original, "utf-8")
    return left


def _not_copied(folder: str, names: list[str]) -> set[str]:
    hidden = {name for name in names if name.startswith(".")}
    return hidden | OUTPUTS if Path(folder) == ROOT else hidden


def main() -> None:
    """Print surviving mutants and counts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("modules", nargs="*", metavar="module", help=f"default: {', '.join(TESTS)}")
    parser.add_argument("--library", type=Path, required=True, help="folder with Cosmic Ray")
    parser.add_argument("--each", type=int, default=12, help="maximum number of mutants per module")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    for module in options.modules:
        if module not in TESTS:
            raise UserError(f"no tests are listed for {module!r}", hint=nearest(module, TESTS))
    sys.path.append(str(options.library))
    if importlib.util.find_spec("cosmic_ray") is None:
        raise UserError("Cosmic Ray is not installed", where=options.library, hint="see --help")
    for name in IMPORTS:
        importlib.import_module(name)

    killed = all_drawn = 0
    with tempfile.TemporaryDirectory() as folder:
        project = Path(shutil.copytree(ROOT, Path(folder, "project"), ignore=_not_copied))
        for module in options.modules or TESTS:
            code = (ROOT / "src" / "pieline" / f"{module}.py").read_text("utf-8")
            drawn = mutants(code, options.each, random.Random(f"{options.seed} {module}"))  # noqa: S311
            noticed = len(drawn) - len(survivors(project, module, drawn))
            killed, all_drawn = killed + noticed, all_drawn + len(drawn)
            print(f"{module:40}{noticed:4} of{len(drawn):4} killed", flush=True)
    print(f"{'all':40}{killed:4} of{all_drawn:4} killed ({killed / all_drawn:.1%})")


if __name__ == "__main__":
    run_command(main)
