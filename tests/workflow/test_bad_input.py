"""User errors give one line with file, record and hint, and a non-zero exit status."""

import json
import re
from pathlib import Path

import pytest
from support import ROOT, run_snakemake

from pieline.core.errors import UserError
from pieline.models.registry import load_registry
from pieline.studies.idiolink.datasets.reading import read_split

DATASET = "results/datasets/idiolink/test/manifest.json"
RELEASED = ("--configfile", "config/released.yaml", "--config")


def errors(stderr: str) -> list[str]:
    return [line for line in stderr.splitlines() if line.startswith("error: ")]


def fails(project: Path, *arguments: str, rule: str = "", log: str = "") -> str:
    """Run, expect a failure without a traceback, and return the only error line.

    If a rule and a log are passed, the line must also be repeated with both.
    """
    result = run_snakemake(project, "--cores", "1", *arguments)
    assert result.returncode != 0
    output = result.stdout + result.stderr
    assert "Traceback" not in output
    lines = set(errors(result.stderr))
    assert len(lines) == 1, output[-2000:]
    line = lines.pop()
    if rule:
        message = f"{rule} failed: {line.removeprefix('error: ')}\n    log: {log}\n"
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


# `test_wrong_json` tests how a job reports such an error.
@pytest.mark.parametrize(
    ("number", "fields", "problem"),
    [
        (1, {"id": "004_s01_idiom_01"}, r"indexes\.json: duplicate id '004_s01_idiom_01'"),
        (
            2,
            {"span": "kick the bucket"},
            r"indexes\.json: record 3 \(.*"
            "span 'kick the bucket' is not in its sentence; correct this record",
        ),
        (
            0,
            {"usage": "ironic"},
            r"record 1 \(.*usage: Input should be 'literal', 'idiomatic', 'simplification' or "
            "'sense'.*'ironic'",
        ),
        (0, {"subject": None}, "subject: Field required"),
    ],
)
def test_wrong_record(
    tmp_path: Path, number: int, fields: dict[str, str | None], problem: str
) -> None:
    sample = ROOT / "data/sample/idiolink/test"
    rows = json.loads((sample / "indexes.json").read_text(encoding="utf-8"))
    changed = rows[number] | fields
    rows[number] = {name: value for name, value in changed.items() if value is not None}
    path = tmp_path / "indexes.json"
    path.write_text(json.dumps(rows), encoding="utf-8")
    with pytest.raises(UserError, match=problem):
        read_split(path, sample / "queries.json")


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


def test_mistyped_key_of_an_entry(tmp_path: Path) -> None:
    text = (ROOT / "models.yaml").read_text(encoding="utf-8")
    path = tmp_path / "models.yaml"
    path.write_text(text.replace("\nsbert:\n", "\nsbert:\n  poling: mean\n"), encoding="utf-8")
    with pytest.raises(UserError, match=r"models\.yaml: sbert: .*poling"):
        load_registry(path)


@pytest.mark.parametrize(("file", "key"), [("models.yaml", "sbert"), ("config.yaml", "idiots")])
def test_duplicate_key(project: Path, file: str, key: str) -> None:
    with (project / file).open("a", encoding="utf-8") as stream:
        stream.write(f"\n{key}:\n  models: []\n")
    line = fails(project, "all")
    assert re.search(rf"{file}:\d+: not valid YAML: duplicate key '{key}'", line)


def test_mirror_without_the_file(project: Path, tmp_path: Path) -> None:
    name = "idiolink/test/indexes.json"
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
