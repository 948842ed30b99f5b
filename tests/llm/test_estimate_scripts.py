"""Test the scripts for estimates and checks, with and without data."""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from run_script import run_script
from support import ROOT

from pieline.config import layered, load_config
from pieline.core.errors import UserError
from pieline.core.records import save_jsonl
from pieline.core.yamls import read_yaml
from pieline.studies.jam.bio import OUTSIDE
from pieline.studies.jam.records import Original

Run = Callable[..., "Printed"]

GENERATED = {
    "studies": ["jam", "idiots"],
    "jam": {
        "languages": ["german"],
        "models": ["gpt-4o-mini", "o3-mini"],
        "variants": {"source": "generated", "model": "gemini-2.5-pro"},
    },
    "idiots": {"models": ["llama-2-7b-chat"]},
}
ORIGINAL = Original(
    id="test-0001",
    language="german",
    sentence="Sie gab den Löffel ab.",
    tokens=("Sie gab den Löffel ab.",),
    tags=(OUTSIDE,),
    pies=("den Löffel abgeben",),
    is_figurative=False,
    true_idioms=(),
    was_fixed=False,
)
ORIGINALS = "results/originals/jam/german.jsonl"
PLAN = """\
rule embed:
    input: results/datasets/idiolink/test/documents.jsonl
    wildcards: split=test, model=bge-m3, seed=0
    resources: gpu=1
rule table:
    wildcards: table=jam_drift
"""


@dataclass(frozen=True)
class Printed:
    """Output of a script, and the error that ended it."""

    stdout: str
    stderr: str
    error: UserError | None


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs a script in an empty folder without API keys.

    No model has an end date except the models in `ends`.
    """
    for name in [*os.environ]:
        if name.endswith("_API_KEY"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)

    def run(
        script: str, ends: Mapping[str, date] | None = None, plan: str = PLAN, **changes: Any
    ) -> Printed:
        monkeypatch.setattr("pieline.resources.dry_run", lambda *_: plan)
        entries = read_yaml(ROOT / "models.yaml")
        for name, entry in entries.items():
            if entry.get("ends") != "past":
                entry.pop("ends", None)
            if name in (ends or {}):
                entry["ends"] = ends[name]
        (tmp_path / "models.yaml").write_text(yaml.safe_dump(entries))
        raw = read_yaml(ROOT / "config.yaml") | GENERATED | {"data": "released"} | changes
        config = load_config(layered(raw, ROOT / "config/sample.yaml"))
        options = ["--directory", "runs/my run"]
        params = {"config": config.model_dump_json(), "root": ROOT, "options": options}
        error = None
        try:
            run_script(script, input={"models": "models.yaml"}, params=params)
        except UserError as raised:
            error = raised
        return Printed(*capsys.readouterr(), error)

    return run


def rows(output: str) -> list[list[str]]:
    lines = [line.strip("│").split("│") for line in output.splitlines() if line[:1] == "│"]
    return [[cell.strip() for cell in line] for line in lines]


def test_the_estimate_lists_missing_inputs_without_failing(run: Run) -> None:
    done = run("estimate_cost")
    assert (done.error, done.stderr) == (None, "")
    assert ["HardVariants", "gemini-2.5-pro", *"???????", ""] in rows(done.stdout)
    # Until data exists, the numbers are those of the papers' data: 137 originals and 411 variants.
    (o3,) = [row for row in rows(done.stdout) if row[1] == "o3-mini (retired)"]
    assert o3[2:7] == [
        *("~1644", "~0", "~1644"),
        f"~{3 * 548 * 257}",
        f"~{3 * 548 * (25 + 1000)}",
    ]
    (mini,) = [row for row in rows(done.stdout) if row[1] == "gpt-4o-mini"]
    assert mini[2] == f"~{3 * 548 * (1 + 5)}"
    usd = float(o3[7].removeprefix("~")) + float(mini[7].removeprefix("~"))
    assert f"likely about ${usd:.2f} plus unknown costs, at most about $" in done.stdout
    of_few = run("estimate_cost", limit=20)
    assert ["Identification", "o3-mini (retired)", *"???????", ""] in rows(of_few.stdout)
    assert "likely $0.00 plus unknown costs, at most $0.00 plus unknown costs" in of_few.stdout
    lines = done.stdout.splitlines()
    for model, lacking in (
        ("gemini-2.5-pro", "the environment variable GEMINI_API_KEY is not set, it costs money"),
        ("gpt-4o-mini", "the environment variable OPENAI_API_KEY is not set, it costs money"),
        (
            "o3-mini",
            "the checkpoint is retired, the environment variable OPENAI_API_KEY is not set",
        ),
        (
            "llama-2-7b-chat",
            "its weights are not here (meta-llama/Llama-2-7b-chat-hf: not in the hub's cache)",
        ),
    ):
        assert any(line.startswith(f"{model} cannot be asked: {lacking}") for line in lines)
    first, later = lines[-2:]
    assert first == (
        "not known yet; first run: snakemake --cores 1 --directory 'runs/my run' --"
        " results/datasets/idiots/sentences.jsonl"
        f" {ORIGINALS} results/raw/id10m/train_german.tsv"
    )
    # The command does not build outputs that cost money.
    assert later == "not known until models have answered: results/datasets/jam/german.jsonl"


def test_models_that_have_ended_are_left_out_of_the_estimate(run: Run, tmp_path: Path) -> None:
    save_jsonl(tmp_path / ORIGINALS, [ORIGINAL])
    today = date.today()
    totals = {}
    for days in (1, 0):
        done = run("estimate_cost", {"gemini-2.5-pro": today + timedelta(days)})
        models = [row[1] for row in rows(done.stdout) if row[0] == "HardVariants"]
        assert models == ["gemini-2.5-pro"] * days
        (totals[days],) = re.findall(r"total: likely about \$(\d+\.\d\d)", done.stdout)
    assert 0 < float(totals[0]) < float(totals[1])
    assert f"left out: gemini-2.5-pro ended on {today}, so only a gateway" in done.stderr
    assert f"gemini-2.5-pro cannot be asked: the model ended on {today}, the" in done.stdout


def test_the_estimate_lists_remaining_jobs(run: Run) -> None:
    lines = run("estimate_cost").stdout
    # 568 million parameters of four bytes.
    assert ["bge-m3", "1", "1", "2.27"] in rows(lines)
    assert ["(none)", "1", "0", "0.00"] in rows(lines)
    assert ["all", "2", "1", "2.27"] in rows(lines)


def test_existing_data_is_counted(run: Run, tmp_path: Path) -> None:
    save_jsonl(tmp_path / ORIGINALS, [ORIGINAL])
    done = run("estimate_cost")
    (row,) = [row for row in rows(done.stdout) if row[0] == "HardVariants"]
    # Generation and review: 5 variants of 80 tokens after 1000 reasoning tokens.
    assert row[1:5] + row[6:7] == ["gemini-2.5-pro", "2", "0", "2", "2800"]
    assert row[-1] == "form and thinking"
    assert float(row[7]) == pytest.approx((int(row[5]) * 1.25 + 2800 * 10) / 1e6, abs=0.005)
    assert ORIGINALS not in done.stdout
    # A lower cap is reported before it is reached.
    assert "but the questions may cost more" not in done.stdout
    low = run("estimate_cost", llm={"max_cost_usd": 0.01}, limit=20).stdout
    assert "llm.max_cost_usd leaves $0.01, but the questions may cost more (likely $0.03," in low
    assert "llm.max_cost_usd leaves $0.01" in run("check", llm={"max_cost_usd": 0.01}).stderr
    # Data of another configuration will be recreated, so its questions are unknown.
    stale = run(
        "estimate_cost", plan=f"{PLAN}rule jam_originals:\n    output: {ORIGINALS}, b.json\n"
    )
    assert ["HardVariants", "gemini-2.5-pro", *"???????", ""] in rows(stale.stdout)
    assert f" {ORIGINALS} " in stale.stdout


def test_the_check_prints_one_line_per_model(run: Run) -> None:
    done = run("check")
    assert done.stdout == ""
    assert str(done.error).startswith("3 language models cannot be asked for answers that are not")
    starts = (
        "not known yet; first run: snakemake --cores 1 --directory 'runs/my run' --"
        f" results/datasets/idiots/sentences.jsonl {ORIGINALS}",
        "not known until models have answered: results/datasets/jam/german.jsonl",
        "gemini-2.5-pro (nothing is recorded): the environment variable GEMINI_API_KEY",
        "gpt-4o-mini (nothing is recorded): the environment variable OPENAI_API_KEY",
        "warning: o3-mini (nothing is recorded): the checkpoint is retired, the environment",
        "llama-2-7b-chat (nothing is recorded): its weights are not here (meta-llama/L",
    )
    for line, start in zip(sorted(done.stderr.splitlines()), sorted(starts), strict=True):
        assert line.startswith(start)


def test_the_check_passes_if_nothing_is_missing(run: Run) -> None:
    done = run("check", **read_yaml(ROOT / "config.yaml"))
    assert done.error is None
    assert done.stdout == (
        "no missing keys or weights found; some questions of 4 models not known yet\n"
    )


def test_the_check_counts_the_answers_to_request(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_jsonl(tmp_path / ORIGINALS, [ORIGINAL])
    monkeypatch.setenv("GEMINI_API_KEY", "not-a-key-but-set")
    jam = {**GENERATED["jam"], "models": []}  # type: ignore[dict-item]
    done = run("check", studies=["jam"], jam=jam, llm={"max_cost_usd": 100})
    assert done.error is None
    assert done.stdout == "no missing keys or weights found; 2 answers to request\n"


@pytest.mark.parametrize("script", ["estimate_cost", "check"])
def test_models_that_end_soon_are_listed_on_stderr_by_date(run: Run, script: str) -> None:
    today = date.today()
    days = {"gpt-4o-mini": 20, "gemini-2.5-pro": 10, "llama-2-7b-chat": 200}
    done = run(script, {name: today + timedelta(number) for name, number in days.items()})
    first, second = (line for line in done.stderr.splitlines() if "record now" in line)
    assert first == (
        f"record now: gemini-2.5-pro ends on {today + timedelta(10)}, in 10 days; HardVariants:"
        " its data does not exist yet"
    )
    assert second.startswith("record now: gpt-4o-mini ends on ")
    assert "record now" not in done.stdout
