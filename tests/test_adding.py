"""The sections of docs/adding/*.md, carried out in a copy of the project."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from support import ROOT, run_snakemake

SECTIONS = {
    title: text
    for path in sorted((ROOT / "docs" / "adding").glob("*.md"))
    for title, text in re.findall(
        r"(?ms)^## (.+?)\n(.*?)(?=^## |\Z)", path.read_text(encoding="utf-8")
    )
}
TUTORIAL = "Your own model on the papers' data"
BLOCK = re.compile(r"(?ms)^```(\w+)(?: (file):(\S+))?\n(.*?)^```$")

PROMISED = {
    "A model": ("mine/paper_tables/idiolink_zero_shot.csv", "minilm-cls,"),
    "A reranker, a late-interaction model, an embedder behind an API": (
        "",
        "results/predictions/idiolink/test/minilm-reranker/instruction_sentence/seed-0.run.gz",
    ),
    "External predictions": (
        "mine/paper_tables/idiots_detection.csv",
        "my-system,every-the,1,accuracy,",
    ),
    "A prompt": ("", "results/predictions/jam/english/smollm2-135m-instruct/short/seed-42.jsonl"),
    "Data": ("mine/paper_tables/idiolink_bm25.csv", "own data, the paper IdioLink"),
    "A metric": ("mine/paper_tables/idiolink_bm25.csv", ",reciprocal_rank,"),
    "A column of a table": (
        "mine/paper_tables/jam_drift.csv",
        "smollm2-135m-instruct,zero_shot,english,flipped,",
    ),
    "A table": ("mine/paper_tables/idiots_rates.csv", ",specificity,"),
    "A setting": ("", "2 passed"),
    "A language": ("mine/results/originals/jam/dutch.jsonl", '"test-0002"'),
}
"""What each section promises: a file or the commands' output, and text that it contains."""


def carry_out(document: str, project: Path) -> str:
    """Write a document's files, apply its changes, run its commands, and return their output."""
    printed = ""
    for kind, how, name, text in BLOCK.findall(document):
        if how:
            path = project / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        elif kind == "diff":
            run(["git", "apply", "--unidiff-zero", "-"], project, text)
        elif kind == "console":
            for line in text.splitlines():
                program, *arguments = shlex.split(line.removeprefix("$ "))
                if program == "snakemake":
                    printed += succeeded(run_snakemake(project, *arguments))
                else:
                    programs = {"python": [sys.executable], "cp": ["cp"]}
                    programs["pieline"] = [sys.executable, "-m", "pieline.cli"]
                    printed += run([*programs[program], *arguments], project)
    return printed


def run(command: list[str], folder: Path, stdin: str | None = None) -> str:
    result = subprocess.run(
        command,
        cwd=folder,
        input=stdin,
        capture_output=True,
        text=True,
        # Git must not use a repository that contains the copy.
        env=os.environ | {"GIT_DIR": str(folder / ".no-git"), "PYTHONPATH": str(folder / "src")},
        check=False,
        timeout=900,
    )
    return succeeded(result)


def succeeded(result: subprocess.CompletedProcess[str]) -> str:
    assert result.returncode == 0, (result.args, result.stdout[-2000:] + result.stderr[-4000:])
    return result.stdout


def test_every_section_works() -> None:
    # tests/test_example_study.py covers the last section.
    assert SECTIONS.keys() == {*PROMISED, TUTORIAL, "A study"}


@pytest.mark.parametrize("section", PROMISED)
def test_a_section_has_the_promised_output(section: str, project: Path) -> None:
    printed = carry_out(SECTIONS[section], project)
    name, promised = PROMISED[section]
    assert promised in ((project / name).read_text(encoding="utf-8") if name else printed)


def test_the_tutorial_computes_only_the_readers_model(project: Path) -> None:
    """The plan works offline, and all other numbers equal those of the default run."""
    printed = carry_out(SECTIONS[TUTORIAL], project)
    assert re.search(r"^embed +1$", printed, re.MULTILINE)
    assert not re.search(r"^(bm25_\w+|fine_tune) ", printed, re.MULTILINE)
    assert "take_idiolink_sbert_from_idiolink" in printed


def test_a_language_is_one_module_and_its_data() -> None:
    written = [name for _, how, name, _ in BLOCK.findall(SECTIONS["A language"]) if how]
    assert [name for name in written if name.startswith("src/")] == [
        "src/pieline/languages/dutch.py"
    ]
    assert all(name.startswith(("src/", "mine/")) for name in written)
