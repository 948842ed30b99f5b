"""A user's mistake gives one line that names file, record and mend, and a non-zero exit."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from support import run_snakemake

DATASET = "results/datasets/idiolink/test/manifest.json"
RELEASED = ("--configfile", "config/released.yaml", "--config")
Records = list[dict[str, object]]


def errors(stderr: str) -> list[str]:
    return [line for line in stderr.splitlines() if line.startswith("error: ")]


def fails(project: Path, *arguments: str, rule: str = "", log: str = "") -> str:
    """Run, expect failure without a traceback, and return the one distinct error line.

    It is told once more with a rule and its log, if they are given.
    """
    result = run_snakemake(project, "--cores", "1", *arguments)
    assert result.returncode != 0
    output = result.stdout + result.stderr
    assert "Traceback" not in output
    lines = set(errors(result.stderr))
    assert len(lines) == 1, output[-2000:]
    line = lines.pop()
    if rule:
        told = f"{rule} failed: {line.removeprefix('error: ')}\n    log: {log}\n"
        assert told in result.stderr
    return line


def change_documents(project: Path, change: Callable[[Records], object]) -> None:
    path = project / "data/sample/idiolink/test/indexes.json"
    rows = json.loads(path.read_text(encoding="utf-8"))
    change(rows)
    path.write_text(json.dumps(rows), encoding="utf-8")


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


def test_duplicate_id(project: Path) -> None:
    change_documents(project, lambda rows: rows[1].update(id=rows[0]["id"]))
    line = fails(project, DATASET)
    assert "indexes.json: duplicate id '004_s01_idiom_01'" in line


def test_span_that_is_not_in_its_sentence(project: Path) -> None:
    change_documents(project, lambda rows: rows[2].update(span="kick the bucket"))
    line = fails(project, DATASET)
    assert "indexes.json: record 3 (" in line
    assert "span 'kick the bucket' is not in its sentence; correct this record" in line


def test_unknown_usage(project: Path) -> None:
    change_documents(project, lambda rows: rows[0].update(usage="ironic"))
    line = fails(project, DATASET)
    assert "record 1 (" in line
    assert "usage: Input should be 'literal', 'idiomatic', 'simplification' or 'sense'" in line
    assert "'ironic'" in line


def test_missing_field(project: Path) -> None:
    change_documents(project, lambda rows: rows[0].pop("subject"))
    assert "subject: Field required" in fails(project, DATASET)


def test_unknown_model_name(project: Path) -> None:
    path = project / "config/mine.yaml"
    path.write_text("idiolink: {models: [bm25, sbrt]}\n", encoding="utf-8")
    line = fails(project, "--configfile", "config/mine.yaml", "--", "all")
    assert line == (
        "error: config/mine.yaml: idiolink.models: unknown model 'sbrt'; did you mean 'sbert'?"
    )


def test_mistyped_config_key(project: Path) -> None:
    path = project / "config.yaml"
    text = path.read_text(encoding="utf-8").replace("finetuning:", "finetunning:")
    path.write_text(text, encoding="utf-8")
    line = fails(project, "all")
    expected = "unknown key 'idiolink.finetunning'; did you mean 'finetuning'?"
    assert line == f"error: config.yaml: {expected}"


def test_mistyped_key_of_an_entry(project: Path) -> None:
    path = project / "models.yaml"
    text = path.read_text(encoding="utf-8").replace("\nsbert:\n", "\nsbert:\n  poling: mean\n")
    path.write_text(text, encoding="utf-8")
    line = fails(project, "all")
    assert "models.yaml: sbert: " in line
    assert "poling" in line


@pytest.mark.parametrize(("file", "key"), [("models.yaml", "sbert"), ("config.yaml", "idiots")])
def test_key_that_stands_twice(project: Path, file: str, key: str) -> None:
    with (project / file).open("a", encoding="utf-8") as stream:
        stream.write(f"\n{key}:\n  models: []\n")
    line = fails(project, "all")
    assert re.search(rf"{file}:\d+: not valid YAML: key '{key}' stands twice", line)


@pytest.mark.parametrize("name", ["idiolink/test/indexes.json", "idiolink/val/queries.json"])
def test_mirror_without_the_file(project: Path, tmp_path: Path, name: str) -> None:
    mirror = tmp_path / "mirror"
    mirror.mkdir()
    line = fails(project, *RELEASED, f"mirror={mirror}", "--", f"results/raw/{name}")
    assert f"{mirror}/{name}: no such file; put the file there (SHA-256 " in line
    assert not (project / "results/raw" / name).exists()


def test_mirror_with_another_file(project: Path, tmp_path: Path) -> None:
    name = "idiolink/val/queries.json"
    path = tmp_path / "mirror" / name
    path.parent.mkdir(parents=True)
    path.write_text("[]", encoding="utf-8")
    mirror = tmp_path / "mirror"
    line = fails(project, *RELEASED, f"mirror={mirror}", "--", f"results/raw/{name}")
    assert (
        f"{path}: SHA-256 is 4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945"
        in line
    )
    assert "expected 7f3db8377ad83d14880afd346aaf016eececf5f166aec7e74734048ed3a43538" in line
    assert not list((project / "results/raw/idiolink/val").glob("*queries*"))
