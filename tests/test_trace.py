"""Follow tables through the code: functions, rules in order, measures, and files of a run."""

import inspect
import shutil
from pathlib import Path

import pytest
from support import ROOT, run_snakemake

from pieline.cli import command
from pieline.config import load_config, load_studies
from pieline.models.registry import load_registry
from pieline.reporting.displays import Display
from pieline.reporting.numbers import read_numbers
from pieline.results.trace import (
    Step,
    files_of,
    measures_of,
    rules_in_order,
    steps_of_display,
    steps_of_rules,
)

DISPLAYS = {
    display.name: display
    for study in load_studies(load_config({}), load_registry(ROOT / "models.yaml"), ROOT).values()
    for display in (*study.figures(), *study.tables())
}
"""A table and a figure may have the same name, which then means the table."""


def by_name(steps: list[Step]) -> dict[str, Step]:
    return {step.name: step for step in reversed(steps)}


@pytest.mark.parametrize("display", DISPLAYS.values(), ids=list(DISPLAYS))
def test_every_table_and_figure_names_its_functions(display: Display) -> None:
    first, *makers = steps_of_display(display.name, ROOT)
    assert first.text == display.caption
    assert not makers or {step.level for step in makers} == {1}
    for function in (display.make, display.numbers):
        if function is not None:
            file = Path(inspect.getsourcefile(function) or "").relative_to(ROOT)
            line = inspect.unwrap(function).__code__.co_firstlineno
            assert by_name(makers)[function.__name__].place == f"{file}:{line}"


def test_the_way_to_negative_drift() -> None:
    graph = run_snakemake(ROOT, "--rulegraph", "mermaid-js", "--", "paper_tables/jam_drift.tex")
    rules = rules_in_order(graph.stdout)
    assert rules[-2:] == ["jam_metrics", "table"]
    assert rules.index("jam_dataset") < rules.index("prompt_idioms")
    steps = list(steps_of_rules(rules, ROOT))
    found = by_name(steps)
    assert [step.name for step in steps if step.level == 0] == rules
    places = {
        "prompt_idioms": "rules/ask.smk",
        "scripts/ask.py": "scripts/ask.py",
        "Identification": "src/pieline/studies/jam/predictions/prompting.py",
        "parse_idioms": "src/pieline/llm/idioms.py",
        "match_predictions": "src/pieline/studies/jam/metrics/",
        "judge": "src/pieline/studies/jam/metrics/",
    }
    for name, place in places.items():
        step = found[name]
        assert step.place.startswith(place)
        file, _, line = step.place.partition(":")
        text = (ROOT / file).read_text(encoding="utf-8").splitlines()[int(line) - 1]
        assert name in text or file == name
        assert step.text


@pytest.mark.parametrize(
    ("rule", "functions"),
    [
        ("idiots_detect", {"detection_questions", "ask", "read_detection"}),
        ("idiots_metrics", {"detection_metrics", "names_pie"}),
        ("idiolink_metrics", {"read_run", "idiolink_metrics", "score_queries"}),
    ],
)
def test_the_functions_that_ask_read_and_score_are_shown(rule: str, functions: set[str]) -> None:
    assert functions <= by_name([*steps_of_rules([rule], ROOT)]).keys()


def test_every_rule_with_a_script_names_a_function() -> None:
    """A rule that a reader cannot follow further would end the trace."""
    names = ["jam_metrics", "idiots_metrics", "idiolink_metrics", "tag_idioms", "embed"]
    names.append("take_idiolink_test")  # whose name is computed
    for name in names:
        levels = [step.level for step in steps_of_rules([name], ROOT)]
        assert levels[:2] == [0, 1]
        assert 2 in levels[2:]


def test_every_measure_of_a_run_is_declared(default_run: Path) -> None:
    numbers = read_numbers(default_run / "paper_tables/numbers.csv")
    shown = {
        (table, number.measure.removesuffix("_std"))
        for number in numbers
        if number.ours is not None
        for table in number.tables
    }
    assert len(shown) > 50
    for table, measure in sorted(shown):
        assert measures_of(table, measure, ROOT), (table, measure)


def test_the_files_behind_a_number_lead_to_the_recorded_answers(
    default_run: Path, tmp_path: Path
) -> None:
    first, *files = files_of(default_run / "paper_tables/numbers.csv", "jam_drift", "success")
    assert " success = " in first
    stages = ("results/metrics/", "results/predictions/", "results/datasets/", "recordings/")
    assert [stage for stage in stages if not any(stage in path for path in files)] == []
    assert not any("not in this run" in path for path in files)
    # A copy of the numbers without the files behind them.
    moved = shutil.copy(default_run / "paper_tables/numbers.csv", tmp_path)
    assert files_of(Path(moved), "jam_drift", "success")[1].endswith("  (not in this run)")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["jam_drft"], "jam_drft: no such table or figure; did you mean 'jam_drift'?"),
        (["jam_drift", "sucess"], "sucess: no such measure; did you mean 'success'?"),
    ],
)
def test_mistyped_names(
    arguments: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(ROOT)
    with pytest.raises(SystemExit):
        command(["trace", *arguments])
    assert capsys.readouterr().err == f"error: {message}\n"
