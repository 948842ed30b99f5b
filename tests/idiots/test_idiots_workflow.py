"""IdioTS in the workflow: same bytes, nothing asked twice, one error before anything is asked."""

import hashlib
import os
from pathlib import Path

import pytest
from support import run_snakemake

RUN = "results/predictions/idiots/smollm2-135m-instruct"
TARGETS = (
    "paper_tables/idiots_detection.tex",
    "paper_tables/idiots_consistency.tex",
    "paper_tables/idiots_distractors.tex",
    "paper_tables/figures/idiots_recall_specificity.pdf",
    f"{RUN}/zero_shot/seed-0.cases.jsonl",
    f"{RUN}/zero_shot_schema/seed-0.cases.jsonl",
)


def digests(folder: Path, *names: str) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for name in names
        for path in sorted((folder / name).rglob("*"))
        if path.is_file() and ".locks" not in path.parts
    }


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {path}"
    path.write_text(text.replace(old, new), encoding="utf-8")


def make(folder: Path, *arguments: str) -> str:
    result = run_snakemake(folder, *arguments)
    output = result.stdout + result.stderr
    assert result.returncode == 0, output[-4000:]
    return output


@pytest.mark.slow
def test_from_scratch_twice_and_then_nothing(project: Path) -> None:
    recordings = digests(project, "recordings")
    make(project, "--cores", "1", *TARGETS)
    first = digests(project, "results", "paper_tables")
    assert {*TARGETS} <= first.keys()
    for name in first:
        if not name.endswith("README.md"):
            (project / name).unlink()
    assert "to ask" not in make(project, "--cores", "2", *TARGETS)
    assert digests(project, "results", "paper_tables") == first
    assert digests(project, "recordings") == recordings
    assert "Nothing to be done" in make(project, "--cores", "1", *TARGETS)

    # Neither a mode that reads the same answers nor a limit is a reason to make anything again.
    edit(project / "config.yaml", "mode: record", "mode: replay")
    edit(project / "config.yaml", "max_cost_usd: 0", "max_cost_usd: 0\n  timeout_s: 60")
    assert "Nothing to be done" in make(project, "-n", *TARGETS)
    # Another seed is another question, which replay cannot answer.
    edit(project / "config.yaml", "idiots:\n", "idiots:\n  seeds: [1]\n")
    result = run_snakemake(project, "--cores", "1", *TARGETS[:1])
    assert result.returncode != 0
    assert "smollm2-135m-instruct (164 answers not recorded): llm.mode is replay" in result.stderr
    assert not list((project / RUN).rglob("seed-1*"))


@pytest.mark.slow
def test_missing_keys_are_one_error_before_anything_is_asked(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [*os.environ]:
        if name.endswith("_API_KEY"):
            monkeypatch.delenv(name)
    models = "[gpt-4o-mini, claude-4-sonnet]"
    old = "idiots:\n  models: [smollm2-135m-instruct]\n  settings: [zero_shot, zero_shot_schema]"
    edit(project / "config.yaml", old, f"idiots:\n  models: {models}\n  settings: [zero_shot]")
    result = run_snakemake(project, "--cores", "2", *TARGETS[:4])
    assert result.returncode != 0
    assert "Traceback" not in result.stdout + result.stderr
    lines = {line for line in result.stderr.splitlines() if line.startswith("error: ")}
    assert len(lines) == 1
    line = lines.pop()
    assert "gpt-4o-mini (nothing is recorded): the environment variable OPENAI_API_KEY" in line
    assert "claude-4-sonnet (nothing is recorded): the environment variable ANTH" in line
    assert not list((project / "results/predictions/idiots").rglob("*.jsonl"))

    told = make(project, "--cores", "1", "estimate_cost")
    assert "gpt-4o-mini" in told
    assert "claude-4-sonnet (retired)" in told
    # It makes no data, and says which it lacks.
    assert "snakemake --cores 1 -- results/datasets/idiots/sentences.jsonl" in told
    assert not (project / "results/datasets").exists()
