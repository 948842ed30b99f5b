"""LoRA adapters: comparison with forward hooks, and invalid adapters."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from support import ROOT
from test_loading import hidden_states
from tiny_models import SENTENCES, save_tiny, tiny_entry
from torch.nn import functional
from transformers import AutoModel, AutoTokenizer

from pieline.core.errors import UserError
from pieline.core.files import write_json
from pieline.llm.settings import LLMSettings
from pieline.models.registry import load_registry
from pieline.project import Project
from pieline.studies.idiolink.predictions.embedding import embed_documents
from pieline.studies.idiolink.predictions.encoders import load_encoder, weights_digests
from pieline.studies.jam.settings import JamSettings
from pieline.studies.jam.study import JamStudy

RANK, ALPHA = 4, 6
CONFIG: dict[str, Any] = {
    "peft_type": "LORA", "r": RANK, "lora_alpha": ALPHA, "bias": "none", "rank_pattern": {},
    "init_lora_weights": True, "base_model_name_or_path": "tiny", "task_type": "FEATURE_EXTRACTION",
    "target_modules": [
        "layer.0.attention.self.query", "layer.1.output.dense", "layers.0.self_attn.v_proj",
        "layers.1.mlp.down_proj",
    ],
    "lora_dropout": 0.1, "megatron_core": "megatron.core", "qalora_group_size": 16,
    "peft_version": "0.21.2", "inference_mode": True, "auto_mapping": {}, "use_dora": False,
    "loftq_config": {}, "alora_invocation_tokens": None, "revision": None,
}  # fmt: skip
MODULES = {
    "bert": ("encoder.layer.0.attention.self.query", "encoder.layer.1.output.dense"),
    "llama": ("layers.0.self_attn.v_proj", "layers.1.mlp.down_proj"),
}


def save_adapter(folder: Path, base: Path, modules: tuple[str, ...], *, head: str = "") -> Path:
    """Write an adapter of some linear layers of a base model, in peft's format."""
    folder.mkdir()
    layers = dict(AutoModel.from_pretrained(base).named_modules())
    torch.manual_seed(3)
    weights = {}
    for name in modules:
        outputs, inputs = layers[name].weight.shape
        place = f"base_model.model.{head}{name}"
        weights[f"{place}.lora_A.weight"] = torch.randn(RANK, inputs)
        weights[f"{place}.lora_B.weight"] = torch.randn(outputs, RANK)
    save_file(weights, folder / "adapter_model.safetensors")
    write_json(folder / "adapter_config.json", CONFIG)
    return folder


@pytest.mark.parametrize(
    ("family", "head", "rslora"), [("bert", "", False), ("llama", "model.", True)]
)
def test_an_adapter_equals_its_forward_pass(
    family: str, head: str, rslora: bool, tmp_path: Path
) -> None:
    base = save_tiny(family, tmp_path / "base")
    adapter = save_adapter(tmp_path / "adapter", base, MODULES[family], head=head)
    write_json(adapter / "adapter_config.json", CONFIG | {"use_rslora": rslora})
    entry = tiny_entry(base, pooling="mean", end_token="", adapter=str(adapter))
    vectors = embed_documents(load_encoder(entry, device="cpu"), SENTENCES, batch_size=2)
    weights = load_file(adapter / "adapter_model.safetensors")
    scale = ALPHA / (RANK**0.5 if rslora else RANK)
    model, tokenizer = AutoModel.from_pretrained(base).eval(), AutoTokenizer.from_pretrained(base)
    for name in MODULES[family]:
        down, up = (
            weights[f"base_model.model.{head}{name}.lora_{side}.weight"] for side in ("A", "B")
        )

        def add(_: Any, inputs: Any, output: Any, down: Any = down, up: Any = up) -> Any:
            return output + scale * (inputs[0] @ down.T) @ up.T

        model.get_submodule(name).register_forward_hook(add)
    for sentence, vector in zip(SENTENCES, vectors, strict=True):
        encoded = tokenizer(sentence, return_tensors="pt")
        with torch.inference_mode():
            hidden = model(**encoded).last_hidden_state[0]
        expected = functional.normalize(hidden.mean(dim=0), dim=0)
        plain = functional.normalize(hidden_states(base, sentence).mean(dim=0), dim=0)
        assert vector == pytest.approx(expected.numpy(), abs=1e-5)
        assert vector != pytest.approx(plain.numpy(), abs=1e-2)


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return save_tiny("bert", tmp_path / "base")


@pytest.fixture
def adapter(tmp_path: Path, base: Path) -> Path:
    return save_adapter(tmp_path / "adapter", base, MODULES["bert"])


def test_adapter_files_are_among_the_loaded_files(
    base: Path, adapter: Path, tmp_path: Path
) -> None:
    entry = tiny_entry(base, pooling="mean", adapter=str(adapter))
    run = Project({"own": entry}, LLMSettings())
    weights = {str(base / "model.safetensors"), str(adapter / "adapter_model.safetensors")}
    assert weights <= {*run.weights_files("own")}
    assert "adapter/adapter_config.json" in weights_digests(entry)
    # Fine-tuned weights already include the adapter.
    trained = load_encoder(entry, device="cpu")
    trained.save(str(tmp_path / "trained"))
    again = load_encoder(entry, weights=tmp_path / "trained", device="cpu")
    vectors = [embed_documents(each, SENTENCES, batch_size=2) for each in (trained, again)]
    assert vectors[0] == pytest.approx(vectors[1], abs=1e-6)
    assert "adapter/adapter_config.json" not in weights_digests(entry, tmp_path / "trained")
    own = {"own": entry.model_copy(update={"adapter": "none"})}
    with pytest.raises(UserError, match="own: no such folder: none; correct adapter"):
        Project(own, LLMSettings()).check_folder("own")


Change = Callable[[Path], Any]


def changed(**fields: Any) -> Change:
    """Return a function that changes fields of an adapter's configuration."""
    return lambda folder: write_json(folder / "adapter_config.json", CONFIG | fields)


def edited(edit: Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]]) -> Change:
    """Return a function that edits an adapter's tensors."""

    def change(folder: Path) -> None:
        path = folder / "adapter_model.safetensors"
        save_file(edit(load_file(path)), path)

    return change


def half_zero(part: str) -> Change:
    """Return a function that sets half of the rows of some matrices to zero."""

    def change(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        for name, matrix in tensors.items():
            if part in name:
                matrix[len(matrix) // 2 :] = 0
        return tensors

    return edited(change)


def pointer(name: str) -> Change:
    """Return a function that replaces a file with a Git LFS pointer."""
    text = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"
    return lambda folder: (folder / name).write_text(text)


def without(part: str) -> Change:
    """Return a function that removes some tensors."""
    return edited(
        lambda tensors: {name: each for name, each in tensors.items() if part not in name}
    )


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (changed(use_dora=True), "the adapter has use_dora: True, which is not supported"),
        (changed(peft_type="IA3"), "the adapter has peft_type: IA3"),
        (changed(init_lora_weights="pissa"), "the adapter has init_lora_weights: pissa, which"),
        (changed(use_of_a_later_version=True), "the adapter has use_of_a_later_version: True"),
        (changed(base_model_name_or_path="other"), "is 'other', the entry's checkpoint 'tiny'"),
        (changed(base_model_name_or_path=None), "is None, the entry's checkpoint 'tiny'"),
        (changed(target_modules=None), "no target_modules"),
        (changed(target_modules=["query"]), "has no weights for encoder.layer.1.attention.self.q"),
        (changed(target_modules=["self.query"]), "has no weights for encoder.layer.1"),
        (changed(target_modules=["0.attention.self.query"]), "has weights for .*1.output.dense"),
        (changed(target_modules=r"encoder\.layer\.0.*query"), "has weights for .*1.output.dense"),
        (changed(target_modules="all-linear"), "has no weights for encoder.layer.0"),
        (without("layer.0"), "has no weights for encoder.layer.0.attention.self.query"),
        (
            edited(lambda tensors: {name: 0 * each for name, each in tensors.items()}),
            "its weights for .* are zero, as before training",
        ),
        (half_zero("lora_A"), "2 of the 4 rows of its weights for .* are zero; copy"),
        (half_zero("lora_B"), "of the .* rows of its weights for .* are zero; copy"),
        (lambda folder: (folder / "adapter_config.json").write_text("[]"), "not a JSON object"),
        (pointer("adapter_config.json"), "adapter_config.json: a Git LFS pointer"),
        (pointer("adapter_model.safetensors"), "model.safetensors: a Git LFS pointer.*lfs pull"),
        (changed(r=8), "has no such linear layer"),
        (changed(r=None), "adapter_config.json: r is missing or not a positive number"),
        (without(".lora_B."), "has no such linear layer"),
        (
            edited(lambda tensors: tensors | {"words.lora_embedding_A": torch.ones(2, 2)}),
            "the adapter changes words.lora_embedding_A",
        ),
        (
            edited(lambda tensors: {n: each[..., :5].contiguous() for n, each in tensors.items()}),
            "but tiny .*has no such linear layer",
        ),
        (lambda folder: (folder / "adapter_config.json").unlink(), "no adapter_config.json"),
    ],
)
def test_an_invalid_adapter_gives_a_one_line_error(
    change: Change, problem: str, base: Path, adapter: Path
) -> None:
    change(adapter)
    with pytest.raises(UserError, match=problem):
        load_encoder(tiny_entry(base, pooling="mean", adapter=str(adapter)), device="cpu")


def test_the_base_may_be_a_folder_with_the_same_weights(
    base: Path, adapter: Path, tmp_path: Path
) -> None:
    copy, other = tmp_path / "copy", save_tiny("mpnet", tmp_path / "other")
    shutil.copytree(base, copy)
    entry = tiny_entry(base, pooling="mean", checkpoint="any", adapter=str(adapter))
    for place in (base, copy):
        changed(base_model_name_or_path=str(place))(adapter)
        load_encoder(entry, device="cpu")
    changed(base_model_name_or_path=str(other))(adapter)
    with pytest.raises(UserError, match=r"base_model_name_or_path is '.*other'"):
        Project({"own": entry}, LLMSettings()).check_folder("own")
    pinned = entry.model_copy(update={"revision": "a" * 40, "checkpoint": "tiny"})
    changed(revision="b" * 40)(adapter)
    with pytest.raises(UserError, match=r"has revision 'bbb.*, the entry 'aaa"):
        load_encoder(pinned, device="cpu")


def test_an_adapter_of_the_unused_pooler_may_be_missing_or_zero(base: Path, adapter: Path) -> None:
    names = [*CONFIG["target_modules"], "pooler.dense"]
    changed(target_modules=names)(adapter)
    entry = tiny_entry(base, pooling="mean", adapter=str(adapter))
    load_encoder(entry, device="cpu")
    path = adapter / "adapter_model.safetensors"
    place, size = "base_model.model.pooler.dense", 32
    zero = {
        f"{place}.lora_A.weight": torch.randn(RANK, size),
        f"{place}.lora_B.weight": torch.zeros(size, RANK),
    }
    save_file(load_file(path) | zero, path)
    load_encoder(entry, device="cpu")


def test_attention_does_not_silently_skip_an_adapter(base: Path, adapter: Path) -> None:
    own = {"own": tiny_entry(base, pooling="mean", adapter=str(adapter))}
    run = Project(load_registry(ROOT / "models.yaml") | own, LLMSettings(), root=ROOT)
    settings = JamSettings.model_validate({"attention": "own"})
    with pytest.raises(UserError, match=r"attention: 'own' has an adapter"):
        JamStudy(settings, run)
