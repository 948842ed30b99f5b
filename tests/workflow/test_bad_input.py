"""User errors give one line with file, record and hint, and a non-zero exit status."""

import re
from pathlib import Path

import pytest
from support import run_snakemake, succeed

DATASET = "results/datasets/idiolink/test/manifest.json"
RELEASED = ("--configfile", "config/released.yaml", "--config")


def errors(stderr: str) -> list[str]:
    return [line for line in stderr.splitlines() if line.startswith("error: ")]


def fails(project: Path, *arguments: str, rule: str = "", log: str = "") -> str:
    """Run, expect a failure without a traceback, and return the only error line.

    If a rule and a log are passed, both must be named, too.
    """
    result = run_snakemake(project, "--cores", "1", *arguments)
    assert result.returncode != 0
    output = result.stdout + result.stderr
    assert "Traceback" not in output
    lines = errors(result.stderr)
    assert len(lines) == 1, output[-2000:]
    line = lines.pop()
    assert output.count(line.removeprefix("error: ")) == 1
    if rule:
        message = f"{rule} failed\n    log: {log}\n"
        assert message in result.stderr
    return line


def test_wrong_json(project: Path) -> None:
    path = project / "data/sample/idiolink/test/indexes.json"
    lines = path.read_text(encoding="utf-8").splitlines()
    lines[4] = '    "idiom": broken,'
    path.write_text("\n".join(lines), encoding="utf-8")
    log = "logs/datasets/idiolink/test/documents.log"
    line = fails(project, DATASET, rule="idiolink_dataset", log=log)
    assert "indexes.json:5: not JSON" in line
    assert "repair the file" in line
    assert not (project / DATASET).exists()


def test_files_are_named_as_seen_from_outside_the_working_directory(
    project: Path, tmp_path: Path
) -> None:
    path = tmp_path / "config.yaml"
    command = ("-n", "--directory", str(tmp_path), "--configfile", str(path), "--", "all")
    path.write_text("idiolink: {models: [sbrt]}\n", encoding="utf-8")
    assert fails(project, *command).startswith(f"error: {path}: idiolink.models: unknown model")
    path.write_text("studies: [idiots]\nidiots: {prompts: {p: {file: p.jinja}}}\n")
    assert fails(project, *command) == "error: p.jinja: no such file; check the path"


def test_unknown_model_name(project: Path) -> None:
    path = project / "config/mine.yaml"
    path.write_text("idiolink: {models: [bm25, sbrt]}\n", encoding="utf-8")
    line = fails(project, "--configfile", "config/mine.yaml", "--", "all")
    assert line == (
        "error: config/mine.yaml: idiolink.models: unknown model 'sbrt'; did you mean 'sbert'?"
    )


def test_target_taken_for_a_configuration_file(project: Path) -> None:
    line = fails(project, "-n", "--configfile", "config/released.yaml", "all")
    assert line == (
        "error: all: No such file or directory; check the path; if this is a target, write --"
        " before it"
    )


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        ("idiolink_zeroshot.tex", "no file of a table or figure; did you mean 'paper_tables/idio"),
        ("figures/jam_drft.png", "no file of a table or figure; did you mean 'paper_tables/fig"),
        ("nonsense.tex", "no file of a table or figure; pieline tables lists them"),
        ("idiolink_bm25.tex", "not in this configuration; see docs/configuration.md"),
    ],
)
def test_a_table_that_is_not_made(project: Path, target: str, problem: str) -> None:
    without = "idiolink={models: [sbert], finetuning: {models: []}}"
    line = fails(project, "-n", "--config", without, "--", f"paper_tables/{target}")
    assert line.startswith(f"error: paper_tables/{target}: {problem}")
    # Tables of studies that the configuration does not name can be made.
    succeed(project, "-n", "--config", "studies=[idiolink]", "--", "paper_tables/jam_drift.tex")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--config", "limit=0", "-C", "data=released"), "--config is given twice; write all"),
        (
            ("--configfile", "config/score.yaml", "--configfile", "config/released.yaml"),
            "--configfile is given twice; write all",
        ),
        (
            ("--config", "idiolink={models: [bm25], models: []}"),
            "--config: idiolink: duplicate key 'models'; remove one of them",
        ),
        (("--config", "archives=[{url: a, url: b}]"), "--config: archives: duplicate key 'url'"),
        (
            ("--config", "idiots.models=[x]"),
            "--config: idiots.models=[x] does not set a setting; write 'idiots={models: [x]}'",
        ),
        (("--config", "limit"), "--config: limit does not set a setting; write name=value"),
    ],
)
def test_an_option_of_which_snakemake_would_use_a_part(
    project: Path, words: tuple[str, ...], problem: str
) -> None:
    assert fails(project, "-n", *words, "--", "all").startswith(f"error: {problem}")


@pytest.mark.parametrize(("file", "key"), [("models.yaml", "sbert"), ("config.yaml", "idiots")])
def test_duplicate_key(project: Path, file: str, key: str) -> None:
    with (project / file).open("a", encoding="utf-8") as stream:
        stream.write(f"\n{key}:\n  models: []\n")
    line = fails(project, "all")
    assert re.search(rf"{file}:\d+: not valid YAML: duplicate key '{key}'", line)


def test_duplicate_key_in_json(project: Path) -> None:
    (project / "mine.json").write_text('{"studies": ["jam"], "studies": ["idiots"]}')
    line = fails(project, "--configfile", "mine.json", "--", "all")
    assert line.startswith("error: mine.json: not JSON: duplicate key 'studies'; ")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "no such file; put the file there (SHA-256 "),
        (
            "[]",
            "SHA-256 is 4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945, expected"
            " 7f3db8377ad83d14880afd346aaf016eececf5f166aec7e74734048ed3a43538",
        ),
    ],
)
def test_mirror_without_the_released_file(
    project: Path, tmp_path: Path, content: str | None, problem: str
) -> None:
    name, mirror = "idiolink/val/queries.json", tmp_path / "mirror"
    path = mirror / name
    path.parent.mkdir(parents=True)
    if content is not None:
        path.write_text(content, encoding="utf-8")
    line = fails(project, *RELEASED, f"mirror={mirror}", "--", f"results/raw/{name}")
    assert f"{path}: {problem}" in line
    assert not list((project / "results/raw/idiolink/val").glob("*queries*"))
