"""The verdict on every number that the papers print, and which numbers count."""

import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from claims_cases import PUBLISHED, Ledger
from support import ROOT

from pieline.config import layered, load_config, load_studies
from pieline.core.yamls import read_yaml
from pieline.models.registry import load_registry
from pieline.reporting.printed import (
    Comparison,
    compare,
    write_comparisons,
)
from pieline.results import run_models
from pieline.results.cells import ComparedCell, missing, read_cells
from pieline.results.claims.tables import match_cells
from pieline.results.numbers import (
    NO_NUMBER,
    PrintedNumber,
    account_for,
    in_words,
    read_numbers,
    run_options,
    summarize,
    write_numbers,
)
from pieline.results.run_report import RunReport
from pieline.results.run_results import RunResults, ShownStudy

METRICS = "results/metrics/jam/english/gpt/zero_shot/seed-42.json"


def account(ledger: Ledger, *files: Path, **settings: Any) -> list[PrintedNumber]:
    ours = match_cells(read_cells(files), ledger.catalogue, ledger.printed, {"gpt": "GPT-4o mini"})
    absent, models = {"jam_usage": "no time"}, {"GPT-4o mini": "a key"}
    return account_for(PUBLISHED, ledger.catalogue, ours, absent=absent, models=models, **settings)


@pytest.fixture
def one_table(tmp_path: Path, ledger: Ledger) -> list[PrintedNumber]:
    """Return the verdicts if one table was made, which has cells with all verdicts except one."""
    key = {"setting": "zero_shot", "model": "gpt", "language": "english"}
    cells = {
        "success": compare(471.0, 471.0, obstacles=[]),
        "success_std": compare(9.0, 8.0, obstacles=[], ranges={"drawn so": (8.5, 9.5)}),
        "negative_drift": compare(1.0, 5.0, obstacles=[]),
        "negative_drift_pct_std": compare(1.0, 1.0, obstacles=["sample data", "other prompt"]),
    }
    path = tmp_path / "jam_drift.csv"
    rows = [(key | {"metric": name}, cell, (METRICS,)) for name, cell in cells.items()]
    rows.append((key | {"language": "german", "metric": "success"}, unasked(), ()))
    write_comparisons(path, rows, decimals=2, mark="Mark.")
    return account(ledger, path, mark="Mark.", options=["--configfile", "config/a b.yaml"])


def unasked() -> Comparison:
    return compare(None, 333.0, obstacles=["not run: no key"])


def test_a_number_has_the_command_that_computes_it(one_table: list[PrintedNumber]) -> None:
    """Of compared numbers, the run's; of others, the full grid's; without a table, none."""
    start, grid = "snakemake --cores all --configfile", "config/paper.yaml -- paper_tables"
    commands = {
        number.command
        for number in one_table
        if number.file == "jam_drift" and number.verdict == "reproduced"
    }
    assert commands == {f"{start} 'config/a b.yaml' -- {METRICS}"}
    others = [number for number in one_table if number.verdict == "not run"]
    assert {number.command for number in others if number.file == "jam_usage"} == {
        f"{start} {grid}/jam_usage.tex"
    }
    assert all(number.command for number in one_table if number.file)
    assert not any(number.command for number in one_table if not number.file)


def test_all_printed_numbers_are_counted_once(ledger: Ledger) -> None:
    """Numbers that describe a model, or repeat a table in the text, are not counted."""
    numbers = account(ledger)
    counts = Counter((number.paper, number.place.split()[0], number.kind) for number in numbers)
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


def test_a_repeated_number_has_one_verdict_and_all_places(ledger: Ledger) -> None:
    numbers = {(number.paper, number.what): number for number in account(ledger)}
    merged = {
        ("jam", "GPT-4o mini, zero-shot, English, success count"): ("Table 3", ("Table 5",)),
        ("jam", "GPT-4o mini, zero-shot, English, deviation of success count"): (
            "Table 3",
            ("Table 5",),
        ),
        ("idiots", "Idiomatic sentences"): ("Section 3.4", ("Table 2",)),
        ("idiots", "Distractor sentences"): ("Section 3.4", ("Table 3",)),
        ("idiolink", "sentence mode, k1"): ("Appendix E", ("Appendix E",)),
        ("idiolink", "sentence mode, b"): ("Appendix E", ("Appendix E",)),
        ("jam", "GPT-4o mini, zero-shot, English, negative drift"): ("Table 3", ()),
    }
    assert {key: (numbers[key].place, numbers[key].also_in) for key in merged} == merged
    assert ("idiolink", "span mode, k1") not in numbers


def test_verdicts_of_printed_numbers(one_table: list[PrintedNumber]) -> None:
    verdicts = {
        number.what: (number.verdict, number.ours, number.reason, number.needs)
        for number in one_table
        if number.file == "jam_drift" and "GPT-4o mini, zero-shot, " in number.what
    }
    needs = ("the released hard variants of ID10M-JAM (public)", "a key")
    row = "GPT-4o mini, zero-shot, English, "
    assert verdicts[f"{row}success count"] == ("reproduced", "471", "", ())
    assert verdicts[f"{row}deviation of success count"] == ("within sampling range", "9", "", ())
    assert verdicts[f"{row}negative drift"] == ("not reproduced", "1", "", ())
    assert verdicts[f"{row}deviation of negative drift"] == (
        "not comparable",
        "1",
        "sample data",
        needs,
    )
    german = verdicts["GPT-4o mini, zero-shot, German, success count"]
    assert german == ("not run", "", "no key", needs)
    assert summarize(one_table) == (
        "989 printed numbers: 1 reproduced (1 score), 1 within sampling range,"
        " 1 not reproduced, 1 not comparable, 985 not run"
    )


def test_reasons_and_requirements_of_missing_numbers(one_table: list[PrintedNumber]) -> None:
    by_place = {(number.paper, number.place): number for number in one_table}
    assert by_place["jam", "Table 5"].reason == "no time"
    hours = next(number for number in one_table if "M4 Pro" in number.what)
    assert (hours.reason, hours.needs) == (
        "nothing in this project computes it",
        ("a way to compute them, which this project does not have",),
    )


def test_numbers_are_written_and_read(one_table: list[PrintedNumber], tmp_path: Path) -> None:
    path = tmp_path / "printed_numbers.csv"
    write_numbers(path, one_table)
    assert read_numbers(path) == one_table
    # Numbers within sampling range need no further run.
    command = [sys.executable, "tools/report_comparison.py", str(path), "--at-least"]
    for wanted, status in (("1", 0), ("2", 1)):
        done = subprocess.run(
            [*command, wanted], check=False, cwd=ROOT, capture_output=True, text=True
        )
        assert (done.returncode, done.stdout.splitlines()[-1]) == (status, summarize(one_table))
    assert "  224 not compared: no time" in done.stdout


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


def test_requirements_of_a_model(released: RunReport, ledger: Ledger) -> None:
    needs = run_models.needs(released.project.registry)
    assert needs["GPT-4o"] == "the key OPENAI_API_KEY, until the model ends on 2027-01-14"
    assert needs["DeepSeek-R1"] == "the key TOGETHER_API_KEY"
    assert needs["Claude 4 Sonnet"].startswith("answers that were recorded before")
    assert needs["facebook/contriever"] == (
        "only time: about 11 minutes on a CPU, with 8 GB of memory and 0.4 GB of weights from the"
        " hub"
    )
    assert needs["mBERT"] == (
        "about 2 hours per language on a GPU with 9 GB, and 0.7 GB of weights from the hub"
    )
    assert needs["intfloat/e5-mistral-7b-instruct"] == (
        "about half an hour on a GPU with 17 GB, and 14 GB of weights from the hub"
    )
    # IdioTS's authors ran its models without a GPU.
    assert needs["Vicuna-7b"] == (
        "a GPU with 20 GB, and 14 GB of weights from the hub; without a GPU, a GGUF file, not"
        " compared"
    )
    # The provider retired the model, but its weights are available.
    assert needs["Llama 4 Scout"] == "4 GPUs with 275 GB, and 218 GB of weights from the hub"
    printed = {number.model for number in account(ledger) if number.model}
    assert printed <= needs.keys()


def test_numbers_are_described_in_words() -> None:
    keys = {"train_mode": "sentence", "model": "org/model", "query_mode": "instruction_span"}
    labels = {"org/model": "SBERT"}
    assert in_words(keys, "r_precision_pct_std", labels) == (
        "SBERT fine-tuned on sentences, instruction + span mode, deviation of R-Precision"
    )
    assert in_words({"parameter": "learning_rate"}, "value", {}) == "learning rate"


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


def test_a_run_ends_with_the_scores_of_models_without_a_printed_row() -> None:
    def scored(ours: str, table: str = "idiolink_zero_shot", **keys: str) -> ComparedCell:
        known = {"model": "mine", "query_mode": "sentence", "metric": "r_precision"}
        return missing("").model_copy(
            update={"table": table, "keys": known | keys, "ours": ours},
        )

    run = RunResults(
        studies=(
            ShownStudy(name="jam", paper="ID10M-JAM", main_table="jam_drift"),
            ShownStudy(name="idiolink", paper="IdioLink", main_table="idiolink_zero_shot"),
        ),
        others={"mine": "Mine", "unused": "Unused"},
        cells=(
            scored("41.00"),
            scored("52.00", metric="ndcg_at_10"),
            scored("43.00", query_mode="instruction_span", seed="42"),
            scored("44.00", query_mode="instruction_sentence", seeds="42, 43"),
            scored("7", metric="answers_unreadable"),
            scored("1.00", model="sbert"),
            scored("2.00", table="idiolink_pairs"),
            scored("", query_mode="span"),
        ),
    )
    assert run.scores_of_others() == [
        "Mine, in paper_tables/idiolink_zero_shot.csv:",
        "  sentence mode: R-Precision 41.00, nDCG@10 52.00",
        "  instruction + span mode, seed 42: R-Precision 43.00",
        "  instruction + sentence mode: R-Precision 44.00",
    ]
