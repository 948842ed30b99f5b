"""Damaged checkpoints, for every kind of model that we load."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from transformers import AutoModelForCausalLM, AutoTokenizer

from pieline.core.errors import UserError
from pieline.models.embedder import EmbedderEntry
from pieline.models.entries import EncoderEntry
from pieline.studies.idiolink.predictions.encoders import load_encoder
from pieline.studies.jam.metrics.attention import load_causal_model
from pieline.studies.jam.training.tagger import load_tagger
from rehearsal.weights.anatomy import Anatomy
from rehearsal.weights.checkpoints import save_checkpoint

SHARED = {"label": "x", "licence": "CC0-1.0", "checkpoint": "tiny", "source": "folder"}


def embedder(folder: Path) -> SentenceTransformer:
    entry = EmbedderEntry.model_validate(
        SHARED
        | {"kind": "embedder", "path": str(folder), "trained_with_instructions": False}
        | {"instruction_format": "instruct_query", "max_length": 64, "batch_size": 2}
    )
    return load_encoder(entry, device="cpu")


def encoder_entry(folder: Path) -> EncoderEntry:
    return EncoderEntry.model_validate(
        SHARED | {"kind": "encoder", "path": str(folder), "languages": ["english"]}
        | {"max_length": 64}
    )  # fmt: skip


def new_tagger(folder: Path) -> Any:
    return load_tagger(encoder_entry(folder), device="cpu")


def trained_tagger(folder: Path) -> Any:
    return load_tagger(encoder_entry(folder), weights=folder, device="cpu")


def attention(folder: Path) -> Any:
    return load_causal_model(encoder_entry(folder), weights=folder)


LOADERS = {
    "embedder": embedder,
    "new tagger": new_tagger,
    "trained tagger": trained_tagger,
    "attention": attention,
}


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Create a valid checkpoint for each loader."""
    folder = tmp_path_factory.mktemp("checkpoints")
    bert = save_checkpoint(Anatomy("bert", "mean", hidden=32), folder / "bert")
    llama = save_checkpoint(Anatomy("llama", None, hidden=32), folder / "llama-base")
    AutoTokenizer.from_pretrained(llama).save_pretrained(folder / "llama")
    AutoModelForCausalLM.from_pretrained(llama).save_pretrained(folder / "llama")
    new_tagger(bert).save(folder / "tagger")
    return {
        "embedder": bert,
        "new tagger": bert,
        "trained tagger": folder / "tagger",
        "attention": folder / "llama",
    }


@pytest.fixture(params=LOADERS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def folder(kind: str, originals: dict[str, Path], tmp_path: Path) -> Path:
    """Copy a valid checkpoint."""
    return Path(shutil.copytree(originals[kind], tmp_path / "checkpoint"))


def configure(folder: Path, name: str = "config.json", **fields: Any) -> None:
    place = folder / name
    place.write_text(json.dumps(json.loads(place.read_text()) | fields))


def number_of_layers(folder: Path) -> int:
    return int(json.loads((folder / "config.json").read_text())["num_hidden_layers"])


def add_layers(folder: Path) -> None:
    configure(folder, num_hidden_layers=number_of_layers(folder) + 2)


def drop_a_layer(folder: Path) -> None:
    configure(folder, num_hidden_layers=number_of_layers(folder) - 1)


def change_weights(change: Callable[[dict[str, torch.Tensor]], None]) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        place = folder / "model.safetensors"
        weights = load_file(place)
        change(weights)
        save_file(weights, place, metadata={"format": "pt"})

    return damage


def poison(weights: dict[str, torch.Tensor]) -> None:
    name = next(name for name in sorted(weights) if "embed" in name and weights[name].dim() == 2)
    weights[name][-1, -1] = float("nan")


def overflow(weights: dict[str, torch.Tensor]) -> None:
    name = next(name for name in sorted(weights) if "layer" in name and weights[name].dim() == 2)
    weights[name].view(-1)[0] = float("inf")


def remove_tokenizer(folder: Path) -> None:
    for path in folder.iterdir():
        if path.name.startswith(("tokenizer", "vocab", "special_tokens")):
            path.unlink()


def zero(weights: dict[str, torch.Tensor]) -> None:
    for weight in weights.values():
        weight.zero_()


def empty_second_half(folder: Path) -> None:
    place = folder / "model.safetensors"
    data = place.read_bytes()
    place.write_bytes(data[: len(data) // 2].ljust(len(data), b"\0"))


def point(name: str, folder: Path) -> None:
    """Replace a file with a pointer of Git LFS."""
    text = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 90868376\n"
    (folder / name).write_text(text)


def move_into_subfolder(folder: Path) -> None:
    shutil.move(folder.rename(folder.with_name("run")), folder / "step-9")


def leave_an_adapter(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "adapter_model.safetensors")
    (folder / "adapter_config.json").write_text('{"peft_type": "LORA"}')


def shrink_tokenizer(folder: Path) -> None:
    """Give the model embeddings for four times as many tokens as its tokenizer has."""

    def grow(weights: dict[str, torch.Tensor]) -> None:
        for name, weight in weights.items():
            if weight.shape[:1] == (size,):
                weights[name] = torch.cat([weight] * 4)

    size = json.loads((folder / "config.json").read_text())["vocab_size"]
    change_weights(grow)(folder)
    configure(folder, vocab_size=4 * size)


DAMAGE = {
    "more layers than weights": (
        add_layers,
        "missing or have a different shape: .*layer",
    ),
    "fewer layers than weights": (drop_a_layer, "do not exist in the model: .*layer"),
    "a weight that is no number": (change_weights(poison), "not finite"),
    "an infinite weight": (change_weights(overflow), "not finite"),
    "no tokenizer": (
        remove_tokenizer,
        "has no tokenizer files|cannot load the weights: .*tokenizer",
    ),
    "weights that are all zero": (change_weights(zero), "rows of .* are constant or repeated"),
    "half of the file is zero": (empty_second_half, "rows of .* are constant or repeated"),
    "a pointer instead of the weights": (
        lambda folder: point("model.safetensors", folder),
        r"model.safetensors: a Git LFS pointer instead of the file; run `git lfs pull`",
    ),
    "a pointer instead of the vocabulary": (
        lambda folder: point("tokenizer.json", folder),
        r"tokenizer.json: a Git LFS pointer instead of the file; run `git lfs pull`",
    ),
    "an unknown architecture": (
        lambda folder: configure(folder, model_type="unheard-of"),
        "unheard-of",
    ),
    "the tokenizer of a smaller model": (shrink_tokenizer, "tokens, but its model has"),
}


def test_a_valid_checkpoint_is_loaded(kind: str, folder: Path) -> None:
    LOADERS[kind](folder)


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_checkpoint_is_rejected(kind: str, folder: Path, damage: str) -> None:
    inflict, problem = DAMAGE[damage]
    inflict(folder)
    with pytest.raises(UserError, match=problem) as caught:
        LOADERS[kind](folder)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("inflict", "problem"),
    [
        (move_into_subfolder, "config.json is missing; use the folder that contains it"),
        (leave_an_adapter, "it is an adapter"),
    ],
)
def test_a_wrong_folder_for_an_embedder_is_rejected(
    inflict: Callable[[Path], None], problem: str, originals: dict[str, Path], tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(originals["embedder"], tmp_path / "checkpoint"))
    inflict(folder)
    with pytest.raises(UserError, match=problem):
        embedder(folder)


def test_a_tagger_needs_its_head_only_after_training(originals: dict[str, Path]) -> None:
    new_tagger(originals["embedder"])
    with pytest.raises(UserError, match=r"2 of the model's weights are missing.*classifier"):
        trained_tagger(originals["embedder"])


CONFIG_FAULTS: dict[str, dict[str, Any]] = {
    "architecture is a number": {"model_type": 3},
    "unknown activation": {"hidden_act": "unheard-of"},
    "activation is null": {"hidden_act": None},
    "size is a text": {"hidden_size": "many"},
    "size is negative": {"hidden_size": -32},
    "size is a fraction": {"hidden_size": 32.5},
    "other size": {"hidden_size": 48},
    "other inner size": {"intermediate_size": 48},
    "no heads": {"num_attention_heads": 0},
    "heads do not divide the size": {"num_attention_heads": 5},
    "layers are a text": {"num_hidden_layers": "two"},
    "layers are negative": {"num_hidden_layers": -1},
    "no layers": {"num_hidden_layers": 0},
    "vocabulary is negative": {"vocab_size": -1},
    "vocabulary is null": {"vocab_size": None},
    "other vocabulary": {"vocab_size": 77},
    "padding beyond the vocabulary": {"pad_token_id": 10**9},
    "dtype is unknown": {"dtype": "float999"},
}


@pytest.mark.parametrize("fault", CONFIG_FAULTS)
def test_an_invalid_configuration_is_one_line(kind: str, folder: Path, fault: str) -> None:
    # The precision is set in the entry, and llama has no padding token.
    harmless = {"dtype is unknown", "padding beyond the vocabulary"}
    configure(folder, **CONFIG_FAULTS[fault])
    try:
        LOADERS[kind](folder)
    except UserError as error:
        assert len(str(error).splitlines()) == 1
    else:
        assert fault in harmless


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"\xff\xfe", None])
def test_a_file_that_is_broken_or_missing_is_one_line(
    kind: str, folder: Path, name: str, content: bytes | None
) -> None:
    if content is None:
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(content)
    with pytest.raises(UserError) as caught:
        LOADERS[kind](folder)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    "modules",
    [
        [],
        [{"idx": 0, "name": "0", "path": "", "type": "unheard.of.Transformer"}],
        [{"idx": 0, "name": "0", "path": "", "type": "os.system"}],
        [{"idx": 0, "name": "0", "path": ""}],
        {"modules": []},
        [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}],
    ],
)
def test_modules_that_are_unknown_or_missing_are_one_line(
    originals: dict[str, Path], tmp_path: Path, modules: Any
) -> None:
    folder = Path(shutil.copytree(originals["embedder"], tmp_path / "checkpoint"))
    (folder / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(UserError) as caught:
        embedder(folder)
    assert len(str(caught.value).splitlines()) == 1
