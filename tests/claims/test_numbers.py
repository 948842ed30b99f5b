"""The verdict on every number that the papers print, and which numbers count."""

import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from frame_cases import numbers_of_run, our_number, table_of
from support import ROOT

from pieline.config import layered, load_config, load_studies
from pieline.core.yamls import read_yaml
from pieline.models.registry import load_registry
from pieline.reporting.numbers import (
    Number,
    frame_of,
    read_numbers,
    write_numbers,
    write_parquet,
)
from pieline.results import run_models
from pieline.results.numbers import (
    NO_NUMBER,
    NOWHERE,
    UNKNOWN_WAY,
    counted,
    in_words,
    run_options,
    summarize,
)
from pieline.results.run_report import RunReport

METRICS = "results/metrics/jam/english/gpt/zero_shot/seed-42.json"
MODELS = {"gpt": "GPT-4o mini"}
REQUIRED = {"absent": {"jam_usage": "no time"}, "models": {"gpt": "a key"}}
KEYS = {"setting": "zero_shot", "model": "gpt", "language": "english"}


@pytest.fixture
def one_table() -> list[Number]:
    """Return the numbers of a run with one table, which has all verdicts."""
    made = KEYS | {"files": [METRICS]}
    drift = table_of(
        "jam_drift",
        made | {"measure": "success", "ours": 471.0},
        made | {"measure": "success_std", "ours": 9.0, "ranges": {"drawn so": (8.5, 9.5)}},
        made | {"measure": "negative_drift", "ours": 1.0},
        made
        | {
            "measure": "negative_drift_std",
            "ours": 1.0,
            "obstacles": ["sample data", "other prompt"],
        },
        KEYS | {"language": "german", "measure": "success", "ours": None, "not_run": "no key"},
        otherwise="not asked",
    )
    return numbers_of_run(drift, names=MODELS, **REQUIRED)


def in_drift(number: Number) -> bool:
    return number.tables[:1] == ("jam_drift",)


def test_a_number_has_the_command_that_computes_it(one_table: list[Number]) -> None:
    """Of compared numbers, the run's; of others, the full grid's; without a table, none."""
    start, grid = "snakemake --cores all --configfile", "config/paper.yaml -- paper_tables"
    commands = {
        number.command
        for number in one_table
        if in_drift(number) and number.verdict == "reproduced"
    }
    assert commands == {f"{start} 'config/a b.yaml' -- {METRICS}"}
    others = [number for number in counted(one_table) if number.verdict == "not run"]
    assert {number.command for number in others if number.tables[:1] == ("jam_usage",)} == {
        f"{start} {grid}/jam_usage.tex"
    }
    assert all(number.command for number in others if number.tables)
    assert not any(number.command for number in others if not number.tables)


def test_all_printed_numbers_are_counted_once() -> None:
    """Numbers that describe a model, or repeat a table in the text, are not counted."""
    numbers = numbers_of_run()
    places = ((number.study, number.place.split()[0], number.kind) for number in counted(numbers))
    counts = Counter(places)
    assert counts == {
        # Tables 3, 5 and 6; 2; 4.
        ("jam", "Table", "score"): 112 + 224 + 168,
        ("jam", "Table", "count"): 8,
        ("jam", "Table", "parameter"): 3,
        ("jam", "Section", "score"): 16,
        ("jam", "Section", "count"): 19,
        ("idiots", "Table", "score"): 18 + 9 + 6,
        ("idiots", "Section", "score"): 4,
        ("idiots", "Section", "count"): 5,
        ("idiolink", "Table", "score"): 192 + 120,
        ("idiolink", "Table", "count"): 18,
        ("idiolink", "Table", "parameter"): 9,
        ("idiolink", "Appendix", "score"): 4,
        ("idiolink", "Appendix", "parameter"): 2,
        ("idiolink", "Section", "score"): 13,
        ("idiolink", "Section", "count"): 39,
    }
    assert summarize(numbers) == "989 printed numbers: none reproduced, 989 not run"
    assert summarize([]) == NO_NUMBER


def test_a_repeated_number_has_one_verdict_and_all_places() -> None:
    numbers = {(each.study, in_words(each, {})): each for each in counted(numbers_of_run())}
    merged = {
        ("jam", "GPT-4o mini, zero-shot, English, success count"): ("Table 3", ("Table 5",)),
        ("jam", "GPT-4o mini, zero-shot, English, deviation of success count"): (
            "Table 3",
            ("Table 5",),
        ),
        ("idiots", "Idiomatic sentences"): ("Section 3.4", ("Table 2",)),
        ("idiots", "Distractor sentences"): ("Section 3.4", ("Table 3",)),
        ("idiolink", "bm25, sentence mode, k1"): ("Appendix E", ("Appendix E",)),
        ("idiolink", "bm25, sentence mode, b"): ("Appendix E", ("Appendix E",)),
        ("jam", "GPT-4o mini, zero-shot, English, negative drift"): ("Table 3", ()),
    }
    assert {key: (numbers[key].place, numbers[key].also_in) for key in merged} == merged
    assert ("idiolink", "bm25, span mode, k1") not in numbers


def test_verdicts_of_printed_numbers(one_table: list[Number]) -> None:
    verdicts = {
        (number.language, number.measure): (number.verdict, number.shown, number.reason)
        for number in one_table
        if in_drift(number) and (number.model, number.setting) == ("gpt", "zero_shot")
    }
    assert verdicts == {
        ("english", "success"): ("reproduced", "471.00", ""),
        ("english", "success_std"): ("within sampling range", "9.00", ""),
        ("english", "negative_drift"): ("not reproduced", "1.00", ""),
        ("english", "negative_drift_std"): (
            *("not comparable", "1.00"),
            "sample data; other prompt",
        ),
        ("german", "success"): ("not run", "", "no key"),
        ("german", "success_std"): ("not run", "", "not asked"),
        ("german", "negative_drift"): ("not run", "", "not asked"),
        ("german", "negative_drift_std"): ("not run", "", "not asked"),
    }
    assert summarize(one_table) == (
        "989 printed numbers: 1 reproduced (1 score), 1 within sampling range,"
        " 1 not reproduced, 1 not comparable, 985 not run"
    )


def test_reasons_and_requirements_of_missing_numbers(one_table: list[Number]) -> None:
    needs = ("the public hard variants of ID10M-JAM", "a key")
    for number in one_table:
        if in_drift(number) and number.model == "gpt":
            is_compared = number.language == "english" and number.ours and not number.reason
            assert number.needs == (() if is_compared else needs)
    by_place = {(number.study, number.place): number for number in one_table}
    assert by_place["jam", "Table 5"].reason == "no time"
    hours = next(number for number in one_table if "M4 Pro" in number.what)
    assert (hours.reason, hours.needs) == (NOWHERE, (UNKNOWN_WAY,))
    sample = numbers_of_run(general="real data")
    assert all(number.needs[0] == "real data" for number in counted(sample) if number.tables)


def test_a_number_of_several_tables_is_one_row() -> None:
    """The table that has its record provides the value."""
    row = KEYS | {"measure": "success"}
    missing = table_of("jam_usage", row | {"ours": None, "not_run": "no key"})
    made = table_of("jam_drift", row | {"ours": 471.0, "files": [METRICS]})
    for tables in ((missing, made), (made, missing)):
        numbers = numbers_of_run(*tables, names=MODELS)
        (number,) = (each for each in numbers if each.ours is not None)
        assert (number.ours, number.verdict, number.files) == (471.0, "reproduced", (METRICS,))
        assert {*number.tables} == {"jam_drift", "jam_usage"}
        assert len(counted(numbers)) == 989


def test_a_run_without_tables_or_printed_numbers_has_a_frame() -> None:
    assert numbers_of_run(published={}) == []
    own = table_of("jam_drift", KEYS | {"measure": "success", "ours": 1.0}, data="own")
    (number,) = numbers_of_run(own, published={})
    assert (number.printed, number.counts, number.verdict) == (None, False, "not comparable")
    assert summarize([number]) == NO_NUMBER


def test_numbers_are_written_and_read(one_table: list[Number], tmp_path: Path) -> None:
    path = tmp_path / "numbers.csv"
    write_numbers(path, frame_of(one_table))
    assert read_numbers(path) == one_table
    # Numbers within sampling range need no further run.
    command = [sys.executable, "tools/report_comparison.py", str(path), "--at-least"]
    for wanted, status in (("1", 0), ("2", 1)):
        done = subprocess.run(
            [*command, wanted], check=False, cwd=ROOT, capture_output=True, text=True
        )
        assert (done.returncode, done.stdout.splitlines()[-1]) == (status, summarize(one_table))
    assert "  224 not compared: no time" in done.stdout


EXAMPLES = re.compile(r"(?ms)^```python\n(.*?)^```$")


def test_the_examples_of_the_frame_work(
    one_table: list[Number], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("paper_tables").mkdir()
    write_parquet("paper_tables/numbers.parquet", frame_of(one_table))
    text = (ROOT / "docs/items.md").read_text(encoding="utf-8")
    (example,) = (each for each in EXAMPLES.findall(text) if "numbers.parquet" in each)
    names: dict[str, Any] = {"pd": pd}
    exec(example, names)
    assert names["verdicts"].to_dict() == {
        **{"not run": 985, "reproduced": 1, "within sampling range": 1},
        **{"not reproduced": 1, "not comparable": 1},
    }
    assert names["reasons"]["no time"] == 224
    assert names["scores"].loc[("jam", "gpt"), "negative_drift"] == 1.0


@pytest.fixture(scope="module")
def released() -> RunReport:
    """Create the run of config/released.yaml."""
    raw = read_yaml(ROOT / "config/released.yaml")
    config = load_config(layered(raw, ROOT / "config/sample.yaml"))
    return RunReport(load_studies(config, load_registry(ROOT / "models.yaml"), ROOT), config)


def test_a_run_explains_missing_tables(released: RunReport) -> None:
    absent = released.absent()
    for name in ("jam_drift", "jam_usage", "jam_confusion"):
        assert absent[name].endswith("uses no hard variants (jam.variants.source: none)")
    assert absent["idiolink_finetuned"] == "idiolink.finetuning.models names no model"
    assert not {"jam_statistics", "idiolink_zero_shot", "idiots_detection"} & absent.keys()


def test_requirements_of_a_model() -> None:
    registry = load_registry(ROOT / "models.yaml")
    needs, names = run_models.requirement_by_model(registry), run_models.names_by_printed(registry)
    assert needs["gpt-4o"] == "the key OPENAI_API_KEY, until the model ends on 2027-01-14"
    assert needs["deepseek-r1"] == "the key TOGETHER_API_KEY"
    assert needs["claude-4-sonnet"].startswith("answers that were recorded before")
    assert needs["contriever"] == (
        "only time: about 11 minutes on a CPU, with 8 GB of memory and 0.4 GB of weights from the"
        " hub"
    )
    assert needs["mbert"] == (
        "about 2 hours per language on a GPU with 9 GB, and 0.7 GB of weights from the hub"
    )
    assert needs["e5-mistral"] == (
        "about half an hour on a GPU with 17 GB, and 14 GB of weights from the hub"
    )
    # IdioTS's authors ran its models without a GPU.
    assert needs["vicuna-7b"] == (
        "a GPU with 20 GB, and 14 GB of weights from the hub; without a GPU, a GGUF file, not"
        " compared"
    )
    # The provider retired the model, but its weights are available.
    for name in names["Llama 4 Scout"]:
        assert needs[name] == "4 GPUs with 275 GB, and 218 GB of weights from the hub"
    printed = {number.model for number in numbers_of_run() if number.model}
    assert printed - names.keys() == {"bm25"}


def test_numbers_are_described_in_words() -> None:
    empty = {"what": "", "setting": "", "language": "", "scope": "", "seed": ""}
    keys = {"train_mode": "sentence", "model": "base", "query_mode": "instruction_span"}
    number = our_number(1.0, **empty, **keys, measure="r_precision_std")
    assert in_words(number, {"base": "SBERT"}) == (
        "SBERT fine-tuned on sentences, instruction + span mode, deviation of R-Precision"
    )
    parameter = our_number(1.0, **empty, model="", measure="learning_rate")
    assert in_words(parameter, {}) == "learning rate"
    assert in_words(replace(parameter, what="Texts."), {}) == "Texts."


def test_the_options_of_a_run_name_no_place_outside_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    for folder in (project / "runs/mine", elsewhere):
        folder.mkdir(parents=True)
    monkeypatch.chdir(project)
    assert run_options(project, [], {}) == []
    monkeypatch.chdir("runs/mine")
    inside, outside = str(project / "config/paper.yaml"), str(elsewhere / "a.yaml")
    settings = {
        "mirror": str(elsewhere),
        "idiolink": {"models": ["bm25", "mine"]},
        "limit": 5,
        "page": None,
    }
    settings |= {"archives": [outside], "own_data": str(elsewhere), "llm": {"max_cost_usd": "9"}}
    assert run_options(Path("../.."), [inside, outside], settings) == [
        *("--directory", "runs/mine", "--configfile", "config/paper.yaml", "FOLDER/a.yaml"),
        *("--config", 'idiolink={"models": ["bm25", "mine"]}', "limit=5", "page="),
        *('archives=["FOLDER/a.yaml"]', "own_data=FOLDER"),
    ]
    monkeypatch.chdir(elsewhere)
    assert run_options(project, [], {}) == ["--directory", "FOLDER"]
